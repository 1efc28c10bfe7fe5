//! The request of a queued run, with conversions from and to its stored form.

use crate::message::Message;
use crate::off_thread::by_size_of;
use crate::run::request::{EventOptions, OnDisconnect, RequestKey, RunRequest};
use crate::store::{
    PinnedAgents, QueuedDisconnect, QueuedEventOptions, QueuedKey, QueuedRequest, QueuedRunRequest, StoredRequest,
    UnreadableRequest,
};
use crate::tenant::TenantId;

/// A request, with the ids and versions that were fixed when it was accepted.
#[derive(Debug, Clone)]
pub(in crate::run) struct AcceptedRequest {
    /// The request without the input.
    pub(in crate::run) request: RunRequest,
    /// The input messages, with the ids assigned to them.
    pub(in crate::run) input: Vec<Message>,
    /// The versions of the agents.
    pub(in crate::run) pinned: PinnedAgents,
}

impl AcceptedRequest {
    /// Encodes the stored form.
    pub(in crate::run) fn to_json(&self) -> Result<String, serde_json::Error> {
        let Self { request, input, pinned } = self.clone();
        let request = request.into();
        QueuedRequest { request, input, pinned }.to_json()
    }

    /// Decodes the request of a leased run, on another thread if it is large.
    pub(in crate::run) async fn read(tenant: &TenantId, request: &StoredRequest) -> Result<Self, UnreadableRequest> {
        by_size_of(tenant, request.bytes(), request, |request| {
            let QueuedRequest { request, input, pinned } = QueuedRequest::from_json(&request.read()?)?;
            let request = request.into();
            Ok(Self { request, input, pinned })
        })
        .await
    }
}

impl From<RunRequest> for QueuedRunRequest {
    fn from(asked: RunRequest) -> Self {
        Self {
            base_session_id: asked.base_session_id,
            environment_from: asked.environment_from,
            agent: asked.agent,
            input: [],
            answers: asked.answers,
            mode: asked.mode,
            durability: asked.durability,
            priority: asked.priority,
            thread: asked.thread,
            if_busy: asked.if_busy,
            webhook: asked.webhook,
            idempotency: asked
                .idempotency
                .map(|RequestKey { key, digest, .. }| QueuedKey { key, digest }),
            model: asked.model,
            overrides: asked.overrides,
            budget: asked.budget,
            metadata: asked.metadata,
            variables: asked.variables,
            response_format: asked.response_format,
            conflict: asked.conflict,
            on_disconnect: QueuedDisconnect::default(),
            limits: asked.limits,
            events: QueuedEventOptions {
                subagents: asked.events.subagents,
            },
            request_id: asked.request_id,
        }
    }
}

impl From<QueuedRunRequest> for RunRequest {
    fn from(stored: QueuedRunRequest) -> Self {
        Self {
            base_session_id: stored.base_session_id,
            environment_from: stored.environment_from,
            agent: stored.agent,
            input: Vec::new(),
            answers: stored.answers,
            mode: stored.mode,
            durability: stored.durability,
            priority: stored.priority,
            thread: stored.thread,
            if_busy: stored.if_busy,
            webhook: stored.webhook,
            idempotency: stored.idempotency.map(|QueuedKey { key, digest }| RequestKey {
                key,
                digest,
                // The key was claimed when the run was accepted.
                valid_until: None,
            }),
            model: stored.model,
            overrides: stored.overrides,
            budget: stored.budget,
            metadata: stored.metadata,
            variables: stored.variables,
            response_format: stored.response_format,
            conflict: stored.conflict,
            // The worker that executes the run has no caller.
            on_disconnect: OnDisconnect::default(),
            limits: stored.limits,
            events: EventOptions {
                subagents: stored.events.subagents,
            },
            request_id: stored.request_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::off_thread::assert_beside;

    #[test]
    fn a_large_request_is_read_beside_the_async_workers() {
        let tenant = "requests".parse().unwrap();
        let request = StoredRequest::new(format!(r#"{{"version": 5, "accepted": "{}"}}"#, "x".repeat(100_000)));
        let read = assert_beside(AcceptedRequest::read(&tenant, &request));
        assert!(matches!(read, Err(UnreadableRequest::Newer(_))), "{read:?}");
    }
}

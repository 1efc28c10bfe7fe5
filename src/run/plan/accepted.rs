//! The stored request of a queued run. Every attempt reads the same request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::request::RunRequest;
use agent::definition::AgentDefinition;
use store::queue::{StoredRequest, UnreadableRequest};
use tasks::off_thread::by_size_of;
use values::ids::AgentId;
use values::json::{is_yes, yes};
use values::message::Message;
use values::session::Hash;
use values::tenant::TenantId;

/// A request, with the ids and versions that were fixed when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct AcceptedRequest {
    /// The request without the input.
    pub(in crate::run) request: RunRequest,
    /// The input messages, with the ids assigned to them.
    pub(in crate::run) input: Arc<[Message]>,
    /// Whether the record of the run keeps the input if no session will have it. Hooks may remove
    /// what must not be stored, so the run of an agent with hooks keeps none.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(in crate::run) keeps_input: bool,
    /// The versions of the agents.
    pub(in crate::run) pinned: PinnedAgents,
}

/// The versions of the agents with which a run was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct PinnedAgents {
    /// The run's own agent.
    pub(in crate::run) agent: Hash,
    /// The agent instance of a new line of sessions.
    pub(in crate::run) agent_id: AgentId,
    /// The agents that it may delegate to, by name.
    pub(in crate::run) team: BTreeMap<String, Hash>,
}

impl AcceptedRequest {
    /// Makes the request for a run of an agent.
    pub(super) fn new(
        request: RunRequest,
        input: Arc<[Message]>,
        pinned: PinnedAgents,
        agent: &AgentDefinition,
    ) -> Self {
        Self {
            request,
            input,
            keeps_input: agent.hooks.is_empty(),
            pinned,
        }
    }

    /// Returns the input for the record of a run without a session.
    pub(in crate::run) fn retained_input(&self) -> Arc<[Message]> {
        if self.keeps_input {
            Arc::clone(&self.input)
        } else {
            Arc::default()
        }
    }

    /// Encodes the stored form.
    pub(in crate::run) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Decodes the request of a leased run, on another thread if it is large.
    pub(in crate::run) async fn read(tenant: &TenantId, request: &StoredRequest) -> Result<Self, UnreadableRequest> {
        by_size_of(tenant, request.bytes(), request, |request| {
            serde_json::from_str(&request.read()?).map_err(|error| UnreadableRequest::Damaged(error.to_string()))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use serde_json::json;

    use super::*;
    use tasks::off_thread::assert_beside;

    /// The stored form, in a file that never changes. A changed form needs another version of the
    /// payload, whose decoder reads both.
    const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/queued_request-v1.json");

    /// A request that says everything.
    fn fixture() -> AcceptedRequest {
        let id = |n: u8| format!("0190d9b4-5a00-7000-8000-0000000000{n}");
        let hash = |n: u8| format!("{n:064}");
        let answer = |n: u8, content: serde_json::Value| json!({"call_id": format!("c{n}"), "arguments_hash": hash(n), "content": content});
        let request = json!({
            "base_session_id": id(10),
            "thread_from": {"session_id": id(13)},
            "environment_from": id(11),
            "agent": "summer",
            "answers": {
                "answers": [
                    answer(1, json!({"result": {"value": {"celsius": 21}, "is_error": true}})),
                    answer(2, json!({"approve": {"remember": true}})),
                    answer(3, json!({"edit": {"arguments": {"a": 1}}})),
                    answer(4, json!({"deny": {"reason": "No."}})),
                    answer(5, json!({"parts": {"content": [{"type": "text", "text": "Cold."}], "is_error": false}})),
                ],
                "deny_open": true,
                "accepted_at": "2026-01-02T03:04:05Z",
            },
            "mode": "async",
            "durability": "step",
            "priority": -3,
            "thread": "ada",
            "if_busy": "interrupt",
            "webhook": {"url": "https://example.org/hook", "events": ["run.completed", "run.failed"], "secret": "hooks"},
            "idempotency": {"key": "k-1", "digest": hash(1)},
            "model": "openai/gpt-5-mini",
            "overrides": {"parameters": {"temperature": 0.5}, "system_prompt": null},
            "instructions": "Be brief.",
            "client_tools": [{"name": "ask", "description": "Asks the user.", "parameters": {"type": "object"}}],
            "traces": "all",
            "for_this_run": ["system_prompt", "metadata"],
            "budget": {
                "max_steps": 3, "max_tokens": 1000, "max_seconds": 1.5, "max_cost": 0.25,
                "deadline": "2026-01-02T03:04:05.250Z",
            },
            "metadata": {"ticket": 7},
            "variables": {"mood": null, "name": "Ada"},
            "response_format": {"type": "json_schema", "name": "sum", "schema": {"type": "object"}, "strict": true},
            "echo": {"store": true},
            "conflict": "reject",
            "limits": {"max_steps": 5, "agents": ["su*"]},
            "created_by": {"key_id": id(14)},
            "events": {"subagents": true},
            "origin": {"request_id": "r-1", "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        });
        let input = json!([{
            "id": id(12), "role": "user", "name": "ada", "content": [{"type": "text", "text": "What is 1 + 1?"}],
            "metadata": {"channel": "web", "n": 1}, "created_at": "2026-01-02T03:04:05Z",
        }]);
        AcceptedRequest {
            request: serde_json::from_value(request).unwrap(),
            input: serde_json::from_value(input).unwrap(),
            keeps_input: true,
            pinned: serde_json::from_value(json!({"agent": hash(2), "agent_id": id(16), "team": {"reader": hash(3)}}))
                .unwrap(),
        }
    }

    #[tokio::test]
    async fn the_stored_form_is_that_of_the_golden_file() {
        let written = fixture().to_json().unwrap();
        let golden = fs::read_to_string(GOLDEN).unwrap_or_default();
        if written != golden {
            let proposal = env::temp_dir().join("queued_request-v1.json");
            fs::write(&proposal, &written).unwrap();
            panic!(
                "{GOLDEN} is not what this code writes, which is in {}",
                proposal.display()
            );
        }
        let tenant = "requests".parse().unwrap();
        let read = AcceptedRequest::read(&tenant, &StoredRequest::new(golden)).await;
        assert_eq!(read.unwrap(), fixture());
    }

    #[tokio::test]
    async fn fields_that_a_later_version_may_add_are_ignored() {
        let mut stored = serde_json::to_value(fixture()).unwrap();
        stored["zz_new"] = json!(1);
        stored["request"]["zz_new"] = json!(1);
        let tenant = "requests".parse().unwrap();
        let read = AcceptedRequest::read(&tenant, &StoredRequest::new(stored.to_string())).await;
        assert_eq!(read.unwrap(), fixture());
    }

    #[test]
    fn a_large_request_is_read_beside_the_async_workers() {
        let tenant = "requests".parse().unwrap();
        let request = StoredRequest::new(format!(r#"{{"request": "{}"}}"#, "x".repeat(100_000)));
        let read = assert_beside(AcceptedRequest::read(&tenant, &request)).unwrap();
        assert!(matches!(read, Err(UnreadableRequest::Damaged(_))), "{read:?}");
    }
}

//! The stored form of an accepted request, so that each attempt finds the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;
use crate::message::Message;
use crate::off_thread::by_size_of;
use crate::run::plan::RunPlan;
use crate::run::request::{OnDisconnect, RunRequest};
use crate::session::Hash;
use crate::store::{StoredRequest, UnreadableRequest};
use crate::tenant::TenantId;

/// The newest version of this form.
const VERSION: u32 = 2;
/// The version of a request that sets nothing instead of its agent's definition. Replicas of the version before read no other one.
const WITHOUT_OVERRIDES: u32 = 1;

/// A request with what was decided when it was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::run) struct AcceptedRequest {
    /// What was asked, but for the input.
    pub(in crate::run) request: RunRequest,
    /// The input, with the ids that it was given.
    pub(in crate::run) input: Vec<Message>,
    /// The versions of the agents.
    pub(in crate::run) pinned: Pinned,
}

/// Versions of agents that a run was accepted with; nothing for a run that is new.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::run) struct Pinned {
    /// The run's own agent.
    pub(in crate::run) agent: Option<Hash>,
    /// The agent instance of a new line of sessions.
    pub(in crate::run) agent_id: Option<AgentId>,
    /// Those that may work below it, by name.
    pub(in crate::run) team: BTreeMap<String, Hash>,
}

/// The form with its version.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    accepted: T,
}

/// Why a request can't be read again.
#[derive(Debug, thiserror::Error)]
pub(in crate::run) enum RequestError {
    #[error("the request was accepted by a newer version of agent-runtime: its form is {0}")]
    Newer(u32),
    #[error("the request can't be read")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Stored(#[from] UnreadableRequest),
}

impl RequestError {
    /// Tells whether another replica may read the request now, one of a newer version.
    pub(in crate::run) fn is_of_newer_version(&self) -> bool {
        matches!(self, Self::Newer(_) | Self::Stored(UnreadableRequest::Newer(_)))
    }
}

impl AcceptedRequest {
    /// Returns what a plan was made of.
    pub(in crate::run) fn of(plan: &RunPlan) -> Self {
        Self {
            request: RunRequest {
                // Whoever goes on with the run has no caller, and an earlier version does not know every way to end it.
                on_disconnect: OnDisconnect::default(),
                ..plan.request.clone()
            },
            input: plan.input.clone(),
            pinned: Pinned {
                agent: Some(plan.agent_version),
                agent_id: Some(plan.new_agent_id),
                team: plan.team.versions(),
            },
        }
    }

    /// Writes the form that is stored.
    pub(in crate::run) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Versioned {
            version: if self.request.overrides.is_empty() {
                WITHOUT_OVERRIDES
            } else {
                VERSION
            },
            accepted: self,
        })
    }

    /// Reads the request of a leased run, beside the async workers if it is large.
    pub(in crate::run) async fn read(tenant: &TenantId, request: &StoredRequest) -> Result<Self, RequestError> {
        by_size_of(tenant, request.bytes(), request, |request| {
            Self::from_json(&request.read()?)
        })
        .await
    }

    /// Reads what was stored.
    fn from_json(json: &str) -> Result<Self, RequestError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_str(json)?;
        if version > VERSION {
            return Err(RequestError::Newer(version));
        }
        Ok(serde_json::from_str::<Versioned<Self>>(json)?.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::off_thread::assert_beside;

    #[test]
    fn a_large_request_is_read_beside_the_async_workers() {
        let tenant = "requests".parse().unwrap();
        let request = StoredRequest::new(format!(r#"{{"version": 3, "accepted": "{}"}}"#, "x".repeat(100_000)));
        let read = assert_beside(AcceptedRequest::read(&tenant, &request));
        assert!(matches!(read, Err(RequestError::Newer(3))), "{read:?}");
    }
}

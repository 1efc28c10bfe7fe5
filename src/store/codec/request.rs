//! The stored request of a queued run, as it was accepted. Every attempt reads the same request.
//!
//! The format is JSON inside a payload of [`REQUEST_VERSION`](super::REQUEST_VERSION), with its own
//! version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::state::ExecutionBudget;
use crate::agent::{Answers, DurabilityChoice, RunWebhook};
use crate::ids::{AgentId, SessionId};
use crate::json::{Object, Value};
use crate::limits::RunLimits;
use crate::message::Message;
use crate::model_ref::{ModelRef, ResponseFormat};
use crate::record::{RunMode, ThreadName};
use crate::session::{Hash, OverrideChanges};
use crate::store::queue::{IfBusy, UnreadableRequest};
use crate::store::traits::ConflictPolicy;

/// The newest version of the format: of a request with answers to open calls. Replicas of an
/// earlier release can't read it, and leave the run to others.
const NEWEST: u32 = 4;
/// The version of a request with the environment of another session and without answers.
const WITH_ENVIRONMENT: u32 = 3;
/// The version of a request with overrides and without such an environment.
const WITH_OVERRIDES: u32 = 2;
/// The version of a request without either.
const PLAIN: u32 = 1;

/// A request, with the ids and versions that were fixed when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedRequest {
    /// The request of the caller, without the input.
    pub request: QueuedRunRequest,
    /// The input messages, with the ids assigned to them.
    pub input: Vec<Message>,
    /// The versions of the agents.
    pub pinned: PinnedAgents,
}

/// The request of the caller, without the input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedRunRequest {
    /// The session to continue.
    pub base_session_id: Option<SessionId>,
    /// The session whose environment the run begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_from: Option<SessionId>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// Always empty, since the input is stored beside the request. Earlier versions expect the
    /// field.
    #[serde(skip_deserializing)]
    pub input: [(); 0],
    /// The answers to the open calls of the session.
    #[serde(default, skip_serializing_if = "Answers::is_empty")]
    pub answers: Answers,
    /// How the caller follows the run.
    pub mode: RunMode,
    /// How much of the run outlives its worker.
    pub durability: Option<DurabilityChoice>,
    /// The priority among the runs of the tenant.
    pub priority: i16,
    /// The thread to continue and to move.
    pub thread: Option<ThreadName>,
    /// What to do when the thread has another active run.
    pub if_busy: IfBusy,
    /// Where the webhooks of the run go.
    pub webhook: Option<RunWebhook>,
    /// The idempotency key.
    pub idempotency: Option<QueuedKey>,
    /// The model to use instead of the session's or the agent's.
    pub model: Option<ModelRef>,
    /// Settings that override the agent's definition for the session, from this run on.
    #[serde(default, skip_serializing_if = "OverrideChanges::is_empty")]
    pub overrides: OverrideChanges,
    /// The limits of the run.
    pub budget: ExecutionBudget,
    /// Key-value pairs for the run's record and the session's metadata.
    pub metadata: Object,
    /// Variables to set in the environment; `null` removes one.
    pub variables: BTreeMap<String, Value>,
    /// The form of the final response.
    pub response_format: Option<ResponseFormat>,
    /// What to do when another run continues the same base.
    pub conflict: ConflictPolicy,
    /// What happens when the caller disconnects.
    #[serde(skip_deserializing)]
    pub on_disconnect: QueuedDisconnect,
    /// What the caller's API key allows.
    #[serde(default, skip_serializing_if = "RunLimits::is_empty")]
    pub limits: RunLimits,
    /// Which events the run emits in addition to its own.
    #[serde(default)]
    pub events: QueuedEventOptions,
    /// The id of the HTTP request, for the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// An idempotency key and the hash of its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedKey {
    /// The key.
    pub key: String,
    /// The hash.
    pub digest: Hash,
}

/// What happens when the caller disconnects. A queued run has no caller, but earlier versions
/// expect a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedDisconnect {
    /// The run is cancelled.
    #[default]
    Cancel,
}

/// Which events a run emits in addition to its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueuedEventOptions {
    /// The events of its subagents.
    pub subagents: bool,
}

/// The versions of the agents with which a run was accepted; empty for a new run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedAgents {
    /// The run's own agent.
    pub agent: Option<Hash>,
    /// The agent instance of a new line of sessions.
    pub agent_id: Option<AgentId>,
    /// The agents that it may delegate to, by name.
    pub team: BTreeMap<String, Hash>,
}

/// The stored JSON with its version.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    accepted: T,
}

impl QueuedRequest {
    /// Encodes the request as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Versioned {
            version: self.version(),
            accepted: self,
        })
    }

    /// Returns the oldest version that has everything in the request.
    fn version(&self) -> u32 {
        if !self.request.answers.is_empty() {
            NEWEST
        } else if self.request.environment_from.is_some() {
            WITH_ENVIRONMENT
        } else if self.request.overrides.is_empty() {
            PLAIN
        } else {
            WITH_OVERRIDES
        }
    }

    /// Decodes a request of any version.
    pub fn from_json(json: &str) -> Result<Self, UnreadableRequest> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let damaged = |error: serde_json::Error| UnreadableRequest::Damaged(error.to_string());
        let Version { version } = serde_json::from_str(json).map_err(damaged)?;
        if version > NEWEST {
            return Err(UnreadableRequest::Newer(format!("its form is {version}")));
        }
        let versioned: Versioned<Self> = serde_json::from_str(json).map_err(damaged)?;
        Ok(versioned.accepted)
    }
}

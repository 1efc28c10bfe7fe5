//! What a caller asks of a run, already parsed and checked for form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::Refusal;
use crate::agent::state::ExecutionBudget;
use crate::agent::{DurabilityChoice, RunWebhook};
use crate::clock::Timestamp;
use crate::ids::{MessageId, SessionId};
use crate::json::{Object, Value};
use crate::limits::RunLimits;
use crate::message::{ContentPart, Message, MessageTags, Role, Section};
use crate::model_ref::{ModelRef, ResponseFormat};
use crate::record::{RunMode, ThreadName};
use crate::session::{Hash, OverrideChanges};
use crate::store::{ConflictPolicy, IfBusy};

/// A request to run an agent.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The session to continue; none for a new line of sessions.
    pub base_session_id: Option<SessionId>,
    /// The agent; by default the base session's, or else the configured default.
    pub agent: Option<String>,
    /// The messages to add; at least one.
    pub input: Vec<InputMessage>,
    /// How the caller follows the run.
    pub mode: RunMode,
    /// How much of the run outlives its worker; by default the agent's. Of a run that was accepted,
    /// what is in force.
    pub durability: Option<DurabilityChoice>,
    /// Among the runs of a tenant, those of a higher priority leave the queue first.
    pub priority: i16,
    /// The thread to continue and to move, in place of a base session.
    pub thread: Option<ThreadName>,
    /// What to do when the thread has another active run.
    pub if_busy: IfBusy,
    /// The webhook that receives the run's end; by default the agent's.
    pub webhook: Option<RunWebhook>,
    /// The caller's name for the request, by which a repeated one is known.
    pub idempotency: Option<RequestKey>,
    /// The model to use instead of the session's or the agent's.
    pub model: Option<ModelRef>,
    /// What the session shall set instead of its agent's definition from this run on.
    pub overrides: OverrideChanges,
    /// Limits; those that are absent come from the agent.
    pub budget: ExecutionBudget,
    /// Key-value pairs for the run's record and the session's metadata.
    pub metadata: Object,
    /// Variables to set in the environment; `null` removes one.
    pub variables: BTreeMap<String, Value>,
    /// The shape of the final answer, for this session and those that continue it.
    pub response_format: Option<ResponseFormat>,
    /// What to do when another run continues the same base.
    pub conflict: ConflictPolicy,
    /// What to do when the caller goes away.
    pub on_disconnect: OnDisconnect,
    /// What the caller's API key allows.
    pub limits: RunLimits,
    /// Which events the run emits beside its own.
    pub events: EventOptions,
    /// The id of the HTTP request, for the log.
    pub request_id: Option<String>,
}

/// Which events a run emits beside its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventOptions {
    /// Those of its subagents, each as a `subagent.event`.
    pub subagents: bool,
}

impl RunRequest {
    /// Returns whether the request asks for a run that outlives this process.
    pub(super) fn asks_for_queue(&self) -> bool {
        self.mode == RunMode::Async
            || self.idempotency.is_some()
            || self.thread.is_some()
            || self.durability == Some(DurabilityChoice::Step)
    }
}

/// The caller's name for a request, and the hash of what it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// The name.
    pub key: String,
    /// The hash.
    pub digest: Hash,
}

impl RequestKey {
    /// Refuses the request if the key is that of another one.
    pub(super) fn check(&self, known_digest: Hash) -> Result<(), Refusal> {
        if self.digest == known_digest {
            Ok(())
        } else {
            Err(Refusal::OtherRequest { key: self.key.clone() })
        }
    }
}

/// A message of the caller.
#[derive(Debug, Clone)]
pub struct InputMessage {
    /// Who says it.
    pub role: Role,
    /// The speaker's name.
    pub name: Option<String>,
    /// The section of the message store.
    pub section: Section,
    /// What is said.
    pub content: Vec<ContentPart>,
    /// Key-value pairs of the caller.
    pub metadata: Object,
}

impl InputMessage {
    /// Returns the message with an id and a time.
    pub(super) fn into_message(self, id: MessageId, now: Timestamp) -> Message {
        Message {
            name: self.name,
            metadata: self.metadata,
            tags: MessageTags {
                section: self.section,
                ..MessageTags::default()
            },
            ..Message::new(id, self.role, self.content, now)
        }
    }
}

/// What happens to a run whose caller goes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is cancelled and publishes nothing.
    #[default]
    Cancel,
    /// It is stopped and publishes what there is.
    Stop,
    /// It goes on and commits.
    Continue,
}

//! Identifiers: one newtype over a UUID per kind, all listed here. No IO; values come from an
//! injected [`IdSource`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;

/// Supplies the UUIDs of new identifiers.
pub trait IdSource: Send + Sync + fmt::Debug {
    /// Returns a UUID that was never returned before.
    fn next_uuid(&self) -> Uuid;
}

/// Supplies UUIDs of version 7, which sort by the time of their creation.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidV7Source;

impl IdSource for UuidV7Source {
    fn next_uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// The error of a text that is not a hyphenated UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {kind} is a UUID such as 0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11")]
pub struct ParseIdError {
    /// The kind of the expected id, such as `session_id`.
    pub kind: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(transparent)]
        #[schema(value_type = Uuid)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a new identifier from the source.
            pub fn generate(source: &dyn IdSource) -> Self {
                Self(source.next_uuid())
            }

            /// Wraps a UUID that is known to be an identifier of this kind.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// Returns the UUID, for storage.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }

            /// Returns an id below all ids that are made from a time on, in whole milliseconds, and
            /// above all earlier ones.
            pub fn first_at(time: Timestamp) -> Self {
                let milliseconds = u128::try_from(time.timestamp_millis()).unwrap_or(0);
                Self(Uuid::from_u128(milliseconds << 80))
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let hyphenated = uuid::fmt::Hyphenated::from_str(text);
                hyphenated.map(|id| Self(id.into_uuid())).map_err(|_| ParseIdError { kind: $kind })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )+};
}

ids! {
    /// Names one execution instance.
    RunId = "run_id";
    /// Names one committed, immutable bundle.
    SessionId = "session_id";
    /// Names one agent instance, which lives as long as its line of sessions.
    AgentId = "agent_id";
    /// Names one execution inside an agent's state. The execution of a run's own agent has the UUID
    /// of the run, so the messages of a history name their run.
    ExecutionId = "execution_id";
    /// Names one step of an execution.
    StepId = "step_id";
    /// Names one message of a history.
    MessageId = "message_id";
    /// Names one request to a model.
    ModelRequestId = "request_id";
    /// Names one execution of a tool.
    ToolExecutionId = "tool_execution_id";
    /// Names one branch of stored history segments.
    BranchId = "branch_id";
    /// Names one message of a webhook.
    DeliveryId = "delivery_id";
    /// Names one process that works on runs.
    WorkerId = "worker_id";
    /// Names one command that waits for a worker or runs at one.
    CommandId = "command_id";
    /// Names one API key; it is not the key.
    ApiKeyId = "key_id";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_parses_from_its_own_text_only() {
        let id = RunId::generate(&UuidV7Source);
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "abc",
            "0197f3c21b1e7c3a9d543f1f0a6f8c11",
            "{0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11}",
        ] {
            assert_eq!(bad.parse::<RunId>(), Err(ParseIdError { kind: "run_id" }), "{bad}");
        }
    }

    #[test]
    fn ids_sort_by_creation() {
        let ids: Vec<_> = (0..100).map(|_| SessionId::generate(&UuidV7Source)).collect();
        assert!(ids.is_sorted());
    }
}

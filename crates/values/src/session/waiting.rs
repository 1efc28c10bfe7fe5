//! The open step of a waiting session: a step whose calls need answers of the caller.
//!
//! The step is not part of the history until all of its calls have results. So the history of a
//! waiting session is valid like any other, and every provider accepts it.

use serde::{Deserialize, Serialize};

use super::hash::Hash;
use super::tool_pins::PinnedTool;
use crate::clock::Timestamp;
use crate::ids::RunId;
use crate::json::{Value, canonical_bytes};
use crate::trace_context::TraceContext;

/// A step that waits for answers of the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitingStep {
    /// The run that left the step open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The span of that run, if it was recorded. The run that answers links to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub trace: Option<TraceContext>,
    /// The number of messages in the history when the step was left open. A session with another
    /// number was continued by a version of the service that knows no answers. It does not wait.
    pub message_count: u64,
    /// The calls that need answers, in their order.
    pub open_calls: Vec<OpenCall>,
    /// The client tools of the request, which the run that answers has, too. In the form of an
    /// agent's definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    pub client_tools: Vec<Value>,
    /// The step so far: the completion, and the results of the other calls.
    #[schema(value_type = Object)]
    pub step: Value,
}

/// A tool call that needs an answer of the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpenCall {
    /// The id of the call.
    pub call_id: String,
    /// The kind of answer that the call needs.
    pub kind: OpenCallKind,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, with the changes of hooks.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// The hash of the arguments. An answer repeats it.
    pub arguments_hash: Hash,
    /// The JSON Schema of the result of a client tool, of edited arguments, or of the input.
    pub response_schema: Value,
    /// When the call counts as denied.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub expires_at: Timestamp,
    /// The approval rule that applies, if an approval may be remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembers: Option<Hash>,
    /// The changed definition of the tool that an approval accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<PinnedTool>,
    /// Why the call needs an answer, unless the agent's own definition says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer that an open call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenCallKind {
    /// A result: the caller executes the tool.
    Client,
    /// A decision: the service executes the tool once the caller has approved the call.
    Approval,
    /// Input that the tool asked for during the call: the service continues the call with it.
    Input,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// An approval that covers later calls of a session and of its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RememberedApproval {
    /// The name of the tool.
    pub tool: String,
    /// The rule that asked for the approval. A changed rule asks again.
    pub rule: Hash,
}

impl OpenCall {
    /// Returns whether the time for an answer has passed.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

/// Hashes the canonical JSON of the arguments of a call.
pub fn hash_arguments(arguments: &Value) -> Hash {
    hash_value("agent-runtime arguments v1", arguments)
}

/// Hashes the canonical JSON of an approval rule.
pub fn hash_approval_rule<T: Serialize>(rule: &T) -> Hash {
    hash_value("agent-runtime approval rule v1", rule)
}

fn hash_value<T: Serialize>(domain: &str, value: &T) -> Hash {
    // Only maps with other keys than texts can't be written, and these values have none.
    let bytes = canonical_bytes(value).unwrap_or_default();
    Hash::from(blake3::derive_key(domain, &bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_of_arguments_ignores_the_order_of_keys_and_nothing_else() {
        let parse = |text: &str| hash_arguments(&serde_json::from_str(text).unwrap());
        let hash = parse(r#"{"a": 1, "b": [2, "x"]}"#);
        assert_eq!(
            hash.to_string(),
            hash_arguments(&json!({"b": [2, "x"], "a": 1})).to_string()
        );
        for other in [
            r#"{"a": 1, "b": [2, "y"]}"#,
            r#"{"a": 1.0, "b": [2, "x"]}"#,
            r#"{"a": 1, "b": ["x", 2]}"#,
            "{}",
        ] {
            assert_ne!(parse(other), hash, "{other}");
        }
    }
}

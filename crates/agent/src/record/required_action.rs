//! The action of a caller that a waiting session needs, as callers see it. Data only.

use serde::Serialize;
use utoipa::ToSchema;

use values::clock::Timestamp;
use values::json::{Value, is_default, json_length, json_length_within};
use values::session::{Hash, OpenCall, OpenCallKind};

/// The answers that a waiting session needs, all of them in one request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = RequiredAction)]
pub struct RequiredActionView {
    /// The open calls, in their order.
    calls: Vec<OpenCallView>,
    /// The number of further open calls, which `calls` does not show. Only problems and the list of
    /// approvals leave calls out.
    #[serde(skip_serializing_if = "is_default")]
    #[schema(required = false)]
    omitted_calls: usize,
    /// The `answers` of a request, to be filled in: one for each open call.
    answers: Vec<AnswerStub>,
}

/// An open call.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = RequiredCall)]
struct OpenCallView {
    /// The id of the call within the session.
    call_id: String,
    /// `client`: the caller executes the tool. `approval`: the service executes it after a
    /// decision. `input`: an MCP server asks for input, and the service continues the call with it.
    kind: OpenCallKind,
    /// The name of the tool.
    tool: String,
    /// The arguments of the model. Hooks may have changed them.
    #[schema(value_type = Object)]
    arguments: Value,
    /// The BLAKE3 hash of the arguments as canonical JSON. An answer repeats it, so that it never
    /// reaches a call that its author has not seen.
    arguments_hash: Hash,
    /// The JSON Schema of the `result` of a client tool or of the input, or of the `arguments` of
    /// an edit.
    response_schema: Value,
    /// Whether an approval may cover later calls.
    may_remember: bool,
    /// When the call counts as denied.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    expires_at: Timestamp,
    /// Why the call needs an answer, if no rule of the agent says so: the question of an MCP
    /// server, or that its tool has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    reason: Option<String>,
}

/// An answer to be filled in.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
struct AnswerStub {
    /// The id of the call.
    call_id: String,
    /// The hash of the arguments.
    arguments_hash: Hash,
    /// To be replaced by the result of a client tool, or by the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = Object, nullable)]
    result: Option<Blank>,
    /// To be replaced by `approve`, `deny` or `edit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String, nullable)]
    decision: Option<Blank>,
}

/// A value to be filled in: `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Blank;

impl RequiredActionView {
    /// Shows open calls; `None` if there are none.
    pub fn new(calls: &[OpenCall]) -> Option<Self> {
        let calls: Vec<&OpenCall> = calls.iter().collect();
        let shown = calls.iter().copied().map(OpenCallView::from).collect();
        Self::with_shown(&calls, shown)
    }

    /// Shows the first calls that are still open, of at most `most` bytes as JSON altogether, and
    /// the answers to all of them. Reads not much more of the calls.
    pub fn within(calls: &[OpenCall], most: usize, now: Timestamp) -> Option<Self> {
        let calls: Vec<&OpenCall> = calls.iter().filter(|call| !call.is_expired(now)).collect();
        let mut left = most;
        let shown = calls.iter().copied().map_while(|call| {
            // A call that is too large is not copied.
            json_length_within(call, left)?;
            let view = OpenCallView::from(call);
            left = left.checked_sub(json_length(&view))?;
            Some(view)
        });
        let shown = shown.collect();
        Self::with_shown(&calls, shown)
    }

    fn with_shown(calls: &[&OpenCall], shown: Vec<OpenCallView>) -> Option<Self> {
        (!calls.is_empty()).then(|| Self {
            omitted_calls: calls.len() - shown.len(),
            calls: shown,
            answers: calls.iter().copied().map(AnswerStub::from).collect(),
        })
    }

    /// Returns how many of the calls are not shown.
    pub fn omitted_calls(&self) -> usize {
        self.omitted_calls
    }
}

impl From<&OpenCall> for OpenCallView {
    fn from(call: &OpenCall) -> Self {
        Self {
            call_id: call.call_id.clone(),
            kind: call.kind,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            arguments_hash: call.arguments_hash,
            response_schema: call.response_schema.clone(),
            may_remember: call.remembers.is_some(),
            expires_at: call.expires_at,
            reason: call.reason.clone(),
        }
    }
}

impl From<&OpenCall> for AnswerStub {
    fn from(call: &OpenCall) -> Self {
        Self {
            call_id: call.call_id.clone(),
            arguments_hash: call.arguments_hash,
            result: matches!(call.kind, OpenCallKind::Client | OpenCallKind::Input).then_some(Blank),
            decision: (call.kind == OpenCallKind::Approval).then_some(Blank),
        }
    }
}

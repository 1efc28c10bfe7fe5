//! The end of a run: its outcome, with the calls that wait for the page, and its usage.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;

use crate::http::faces::chat::tool_call_id;
use agent::record::{RunStatus, RunSummary};
use agent::state::StopReason;
use values::clock::Timestamp;
use values::ids::StepId;
use values::json::Value;
use values::model_ref::ModelRef;
use values::session::{OpenCall, OpenCallKind};
use values::usage::Usage;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(in crate::http) enum Outcome {
    Success {
        /// The calls of tools of the page, which it executes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    /// Somebody has to answer.
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
    Cancelled,
}

/// The metadata of the end of a run that has stopped before its work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct EndMetadata {
    /// The reason.
    stop_reason: StopReason,
}

/// A call that waits for a person or an application.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct Interrupt {
    /// Names it: the id of the call.
    id: String,
    /// `tool_call` for an approval, else `input_required`.
    reason: &'static str,
    message: String,
    tool_call_id: String,
    /// The JSON Schema of the payload, if it is an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
    expires_at: Timestamp,
    metadata: InterruptMetadata,
}

/// The call itself, with the arguments that hooks may have changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct InterruptMetadata {
    tool_name: String,
    arguments: Value,
}

impl Outcome {
    /// A run that has done its work.
    pub(in crate::http) const SUCCESS: Self = Self::Success {
        pending_tool_call_ids: Vec::new(),
    };

    /// Makes the outcome of a run that leaves no calls open, with the reason of an early end.
    pub(in crate::http) fn of_end(run: &RunSummary) -> (Self, Option<EndMetadata>) {
        let is_called_off = run.status == RunStatus::Cancelled || run.stop_reason == Some(StopReason::UserRequested);
        if is_called_off {
            return (Self::Cancelled, None);
        }
        let limit = run.stop_reason.filter(|_| run.status == RunStatus::Stopped);
        (Self::SUCCESS, limit.map(|stop_reason| EndMetadata { stop_reason }))
    }

    /// Makes the outcome of a run with open calls. The page has `tools`.
    pub(in crate::http) fn of_open_calls(step: StepId, open_calls: &[OpenCall], tools: &BTreeSet<String>) -> Self {
        let (pending, interrupting): (Vec<_>, Vec<_>) = open_calls.iter().partition(|call| !interrupts(call, tools));
        if interrupting.is_empty() {
            let pending = pending.iter().map(|call| tool_call_id(step, &call.call_id));
            return Self::Success {
                pending_tool_call_ids: pending.collect(),
            };
        }
        Self::Interrupt {
            interrupts: interrupting
                .into_iter()
                .map(|call| Interrupt::new(step, call))
                .collect(),
        }
    }
}

/// Returns whether an open call needs more than a tool of the page.
pub(super) fn interrupts(call: &OpenCall, tools: &BTreeSet<String>) -> bool {
    call.kind != OpenCallKind::Client || !tools.contains(&call.tool)
}

impl Interrupt {
    fn new(step: StepId, call: &OpenCall) -> Self {
        let id = tool_call_id(step, &call.call_id);
        let (reason, words, schema) = match call.kind {
            OpenCallKind::Approval => ("tool_call", "needs an approval", approval_schema(call)),
            OpenCallKind::Input => ("input_required", "asks for input", call.response_schema.clone()),
            OpenCallKind::Client | OpenCallKind::Unknown => {
                ("input_required", "needs a result", call.response_schema.clone())
            }
        };
        let message = match &call.reason {
            Some(reason) => format!("{} {words}: {reason}", call.tool),
            None => format!("{} {words}", call.tool),
        };
        Self {
            id: id.clone(),
            reason,
            message,
            tool_call_id: id,
            response_schema: Some(schema).filter(Value::is_object),
            expires_at: call.expires_at,
            metadata: InterruptMetadata {
                tool_name: call.tool.clone(),
                arguments: call.arguments.clone(),
            },
        }
    }
}

fn approval_schema(call: &OpenCall) -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": call.response_schema,
            "reason": {"type": "string"},
        },
        "required": ["approved"],
    })
}

/// The tokens of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct TokenUsage {
    provider: String,
    model: String,
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
}

impl TokenUsage {
    pub(super) fn new(model: &ModelRef, usage: &Usage) -> Self {
        Self {
            provider: model.provider().to_owned(),
            model: model.model().to_owned(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cache_read_tokens,
            cache_write_input_tokens: usage.cache_write_tokens,
        }
    }
}

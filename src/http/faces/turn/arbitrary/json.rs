//! Events, and the parts of what is stored, as JSON.

use serde_json::{Value, json};
use uuid::Uuid;

use super::plan::{CallPlan, Kind};
use agent::record::RunEvent;
use values::session::hash_arguments;

pub(in crate::http) const RUN: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
pub(in crate::http) const TIME: &str = "2026-01-01T00:00:00Z";

pub(in crate::http) fn event(sequence: usize, kind: &str, data: &Value) -> RunEvent {
    let event = json!({"sequence": sequence, "run_id": RUN, "time": TIME, "type": kind, "data": data});
    serde_json::from_value(event).unwrap()
}

pub(in crate::http) fn summary(status: &str) -> Value {
    let has_ended = !["queued", "running"].contains(&status);
    json!({
        "run_id": RUN, "session_id": RUN, "base_session_id": null, "agent": "a", "agent_version": null,
        "model": "m/m", "mode": "stream", "status": status, "stop_reason": null,
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}, "step_count": 1, "error": null,
        "metadata": {}, "created_at": TIME, "started_at": TIME, "completed_at": has_ended.then_some(TIME),
    })
}

pub(super) fn step_record(number: usize, id: usize, step_type: &str, messages: &[Value]) -> Value {
    json!({
        "step_number": number + 1, "step_id": step_id(id), "step_type": step_type, "finish_reason": null,
        "model": null, "usage": {}, "started_at": TIME, "completed_at": TIME, "duration_ms": 1,
        "tool_executions": [], "errors": [], "messages": messages,
    })
}

pub(super) fn message(role: &str, content: &[Value], is_trace: bool) -> Value {
    json!({
        "id": RUN, "role": role, "content": content, "tags": {"is_trace": is_trace}, "created_at": TIME,
        "provider_fields": (role == "assistant").then(|| json!({"provider": "p", "model": "m", "fields": []})),
    })
}

/// The maker of a result: the verdict, and whether the agent has no such tool.
pub(super) type Maker = (&'static str, bool);

pub(super) fn maker_of(call: CallPlan) -> Maker {
    ("executed", call == CallPlan::Refused)
}

pub(super) fn execution(index: usize, is_error: bool, (verdict, is_foreign): Maker) -> Value {
    json!({
        "id": RUN, "call_id": call_id(index), "name": "f", "is_error": is_error, "verdict": verdict,
        "is_foreign": is_foreign, "started_at": TIME, "completed_at": TIME, "duration_ms": 1,
    })
}

pub(super) fn step_id(index: usize) -> String {
    Uuid::from_u128(index as u128 + 1).to_string()
}

pub(super) fn call_id(index: usize) -> String {
    // Some models use an id again in another step.
    format!("call_{index}")
}

/// Models write more spaces than the service.
pub(super) fn arguments(index: usize) -> String {
    format!(r#"{{"x": {index}}}"#)
}

pub(super) fn result_of(call: CallPlan) -> (Value, bool) {
    let picture = json!({"type": "image", "source": {"kind": "url", "url": "https://example.org/a.png"}});
    match call {
        CallPlan::Fails | CallPlan::Refused => (json!([{"type": "text", "text": "bad"}]), true),
        CallPlan::FailsToDraw => (json!([{"type": "text", "text": "bad"}, picture]), true),
        CallPlan::Draws => (json!([picture]), false),
        CallPlan::Succeeds | CallPlan::Client | CallPlan::Approval => {
            (json!([{"type": "text", "text": "good"}]), false)
        }
    }
}

pub(super) fn part((kind, word): &(Kind, String)) -> Value {
    match kind {
        Kind::Reasoning => json!({"type": "reasoning", "text": word, "signature": "s"}),
        Kind::PlainReasoning => json!({"type": "reasoning", "text": word}),
        Kind::HiddenReasoning => json!({"type": "reasoning", "text": "", "encrypted": word}),
        Kind::Text => json!({"type": "text", "text": word}),
        Kind::Refusal => json!({"type": "refusal", "text": word}),
    }
}

/// A part of a completion that was cut has only what has arrived in events.
pub(super) fn cut_part((kind, word): &(Kind, String)) -> Option<Value> {
    match kind {
        Kind::HiddenReasoning => None,
        Kind::Reasoning => Some(part(&(Kind::PlainReasoning, word.clone()))),
        kind => Some(part(&(*kind, word.clone()))),
    }
}

pub(super) fn call_part(index: usize) -> Value {
    json!({"type": "tool_call", "id": call_id(index), "name": "f", "arguments": arguments(index)})
}

pub(super) fn result_part(index: usize, (content, is_error): &(Value, bool)) -> Value {
    json!({"type": "tool_result", "call_id": call_id(index), "name": "f", "content": content, "is_error": is_error})
}

pub(super) fn open_call(index: usize, call: CallPlan) -> Value {
    let kind = if call == CallPlan::Client { "client" } else { "approval" };
    let arguments = json!({"x": index});
    json!({
        "call_id": call_id(index), "kind": kind, "tool": "f", "arguments_hash": hash_arguments(&arguments),
        "arguments": arguments, "response_schema": true, "expires_at": "2026-01-02T00:00:00Z",
    })
}

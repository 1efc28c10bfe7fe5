//! Estimates the memory of events and records. The estimates are rough, since they must be cheap
//! enough to run for every event.

use super::event::RunEventPayload;
use super::run::{RunRecord, RunSummary};
use crate::AgentEvent;
use values::json::{object_weight, value_weight};
use values::message::{content_weight, message_weight};
use values::session::OpenCall;

/// What an event weighs besides its text.
const EVENT_BYTES: usize = 512;
/// What a record or a message of it weighs besides its text.
const RECORD_BYTES: usize = 1024;

/// Estimates how many bytes of memory an event takes.
pub fn event_weight(payload: &RunEventPayload) -> usize {
    let rest = match payload {
        RunEventPayload::Agent(event) => text_of_event(event),
        RunEventPayload::Completed(record)
        | RunEventPayload::Stopped(record)
        | RunEventPayload::Waiting(record)
        | RunEventPayload::Failed(record)
        | RunEventPayload::Cancelled(record) => record_weight(record),
        RunEventPayload::Started(summary) => weight_of_summary(summary),
        RunEventPayload::Resumed { .. } | RunEventPayload::SessionCommitted { .. } => 0,
    };
    EVENT_BYTES + rest
}

fn text_of_event(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::MessageDelta { text, .. } | AgentEvent::ReasoningDelta { text, .. } => text.len(),
        AgentEvent::ToolCallDelta { arguments, .. } => arguments.len(),
        AgentEvent::ToolCallOutput { call_id, text, .. } => call_id.len() + text.len(),
        AgentEvent::ToolCallCompleted { arguments, content, .. } => arguments.len() + content_weight(content),
        AgentEvent::SubagentEvent { event, .. } => EVENT_BYTES + text_of_event(event),
        AgentEvent::ModelResponded { error, .. } => error.as_ref().map_or(0, |error| error.message.len()),
        AgentEvent::StateChanged { hook, metadata, .. } => hook.len() + object_weight(metadata),
        AgentEvent::HookWarned { hook, message, .. } => hook.len() + message.len(),
        AgentEvent::ServerWarned { problems, .. } => problems.iter().map(String::len).sum(),
        AgentEvent::ContinuationEvaluated { message, context, .. }
        | AgentEvent::ExecutionEnded { message, context, .. } => {
            message.as_ref().map_or(0, String::len) + object_weight(context)
        }
        AgentEvent::ToolCallStarted { call_id, name, .. } => call_id.len() + name.len(),
        AgentEvent::SubagentStarted { call_id, agent, .. } | AgentEvent::SubagentCompleted { call_id, agent, .. } => {
            call_id.len() + agent.len()
        }
        // Ids, figures and short names.
        AgentEvent::ExecutionStarted { .. }
        | AgentEvent::StepStarted { .. }
        | AgentEvent::MessageApplied { .. }
        | AgentEvent::ModelRequested { .. }
        | AgentEvent::HistoryCompacted { .. }
        | AgentEvent::StepCompleted { .. } => 0,
    }
}

/// Estimates how many bytes of memory a record takes.
pub fn record_weight(record: &RunRecord) -> usize {
    let messages = record.output.iter();
    let weights = messages.map(|message| RECORD_BYTES + message_weight(message));
    let signal = record.stop_signal.as_ref();
    weight_of_summary(&record.summary)
        + weights.sum::<usize>()
        + record.value.as_ref().map_or(0, value_weight)
        + signal.map_or(0, |signal| signal.message.len() + object_weight(&signal.context))
        + record.open_calls.iter().map(weight_of_open_call).sum::<usize>()
}

fn weight_of_open_call(call: &OpenCall) -> usize {
    RECORD_BYTES + value_weight(&call.arguments) + value_weight(&call.response_schema)
}

fn weight_of_summary(summary: &RunSummary) -> usize {
    let error = summary.error.as_ref();
    RECORD_BYTES + object_weight(&summary.metadata) + error.map_or(0, |error| error.message.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_weighs_at_least_the_texts_that_it_holds() {
        let long = "x".repeat(100_000);
        let id = "01a2029f-3aaa-7738-ac15-a93ea52f3917";
        let error = json!({"kind": "model", "code": "c", "message": long});
        let ended = json!({
            "execution_id": id, "status": "completed", "reason": "completed", "was_force_stopped": false,
            "message": null, "context": {"limit": [{"deep": long}]}, "step_count": 1, "usage": {}, "duration_ms": 1,
        });
        let changed = json!({
            "step_number": 1, "hook": "h", "point": "before_step", "changes": ["metadata"], "metadata": {"k": long},
        });
        let responded = json!({
            "step_number": 1, "request_id": id, "model": "a/b", "finish_reason": null, "usage": {}, "error": error,
            "duration_ms": 1,
        });
        let warned = json!({"step_number": 1, "hook": "h", "message": long});
        let below = json!({
            "step_number": 1, "call_id": "c", "agent_id": id, "depth": 1,
            "event": {"type": "hook.warned", "data": warned},
        });
        for (name, data) in [
            ("execution.ended", ended),
            ("state.changed", changed),
            ("model.responded", responded),
            ("hook.warned", warned),
            ("server.warned", json!({"server": "s", "problems": [long]})),
            ("subagent.event", below),
        ] {
            let event = json!({"type": name, "data": data});
            let event: RunEventPayload = serde_json::from_value(event).unwrap();
            assert!(event_weight(&event) > long.len(), "{name}");
        }
    }
}

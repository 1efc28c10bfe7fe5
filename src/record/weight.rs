//! About how much memory events, records and messages take. An estimate, since it is asked for with every event and every request to a model.

use super::event::RunEventPayload;
use super::run::{RunRecord, RunSummary};
use crate::agent::AgentEvent;
use crate::json::{Object, Value};
use crate::message::{Citation, ContentPart, MediaSource, Message};

/// What an event weighs besides its text.
const EVENT_BYTES: usize = 512;
/// What a record or a message weighs besides its text.
const RECORD_BYTES: usize = 1024;
/// What an entry of an object or an array weighs besides its text.
const ENTRY_BYTES: usize = 64;

/// Estimates how many bytes of memory an event takes.
pub fn event_weight(payload: &RunEventPayload) -> usize {
    let rest = match payload {
        RunEventPayload::Agent(event) => text_of_event(event),
        RunEventPayload::Completed(record)
        | RunEventPayload::Stopped(record)
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
        AgentEvent::ToolCallCompleted { arguments, content, .. } => arguments.len() + weight_of_content(content),
        AgentEvent::SubagentEvent { event, .. } => EVENT_BYTES + text_of_event(event),
        AgentEvent::ModelResponded { error, .. } => error.as_ref().map_or(0, |error| error.message.len()),
        AgentEvent::StateChanged { hook, metadata, .. } => hook.len() + weight_of_object(metadata),
        AgentEvent::HookWarned { hook, message, .. } => hook.len() + message.len(),
        AgentEvent::ContinuationEvaluated { message, context, .. }
        | AgentEvent::ExecutionEnded { message, context, .. } => {
            message.as_ref().map_or(0, String::len) + weight_of_object(context)
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
        + record.value.as_ref().map_or(0, weight_of_value)
        + signal.map_or(0, |signal| signal.message.len() + weight_of_object(&signal.context))
}

fn weight_of_summary(summary: &RunSummary) -> usize {
    let error = summary.error.as_ref();
    RECORD_BYTES + weight_of_object(&summary.metadata) + error.map_or(0, |error| error.message.len())
}

fn weight_of_object(object: &Object) -> usize {
    let entries = object.iter();
    entries
        .map(|(key, value)| ENTRY_BYTES + key.len() + weight_of_value(value))
        .sum()
}

fn weight_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| ENTRY_BYTES + weight_of_value(item)).sum(),
        Value::Object(object) => weight_of_object(object),
    }
}

/// Estimates how many bytes of memory a message takes.
pub fn message_weight(message: &Message) -> usize {
    let fields = message.provider_fields.iter().flat_map(|given| &given.fields);
    let fields = fields.map(|(name, json)| ENTRY_BYTES + name.len() + json.as_str().len());
    ENTRY_BYTES + weight_of_content(&message.content) + fields.sum::<usize>() + weight_of_object(&message.metadata)
}

fn weight_of_content(parts: &[ContentPart]) -> usize {
    parts.iter().map(|part| ENTRY_BYTES + text_of_part(part)).sum()
}

fn text_of_part(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(part) => {
            let citations = part
                .citations
                .iter()
                .map(|Citation(json)| ENTRY_BYTES + json.as_str().len());
            part.text.len() + length(part.signature.as_ref()) + citations.sum::<usize>()
        }
        ContentPart::Refusal { text } => text.len(),
        ContentPart::Image(part) => text_of_source(&part.source) + length(part.detail.as_ref()),
        ContentPart::Document(part) => text_of_source(&part.source) + length(part.name.as_ref()),
        ContentPart::ToolCall(call) => {
            call.id.len() + call.name.len() + call.arguments.len() + length(call.signature.as_ref())
        }
        ContentPart::ToolResult(result) => {
            result.call_id.len() + result.name.len() + weight_of_content(&result.content)
        }
        ContentPart::Reasoning(part) => {
            let others = [&part.signature, &part.encrypted, &part.id];
            part.text.len() + others.into_iter().map(|other| length(other.as_ref())).sum::<usize>()
        }
        ContentPart::Opaque(part) => part.raw.as_str().len(),
        ContentPart::Unknown(json) => weight_of_value(json),
    }
}

fn text_of_source(source: &MediaSource) -> usize {
    match source {
        MediaSource::Url { url } => url.len(),
        MediaSource::Base64 { media_type, data } => media_type.len() + data.len(),
        MediaSource::ProviderFile { provider, file_id } => provider.len() + file_id.len(),
    }
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
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
            ("subagent.event", below),
        ] {
            let event = json!({"type": name, "data": data});
            let event: RunEventPayload = serde_json::from_value(event).unwrap();
            assert!(event_weight(&event) > long.len(), "{name}");
        }
    }

    #[test]
    fn a_message_weighs_at_least_the_texts_that_it_holds() {
        let long = "x".repeat(100_000);
        let text = |part: Value| json!({"content": [part]});
        let source = json!({"kind": "base64", "media_type": "image/png", "data": long});
        for message in [
            json!({"provider_fields": {"provider": "p", "fields": [["reasoning_details", long]]}}),
            json!({"metadata": {"a": [{"b": long}]}}),
            text(json!({"type": "text", "text": long})),
            text(json!({"type": "text", "text": "", "signature": long})),
            text(json!({"type": "text", "text": "", "citations": [long]})),
            text(json!({"type": "text", "text": "", "citations": vec!["{}"; 2_000]})),
            text(json!({"type": "image", "source": source})),
            text(json!({"type": "document", "source": source, "name": "a"})),
            text(json!({"type": "document", "source": {"kind": "url", "url": "u"}, "name": long})),
            text(json!({"type": "tool_call", "id": "c", "name": "n", "arguments": long})),
            text(json!({"type": "tool_call", "id": "c", "name": "n", "arguments": "{}", "signature": long})),
            text(
                json!({"type": "tool_result", "call_id": "c", "name": "n", "content": [{"type": "refusal", "text": long}]}),
            ),
            text(json!({"type": "reasoning", "text": long})),
            text(json!({"type": "reasoning", "text": "", "signature": long})),
            text(json!({"type": "reasoning", "text": "", "encrypted": long})),
            text(json!({"type": "opaque", "provider": "p", "raw": long})),
            text(json!({"type": "hologram", "depth": [long]})),
            json!({"content": vec![json!({"type": "text", "text": ""}); 2_000]}),
        ] {
            let mut whole = json!({
                "id": "01a2029f-3aaa-7738-ac15-a93ea52f3917", "role": "assistant", "content": [],
                "created_at": "2026-01-02T03:04:05Z",
            });
            let fields = message.as_object().unwrap().clone();
            whole.as_object_mut().unwrap().extend(fields);
            let bytes = whole.to_string().len();
            let weight = message_weight(&serde_json::from_value(whole).unwrap());
            let least = bytes - 256;
            assert!(
                (least..200_000).contains(&weight),
                "{weight} of {bytes}: {:.200}",
                message.to_string()
            );
        }
    }
}

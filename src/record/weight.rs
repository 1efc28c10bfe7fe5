//! About how much memory an event takes. An estimate, since it is asked for with every event.

use super::event::RunEventPayload;
use super::run::RunRecord;
use crate::agent::AgentEvent;
use crate::message::{ContentPart, MediaSource};

/// What an event weighs besides its text.
const EVENT_BYTES: usize = 512;
/// What a record or a message weighs besides its text.
const RECORD_BYTES: usize = 1024;

/// Estimates how many bytes of memory an event takes.
pub fn event_weight(payload: &RunEventPayload) -> usize {
    let rest = match payload {
        RunEventPayload::Agent(event) => text_of_event(event),
        RunEventPayload::Completed(record)
        | RunEventPayload::Stopped(record)
        | RunEventPayload::Failed(record)
        | RunEventPayload::Cancelled(record) => weight_of_record(record),
        RunEventPayload::Started(_) => RECORD_BYTES,
        RunEventPayload::Resumed { .. } | RunEventPayload::SessionCommitted { .. } => 0,
    };
    EVENT_BYTES + rest
}

fn text_of_event(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::MessageDelta { text, .. } | AgentEvent::ReasoningDelta { text, .. } => text.len(),
        AgentEvent::ToolCallDelta { arguments, .. } => arguments.len(),
        AgentEvent::ToolCallCompleted { arguments, content, .. } => arguments.len() + content_weight(content),
        AgentEvent::SubagentEvent { event, .. } => EVENT_BYTES + text_of_event(event),
        _ => 0,
    }
}

fn weight_of_record(record: &RunRecord) -> usize {
    let messages = record.output.iter();
    let weights = messages.map(|message| RECORD_BYTES + content_weight(&message.content));
    RECORD_BYTES + weights.sum::<usize>()
}

/// Returns the bytes of a content's words, pictures and documents.
pub fn content_weight(parts: &[ContentPart]) -> usize {
    parts.iter().map(text_of_part).sum()
}

fn text_of_part(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(part) => part.text.len(),
        ContentPart::Refusal { text } => text.len(),
        ContentPart::Image(part) => text_of_source(&part.source),
        ContentPart::Document(part) => text_of_source(&part.source),
        ContentPart::ToolCall(call) => call.arguments.len(),
        ContentPart::ToolResult(result) => content_weight(&result.content),
        ContentPart::Reasoning(part) => part.text.len() + part.encrypted.as_ref().map_or(0, String::len),
        ContentPart::Opaque(part) => part.raw.as_str().len(),
        ContentPart::Unknown(_) => RECORD_BYTES,
    }
}

fn text_of_source(source: &MediaSource) -> usize {
    match source {
        MediaSource::Url { url } => url.len(),
        MediaSource::Base64 { data, .. } => data.len(),
        MediaSource::ProviderFile { provider, file_id } => provider.len() + file_id.len(),
    }
}

//! About how much memory messages take, and how much JSON. Estimates, since they are asked for with every request to a model.

use super::{Citation, ContentPart, MediaSource, Message};
use crate::json::{escaped_length, object_weight, value_weight};

/// What a message, a part or a field weighs besides its text.
const ENTRY_BYTES: usize = 64;

/// Estimates how many bytes of memory a message takes.
pub fn message_weight(message: &Message) -> usize {
    weigh_message(message, str::len)
}

/// Estimates how many bytes a message takes as JSON.
pub fn message_json_weight(message: &Message) -> usize {
    weigh_message(message, escaped_length)
}

/// Estimates how many bytes of memory parts take.
pub fn content_weight(parts: &[ContentPart]) -> usize {
    weigh_content(parts, str::len)
}

fn weigh_message(message: &Message, text: fn(&str) -> usize) -> usize {
    let fields = message.provider_fields.iter().flat_map(|given| &given.fields);
    let fields = fields.map(|(name, json)| ENTRY_BYTES + name.len() + json.as_str().len());
    ENTRY_BYTES + weigh_content(&message.content, text) + fields.sum::<usize>() + object_weight(&message.metadata)
}

fn weigh_content(parts: &[ContentPart], text: fn(&str) -> usize) -> usize {
    parts.iter().map(|part| ENTRY_BYTES + weigh_part(part, text)).sum()
}

fn weigh_part(part: &ContentPart, text: fn(&str) -> usize) -> usize {
    match part {
        ContentPart::Text(part) => {
            let citations = part
                .citations
                .iter()
                .map(|Citation(json)| ENTRY_BYTES + json.as_str().len());
            text(&part.text) + length(part.signature.as_ref()) + citations.sum::<usize>()
        }
        ContentPart::Refusal { text: words } => text(words),
        ContentPart::Image(part) => weigh_source(&part.source) + length(part.detail.as_ref()),
        ContentPart::Document(part) => weigh_source(&part.source) + length(part.name.as_ref()),
        ContentPart::ToolCall(call) => {
            call.id.len() + call.name.len() + text(&call.arguments) + length(call.signature.as_ref())
        }
        ContentPart::ToolResult(result) => {
            result.call_id.len() + result.name.len() + weigh_content(&result.content, text)
        }
        ContentPart::Reasoning(part) => {
            let others = [&part.signature, &part.encrypted, &part.id];
            text(&part.text) + others.into_iter().map(|other| length(other.as_ref())).sum::<usize>()
        }
        ContentPart::Opaque(part) => part.raw.as_str().len(),
        ContentPart::Unknown(json) => value_weight(json),
    }
}

fn weigh_source(source: &MediaSource) -> usize {
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
    use crate::json::Value;

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

//! Estimates the memory and the JSON size of messages. Only estimates, since every request to a
//! model asks for them.

use super::{Citation, ContentPart, MediaSource, Message};
use crate::json::{ENTRY_BYTES, escaped_length, weigh_object, weigh_value};

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

/// Estimates the bytes of a message; `text` returns the bytes of a text.
pub fn weigh_message(message: &Message, text: fn(&str) -> usize) -> usize {
    let owner = message.provider_fields.as_ref();
    let model = owner.and_then(|owner| owner.model.as_ref());
    let fields = owner.iter().flat_map(|given| &given.fields);
    let fields = fields.map(|(name, json)| ENTRY_BYTES + text(name) + text(json.as_str()));
    ENTRY_BYTES
        + weigh_option(message.name.as_ref(), text)
        + weigh_option(model, text)
        + weigh_content(&message.content, text)
        + fields.sum::<usize>()
        + weigh_object(&message.metadata, text)
}

/// Estimates the bytes of parts; `text` returns the bytes of a text.
pub fn weigh_content(parts: &[ContentPart], text: fn(&str) -> usize) -> usize {
    parts.iter().map(|part| ENTRY_BYTES + weigh_part(part, text)).sum()
}

fn weigh_part(part: &ContentPart, text: fn(&str) -> usize) -> usize {
    match part {
        ContentPart::Text(part) => {
            let citations = part
                .citations
                .iter()
                .map(|Citation(json)| ENTRY_BYTES + text(json.as_str()));
            text(&part.text) + weigh_option(part.signature.as_ref(), text) + citations.sum::<usize>()
        }
        ContentPart::Refusal { text: words } => text(words),
        ContentPart::Image(part) => weigh_source(&part.source, text) + weigh_option(part.detail.as_ref(), text),
        ContentPart::Document(part) => weigh_source(&part.source, text) + weigh_option(part.name.as_ref(), text),
        ContentPart::ToolCall(call) => {
            text(&call.id) + text(&call.name) + text(&call.arguments) + weigh_option(call.signature.as_ref(), text)
        }
        ContentPart::ToolResult(result) => {
            text(&result.call_id) + text(&result.name) + weigh_content(&result.content, text)
        }
        ContentPart::Reasoning(part) => {
            let others = [&part.signature, &part.encrypted, &part.id];
            let others = others.into_iter().map(|other| weigh_option(other.as_ref(), text));
            text(&part.text) + others.sum::<usize>()
        }
        ContentPart::Opaque(part) => text(part.raw.as_str()),
        ContentPart::Unknown(json) => weigh_value(json, text),
    }
}

fn weigh_source(source: &MediaSource, text: fn(&str) -> usize) -> usize {
    match source {
        MediaSource::Url { url } => text(url),
        MediaSource::Base64 { media_type, data } => text(media_type) + text(data),
        MediaSource::ProviderFile { provider, file_id } => text(provider) + text(file_id),
    }
}

fn weigh_option(words: Option<&String>, text: fn(&str) -> usize) -> usize {
    words.map_or(0, |words| text(words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::Value;

    #[test]
    fn a_message_weighs_at_least_the_texts_that_it_holds() {
        for letter in ["x", "\u{1}", "\""] {
            weighs_what_it_holds(&letter.repeat(100_000));
        }
    }

    fn weighs_what_it_holds(long: &str) {
        let text = |part: Value| json!({"content": [part]});
        let source = json!({"kind": "base64", "media_type": "image/png", "data": long});
        for message in [
            json!({"provider_fields": {"provider": "p", "fields": [["reasoning_details", long]]}}),
            json!({"name": long}),
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
            let read: Message = serde_json::from_value(whole).unwrap();
            let (weight, in_memory) = (message_json_weight(&read), message_weight(&read));
            assert!(
                (bytes - 256..bytes + 200_000).contains(&weight) && (100_000..200_000).contains(&in_memory),
                "{weight} and {in_memory} of {bytes}: {:.200}",
                message.to_string()
            );
        }
    }
}

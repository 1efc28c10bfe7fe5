//! A content part of an imported session.
//!
//! Checks parts of a known type strictly, and rejects likely mistakes. A part of an unknown type is
//! retained unchanged, since a later version may define that type.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::codes::ProblemCode;
use crate::http::input::InputSource;
use crate::http::json_body::decode_part;
use crate::http::json_errors::decode_problem;
use crate::http::problem::Problem;
use values::json::{Object, RawJson, Value};
use values::message::{
    Citation, ContentPart, DocumentPart, ImagePart, MediaSource, OpaquePart, ReasoningPart, TextPart, ToolCall,
    ToolResult,
};
use values::spelling::misspelt;

const TYPE: &str = "type";

/// The types of parts.
const KNOWN: [&str; 8] = [
    "text",
    "image",
    "document",
    "tool_call",
    "tool_result",
    "reasoning",
    "refusal",
    "opaque",
];

/// The types of parts in the APIs of providers. No version of the service will use them.
const FOREIGN: [&str; 16] = [
    "image_url",
    "input_text",
    "input_image",
    "input_file",
    "input_audio",
    "output_text",
    "file",
    "function",
    "function_call",
    "function_call_output",
    "tool_use",
    "server_tool_use",
    "thinking",
    "redacted_thinking",
    "inline_data",
    "file_data",
];

/// The fields of a part by its type: exactly the fields of [`ContentPart`].
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ImportPart {
    Text {
        text: String,
        #[serde(default)]
        citations: Vec<Citation>,
        signature: Option<String>,
    },
    Image {
        #[serde(with = "InputSource")]
        source: MediaSource,
        detail: Option<String>,
    },
    Document {
        #[serde(with = "InputSource")]
        source: MediaSource,
        name: Option<String>,
    },
    ToolCall {
        id: String,
        name: String,
        arguments: String,
        signature: Option<String>,
    },
    ToolResult {
        call_id: String,
        name: String,
        content: Vec<Value>,
        #[serde(default)]
        is_error: bool,
    },
    Reasoning {
        text: String,
        signature: Option<String>,
        encrypted: Option<String>,
        id: Option<String>,
    },
    Refusal {
        text: String,
    },
    Opaque {
        provider: String,
        raw: RawJson,
    },
}

/// Decodes the parts of a message; `pointer` is the JSON pointer to them.
pub(super) fn decode_parts(raw: &RawValue, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    parts_of(decode_part(raw, pointer)?, pointer)
}

fn parts_of(parts: Vec<Value>, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    let placed = parts.into_iter().enumerate();
    placed
        .map(|(index, part)| part_of(part, &format!("{pointer}/{index}")))
        .collect()
}

fn part_of(part: Value, pointer: &str) -> Result<ContentPart, Problem> {
    let Value::Object(mut fields) = part else {
        let words = "not a content part: an object";
        return Err(Problem::invalid_field(pointer, words));
    };
    let Some(kind) = fields.remove(TYPE) else {
        let pointer = format!("{pointer}/{TYPE}");
        return Err(Problem::of_field(
            ProblemCode::MissingField,
            pointer,
            "missing field `type`",
        ));
    };
    let name = kind.as_str();
    if name.is_some_and(|name| KNOWN.contains(&name)) {
        let tagged = Object::from_iter(name.map(|name| (name.to_owned(), Value::Object(fields))));
        return content_of(decode(Value::Object(tagged), pointer)?, pointer);
    }
    if name.is_none_or(|name| FOREIGN.contains(&name) || misspelt(name, KNOWN).is_some()) {
        // Fails, since the variant does not exist.
        let part = decode(kind, &format!("{pointer}/{TYPE}"))?;
        return content_of(part, pointer);
    }
    fields.insert(TYPE.to_owned(), kind);
    Ok(ContentPart::Unknown(Value::Object(fields)))
}

fn decode(tagged: Value, pointer: &str) -> Result<ImportPart, Problem> {
    serde_path_to_error::deserialize(tagged).map_err(|error| decode_problem(pointer, &error))
}

fn content_of(part: ImportPart, pointer: &str) -> Result<ContentPart, Problem> {
    Ok(match part {
        ImportPart::Text {
            text,
            citations,
            signature,
        } => ContentPart::Text(TextPart {
            text,
            citations,
            signature,
        }),
        // A history may have addresses that only its provider can read.
        ImportPart::Image { source, detail } => ContentPart::Image(ImagePart { source, detail }),
        ImportPart::Document { source, name } => ContentPart::Document(DocumentPart { source, name }),
        ImportPart::ToolCall {
            id,
            name,
            arguments,
            signature,
        } => ContentPart::ToolCall(ToolCall {
            id,
            name,
            arguments,
            signature,
        }),
        ImportPart::ToolResult {
            call_id,
            name,
            content,
            is_error,
        } => ContentPart::ToolResult(ToolResult {
            call_id,
            name,
            content: parts_of(content, &format!("{pointer}/content"))?,
            is_error,
        }),
        ImportPart::Reasoning {
            text,
            signature,
            encrypted,
            id,
        } => ContentPart::Reasoning(ReasoningPart {
            text,
            signature,
            encrypted,
            id,
        }),
        ImportPart::Refusal { text } => ContentPart::Refusal { text },
        ImportPart::Opaque { provider, raw } => ContentPart::Opaque(OpaquePart { provider, raw }),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    /// Every part that a session shows can be imported.
    #[test]
    fn every_kind_of_part_is_taken_as_it_is_shown() {
        let source = json!({"kind": "base64", "media_type": "image/png", "data": "AAAA"});
        let file = json!({"kind": "provider_file", "provider": "openai", "file_id": "file-1"});
        let parts = json!([
            {"type": "text", "text": "hi"},
            {"type": "text", "text": "", "citations": ["{\"a\": 1e2}"], "signature": "s"},
            {"type": "image", "source": {"kind": "url", "url": "s3://a/b.png"}, "detail": "low"},
            {"type": "image", "source": source},
            {"type": "document", "source": file, "name": "a.pdf"},
            {"type": "tool_call", "id": "c", "name": "t", "arguments": "{\"a\": ", "signature": "s"},
            {"type": "tool_result", "call_id": "c", "name": "t", "is_error": true, "content": [
                {"type": "text", "text": "1"}, {"type": "hologram", "depth": 0.1}]},
            {"type": "reasoning", "text": "", "signature": "s", "encrypted": "e", "id": "r"},
            {"type": "refusal", "text": "no"},
            {"type": "opaque", "provider": "mistral", "raw": "{\"a\": 1e2}"},
            {"type": "hologram", "depth": 3},
        ]);
        let decoded = decode_parts(&to_raw_value(&parts).unwrap(), "").unwrap_or_else(|problem| panic!("{problem:?}"));
        let expected: Vec<ContentPart> = serde_json::from_value(parts.clone()).unwrap();
        assert_eq!(decoded, expected);
        assert_eq!(serde_json::to_value(decoded).unwrap(), parts);
        let is_known = |part: &&ContentPart| !matches!(part, ContentPart::Unknown(_));
        assert_eq!(expected.iter().filter(is_known).count(), 10);
    }
}

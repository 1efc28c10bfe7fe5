//! Mends parts of content: of results of calls, messages of prompts, and resources.

use rmcp::model::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, Resource, TextContent};
use serde::Deserialize as _;
use serde_json::json;

use super::fitted::fit;
use values::json::{Object, Value};

/// The most bytes of a part without a known form that the model reads.
const MAX_SHOWN: usize = 64 << 10;

/// Makes a part of a text.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Mends a part. A part without a known form becomes a text that shows it, and is an error.
pub(super) fn block(part: &mut Value) -> Result<(), String> {
    if ContentBlock::deserialize(&*part).is_ok() {
        return Ok(());
    }
    let original = part.clone();
    match fitted(part) {
        Ok(problems) => problems.into_iter().next().map_or(Ok(()), Err),
        Err(problem) => {
            let shown = shown(&original);
            *part = text_block(&format!("[A part that is no valid content ({problem}): {shown}]"));
            Err(problem)
        }
    }
}

/// Makes a message of each part of a prompt, since the library reads one part.
pub(super) fn with_one_part(messages: &mut Vec<Value>) {
    let apart = |mut message: Value| match message.get_mut("content").map(Value::take) {
        Some(Value::Array(parts)) => {
            let role = &message["role"];
            parts
                .into_iter()
                .map(|part| json!({"role": role, "content": part}))
                .collect()
        }
        Some(part) => vec![json!({"role": message["role"], "content": part})],
        None => vec![json!({"content": message})],
    };
    *messages = std::mem::take(messages).into_iter().flat_map(apart).collect();
}

/// Mends a message of a prompt.
pub(super) fn message(message: &mut Value) -> Vec<String> {
    if !matches!(message["role"].as_str(), Some("user" | "assistant")) {
        message["role"] = json!("user");
    }
    block(&mut message["content"]).err().into_iter().collect()
}

/// Mends the contents of a resource.
pub(super) fn contents(contents: &mut Value) -> Vec<String> {
    let Some(fields) = contents.as_object_mut() else {
        *contents = json!({"uri": "", "text": contents.to_string()});
        return vec!["it is no object".to_owned()];
    };
    if !fields.get("uri").is_some_and(Value::is_string) {
        fields.insert("uri".to_owned(), json!("without an address"));
    }
    fields.retain(|name, value| match name.as_str() {
        "mimeType" | "blob" => value.is_string(),
        "_meta" => value.is_object(),
        "text" => !value.is_null(),
        _ => true,
    });
    as_text(fields, "text");
    if fields.contains_key("text") || fields.contains_key("blob") {
        return Vec::new();
    }
    let shown = shown(contents);
    contents["text"] = json!(shown);
    vec!["it has neither `text` nor `blob`".to_owned()]
}

fn fitted(part: &mut Value) -> Result<Vec<String>, String> {
    if let Value::String(text) = part {
        *part = text_block(text);
        return Ok(Vec::new());
    }
    let Some(fields) = part.as_object_mut() else {
        return Err("it is no object".to_owned());
    };
    as_text(fields, "text");
    let kind = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match kind.as_str() {
        "image" | "audio" => {
            // The bytes of an image show its type.
            if !fields.get("mimeType").is_some_and(Value::is_string) {
                fields.insert("mimeType".to_owned(), json!("application/octet-stream"));
            }
            if kind == "image" {
                fit::<ImageContent>(part)
            } else {
                fit::<AudioContent>(part)
            }
        }
        "resource" => {
            let resource = fields.get_mut("resource").filter(|resource| resource.is_object());
            let mut problems = contents(resource.ok_or("it has no `resource`")?);
            problems.extend(fit::<EmbeddedResource>(part)?);
            Ok(problems)
        }
        "resource_link" => {
            if !fields.get("name").is_some_and(Value::is_string) {
                let uri = fields.get("uri").cloned().unwrap_or_default();
                fields.insert("name".to_owned(), uri);
            }
            fit::<Resource>(part)
        }
        // Also other kinds of text, such as `markdown`.
        _ if fields.get("text").is_some_and(Value::is_string) => {
            fields.insert("type".to_owned(), json!("text"));
            fit::<TextContent>(part)
        }
        kind => Err(format!("its type is {kind:?}")),
    }
}

/// Makes a text of another value, but of null.
fn as_text(fields: &mut Object, name: &str) {
    if let Some(value) = fields.get_mut(name)
        && !value.is_string()
        && !value.is_null()
    {
        *value = json!(value.to_string());
    }
}

/// Returns the beginning of a value as JSON.
fn shown(value: &Value) -> String {
    let mut shown = value.to_string();
    shown.truncate(shown.floor_char_boundary(MAX_SHOWN));
    shown
}

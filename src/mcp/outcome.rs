//! Turns what a server returns into what models read.
//!
//! A result that a provider would refuse would spoil the session, so that images are checked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

use super::caller::Caller;
use crate::agent::ports::{ToolError, ToolOutput};
use crate::json::{JsonSchema, Value};
use crate::message::{ContentPart, ImagePart, MediaSource, joined_text};
use crate::off_thread::off_thread;
use crate::tools::media_type;

/// The largest image that a model is shown, in bytes.
const MAX_IMAGE: usize = 5 << 20;
/// The types of images that every provider takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The most parts of a result.
const MAX_PARTS: usize = 1_000;

/// Returns the result of a call. A structured result must fit the schema that the server has given.
pub(super) async fn outcome(
    caller: &Caller,
    result: CallToolResult,
    output_schema: Option<&Arc<JsonSchema>>,
) -> Result<ToolOutput, ToolError> {
    let is_error = result.is_error.unwrap_or(false);
    let structured = result.structured_content;
    let mut content = parts(caller, result.content);
    if !is_error && let Some(schema) = output_schema {
        let Some(value) = structured.clone() else {
            return Err(caller.error("its result has no structured content, which its own output schema demands"));
        };
        let schema = Arc::clone(schema);
        let checked = off_thread(&caller.tenant, move || schema.check(&value)).await;
        checked.map_err(|violations| {
            caller.error(&format!("its result does not fit its own output schema: {violations}"))
        })?;
    }
    // A server should also send the structured content as text. If it does not, the model reads it
    // as JSON.
    if let Some(structured) = structured
        && !content.iter().any(|part| part.as_text().is_some())
    {
        content.insert(0, text(caller, &structured.to_string()));
    }
    if is_error {
        let words = joined_text(&content);
        let words = if words.trim().is_empty() {
            "the tool failed, and the server gave no reason"
        } else {
            &words
        };
        return Err(ToolError::new(words));
    }
    if content.is_empty() {
        content.push(ContentPart::text("The tool has ended without a result."));
    }
    Ok(output(content))
}

/// Returns what models read of content of a server.
pub(super) fn parts(caller: &Caller, content: Vec<ContentBlock>) -> Vec<ContentPart> {
    let left_out = content.len().saturating_sub(MAX_PARTS);
    let mut parts: Vec<_> = content
        .into_iter()
        .take(MAX_PARTS)
        .map(|block| part(caller, block))
        .collect();
    if left_out > 0 {
        parts.push(ContentPart::text(format!("[{left_out} further parts are left out.]")));
    }
    parts
}

/// Returns a result of parts.
pub(super) fn output(content: Vec<ContentPart>) -> ToolOutput {
    ToolOutput {
        content,
        ..ToolOutput::text("")
    }
}

fn part(caller: &Caller, block: ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(block) => text(caller, &block.text),
        ContentBlock::Image(block) => media(caller, "an image", Some(&block.mime_type), block.data),
        ContentBlock::Audio(block) => media(caller, "a sound", Some(&block.mime_type), block.data),
        ContentBlock::Resource(block) => resource(caller, block.resource),
        ContentBlock::ResourceLink(link) => text(caller, &link_words(&link)),
        _ => ContentPart::text("[A part of a kind that this version of the service does not know.]"),
    }
}

/// Returns the content of a resource, with its address.
pub(super) fn resource(caller: &Caller, contents: ResourceContents) -> ContentPart {
    match contents {
        ResourceContents::TextResourceContents { uri, text: body, .. } => {
            text(caller, &format!("[The resource {uri}:]\n{body}"))
        }
        ResourceContents::BlobResourceContents {
            uri, mime_type, blob, ..
        } => media(caller, &format!("the resource {uri}"), mime_type.as_deref(), blob),
        _ => ContentPart::text("[A resource of a kind that this version of the service does not know.]"),
    }
}

/// Describes a resource that the model may read.
pub(super) fn link_words(link: &Resource) -> String {
    let media_type = link.mime_type.as_deref().unwrap_or("of unknown type");
    let size = link.size.map(|size| format!(", {size} bytes")).unwrap_or_default();
    let title = link.title.as_ref().unwrap_or(&link.name);
    let description = link
        .description
        .as_ref()
        .map(|text| format!(": {text}"))
        .unwrap_or_default();
    format!("[The resource {} ({title}, {media_type}{size}){description}]", link.uri)
}

/// Returns an image that models can see, or else a note about the bytes.
fn media(caller: &Caller, what: &str, claimed: Option<&str>, data: String) -> ContentPart {
    let Ok(bytes) = STANDARD.decode(data.as_bytes()) else {
        return text(
            caller,
            &format!("[{what}, which is not valid base64 and can't be shown]"),
        );
    };
    let found = media_type(&bytes).filter(|found| IMAGE_TYPES.contains(found));
    match found {
        Some(found) if bytes.len() <= MAX_IMAGE => ContentPart::Image(ImagePart {
            source: MediaSource::Base64 {
                media_type: found.to_owned(),
                data,
            },
            detail: None,
        }),
        _ => {
            let media_type = found.or(claimed).unwrap_or("of unknown type");
            text(
                caller,
                &format!("[{what}: {media_type}, {} bytes, which can't be shown]", bytes.len()),
            )
        }
    }
}

fn text(caller: &Caller, words: &str) -> ContentPart {
    ContentPart::text(caller.server.redacted(words))
}

/// Returns a value as text for the model.
pub(super) fn json_text(caller: &Caller, value: &Value) -> ContentPart {
    text(caller, &value.to_string())
}

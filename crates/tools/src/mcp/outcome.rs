//! Turns results of a server into text for models.
//!
//! A result that a provider would refuse would spoil the session, so that images are checked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

use super::caller::Caller;
use crate::media_type;
use agent::ports::{ToolError, ToolOutput};
use tasks::off_thread::by_size;
use values::json::JsonSchema;
use values::message::{ContentPart, ImagePart, MediaSource, joined_text, picture_problem};

/// The types of images that every provider takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The most parts of a result.
const MAX_PARTS: usize = 1_000;

/// Returns the result of a call. The model reads if it does not fit the schema that the server has
/// given: the call was executed, and its result counts.
pub(super) async fn outcome(
    caller: &Caller,
    result: CallToolResult,
    output_schema: Option<&Arc<JsonSchema>>,
) -> Result<ToolOutput, ToolError> {
    let (bytes, schema) = (size(&result), output_schema.cloned());
    let read = by_size(&caller.tenant, bytes, move || read(result, schema.as_deref()));
    read.await.map_err(ToolError::new)
}

/// Returns about how many bytes a result has. Structured content counts as large.
fn size(result: &CallToolResult) -> u64 {
    if result.structured_content.is_some() {
        return u64::MAX;
    }
    let bytes = result.content.iter().map(|block| match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Image(block) => block.data.len(),
        ContentBlock::Audio(block) => block.data.len(),
        ContentBlock::Resource(block) => match &block.resource {
            ResourceContents::TextResourceContents { text, .. } => text.len(),
            ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
            _ => 0,
        },
        _ => 0,
    });
    bytes.sum::<usize>() as u64
}

/// Reads a result. The error has the words of the server.
fn read(result: CallToolResult, output_schema: Option<&JsonSchema>) -> Result<ToolOutput, String> {
    let is_error = result.is_error.unwrap_or(false);
    let structured = result.structured_content;
    let mut content = parts(result.content);
    let problem = output_schema
        .filter(|_| !is_error)
        .and_then(|schema| match &structured {
            None => Some("it has no structured content".to_owned()),
            Some(value) => schema.check(value).err().map(|violations| violations.to_string()),
        });
    // A server should also send the structured content as text. If it does not, the model reads it
    // as JSON.
    if let Some(structured) = structured
        && !content.iter().any(|part| part.as_text().is_some())
    {
        content.insert(0, ContentPart::text(structured.to_string()));
    }
    if is_error {
        let words = joined_text(&content);
        return Err(if words.trim().is_empty() {
            "the tool failed, and the server gave no reason".to_owned()
        } else {
            words
        });
    }
    if content.is_empty() {
        content.push(ContentPart::text("The tool has ended without a result."));
    }
    if let Some(problem) = problem {
        let words = format!("[The result does not fit the output schema of the tool: {problem}]");
        content.push(ContentPart::text(words));
    }
    Ok(output(content))
}

/// Returns content of a server as text for models.
pub(super) fn parts(content: Vec<ContentBlock>) -> Vec<ContentPart> {
    let left_out = content.len().saturating_sub(MAX_PARTS);
    let mut parts: Vec<_> = content.into_iter().take(MAX_PARTS).map(part).collect();
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

fn part(block: ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(block) => ContentPart::text(block.text),
        ContentBlock::Image(block) => media("an image", Some(&block.mime_type), &block.data),
        ContentBlock::Audio(block) => media("a sound", Some(&block.mime_type), &block.data),
        ContentBlock::Resource(block) => resource(block.resource),
        ContentBlock::ResourceLink(link) => ContentPart::text(link_words(&link)),
        _ => ContentPart::text("[A part of a kind that this version of the service does not know.]"),
    }
}

/// Returns the content of a resource, with its address.
pub(super) fn resource(contents: ResourceContents) -> ContentPart {
    match contents {
        ResourceContents::TextResourceContents { uri, text: body, .. } => {
            ContentPart::text(format!("[The resource {uri}:]\n{body}"))
        }
        ResourceContents::BlobResourceContents {
            uri, mime_type, blob, ..
        } => media(&format!("the resource {uri}"), mime_type.as_deref(), &blob),
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

/// Decodes base64. Some servers break its lines, or send a `data:` URL.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let data = match data.trim_start().strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => data,
    };
    let digits: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

/// Returns an image that models can see, or else a note about the bytes.
fn media(what: &str, claimed: Option<&str>, data: &str) -> ContentPart {
    let Some(bytes) = decoded(data) else {
        return ContentPart::text(format!("[{what}, which is not valid base64 and can't be shown]"));
    };
    let size = bytes.len();
    let found = media_type(&bytes);
    let Some(image_type) = found.filter(|found| IMAGE_TYPES.contains(found)) else {
        let media_type = found.or(claimed).unwrap_or("of unknown type");
        return ContentPart::text(format!("[{what}: {media_type}, {size} bytes, which can't be shown]"));
    };
    let data = STANDARD.encode(bytes);
    if let Some(problem) = picture_problem(&data) {
        return ContentPart::text(format!(
            "[{what}: {image_type}, {size} bytes, which can't be shown: {problem}]"
        ));
    }
    ContentPart::Image(ImagePart {
        source: MediaSource::Base64 {
            media_type: image_type.to_owned(),
            data,
        },
        detail: None,
    })
}

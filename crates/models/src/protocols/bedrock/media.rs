//! Encodes images, videos and files as the protocol's blocks.

use serde_json::json;

use super::names::DocumentNames;
use crate::files::{as_words, inline_data};
use values::json::Value;
use values::message::{ContentPart, DocumentPart, MediaSource};

/// Encodes an image, a video or a file; `None` for any other part. A medium that the protocol can't
/// express becomes a text that names it.
pub(super) fn block(part: &ContentPart, names: &mut DocumentNames) -> Option<Value> {
    match part {
        ContentPart::Image(part) => {
            Some(source(&part.source, None).unwrap_or_else(|| unreadable("picture", &part.source)))
        }
        ContentPart::Document(part) => Some(match as_words(part) {
            Some(words) => json!({"text": words}),
            None => document(part, names),
        }),
        _ => None,
    }
}

fn document(part: &DocumentPart, names: &mut DocumentNames) -> Value {
    let name = names.unique(part.name.as_deref());
    source(&part.source, Some(name)).unwrap_or_else(|| unreadable("file", &part.source))
}

fn source(source: &MediaSource, name: Option<String>) -> Option<Value> {
    let (media_type, from) = match source {
        MediaSource::Base64 { media_type, data } => (media_type.as_str(), json!({"bytes": data})),
        MediaSource::Url { url } if url.starts_with("s3://") => (end_of(url), json!({"s3Location": {"uri": url}})),
        MediaSource::Url { url } => {
            let (media_type, data) = inline_data(url)?;
            (media_type, json!({"bytes": data}))
        }
        MediaSource::ProviderFile { .. } => return None,
    };
    let (kind, format) = format(media_type)?;
    let mut block = json!({"format": format, "source": from});
    if kind == "document" {
        block["name"] = Value::from(name.unwrap_or_else(|| "document".to_owned()));
    }
    Some(json!({kind: block}))
}

/// Makes the text that replaces a medium. The protocol accepts only data and S3 locations.
fn unreadable(what: &str, source: &MediaSource) -> Value {
    let text = match source {
        MediaSource::Url { url } => format!("[A {what} at {url}, which can't be opened here]"),
        MediaSource::Base64 { media_type, .. } => {
            format!("[A {what} of the type {media_type}, which can't be opened here]")
        }
        MediaSource::ProviderFile { provider, .. } => {
            format!("[A {what} that is stored at the provider {provider}, which can't be opened here]")
        }
    };
    json!({"text": text})
}

fn end_of(url: &str) -> &str {
    url.rsplit_once('.').map_or("", |(_, end)| end)
}

/// Returns the kind of block and the protocol's format name for a media type or a file extension.
fn format(media_type: &str) -> Option<(&'static str, &'static str)> {
    let plain = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    Some(match plain.as_str() {
        "image/png" | "png" => ("image", "png"),
        "image/jpeg" | "image/jpg" | "jpeg" | "jpg" => ("image", "jpeg"),
        "image/gif" | "gif" => ("image", "gif"),
        "image/webp" | "webp" => ("image", "webp"),
        "application/pdf" | "pdf" => ("document", "pdf"),
        "text/csv" | "csv" => ("document", "csv"),
        "text/html" | "html" => ("document", "html"),
        "text/markdown" | "md" => ("document", "md"),
        "text/plain" | "txt" => ("document", "txt"),
        "application/msword" | "doc" => ("document", "doc"),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" | "docx" => ("document", "docx"),
        "application/vnd.ms-excel" | "xls" => ("document", "xls"),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" | "xlsx" => ("document", "xlsx"),
        "video/mp4" | "mp4" => ("video", "mp4"),
        "video/quicktime" | "mov" => ("video", "mov"),
        "video/x-matroska" | "mkv" => ("video", "mkv"),
        "video/webm" | "webm" => ("video", "webm"),
        "video/mpeg" | "mpeg" => ("video", "mpeg"),
        _ => return None,
    })
}

//! Encodes images and files as the protocol's data.

use serde_json::json;

use crate::files::{Attachment, as_words, inline_data};
use values::json::Value;
use values::message::MediaSource;

/// Encodes an image or a file. Text files are sent as text, since the protocol accepts few kinds of
/// files other than PDF.
pub(super) fn part(attachment: Attachment<'_>) -> Value {
    match attachment {
        Attachment::Image(part) => data(&part.source),
        Attachment::Document(part) => match as_words(part) {
            Some(words) => json!({"text": words}),
            None => data(&part.source),
        },
        Attachment::Words(words) => json!({"text": words}),
    }
}

fn data(source: &MediaSource) -> Value {
    match source {
        MediaSource::Url { url } => match inline_data(url) {
            Some((media_type, data)) => json!({"inlineData": {"mimeType": media_type, "data": data}}),
            None => match media_type(url) {
                Some(media_type) => json!({"fileData": {"mimeType": media_type, "fileUri": url}}),
                None => json!({"fileData": {"fileUri": url}}),
            },
        },
        MediaSource::Base64 { media_type, data } => json!({"inlineData": {"mimeType": media_type, "data": data}}),
        // The protocol identifies files by their addresses.
        MediaSource::ProviderFile { file_id, .. } => json!({"fileData": {"fileUri": file_id}}),
    }
}

/// Derives the media type from the extension in an address. The protocol requires the type of files
/// that it reads itself.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, end) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match end.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "html" => "text/html",
        "csv" => "text/csv",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

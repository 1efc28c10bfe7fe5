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

#[cfg(test)]
mod tests {
    use super::*;
    use values::message::ContentPart;

    #[test]
    fn every_source_has_its_form() {
        let base64 = |media_type: &str, data: &str| json!({"kind": "base64", "media_type": media_type, "data": data});
        let url = |url: &str| json!({"kind": "url", "url": url});
        for (kind, from, expected) in [
            (
                "image",
                url("https://h/a.JPG?x=1#y"),
                json!({"fileData": {"mimeType": "image/jpeg", "fileUri": "https://h/a.JPG?x=1#y"}}),
            ),
            (
                "image",
                url("https://generativelanguage.googleapis.com/v1beta/files/abc"),
                json!({"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}}),
            ),
            (
                "image",
                url("data:image/png;base64,AAAA"),
                json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
            ),
            (
                "document",
                base64("application/pdf", "JVBERg=="),
                json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}}),
            ),
            (
                "document",
                base64("text/markdown; charset=utf-8", "IyBHcsO8w59l"),
                json!({"text": "<file name=\"document\">\n# Grüße\n</file>"}),
            ),
        ] {
            let from: ContentPart = serde_json::from_value(json!({"type": kind, "source": from})).unwrap();
            assert_eq!(part(Attachment::of(&from).unwrap()), expected);
        }
    }
}

//! Encodes images and files as the protocol's sources.

use serde_json::json;

use crate::files::{Attachment, inline_data, words_of};
use values::json::Value;
use values::message::{ContentPart, DocumentPart, MediaSource};

/// Encodes a picture or a file.
pub(super) fn block(attachment: Attachment<'_>) -> Value {
    match attachment {
        Attachment::Image(part) => json!({"type": "image", "source": source(&part.source)}),
        Attachment::Document(part) => document(part),
        Attachment::Words(words) => json!({"type": "text", "text": words}),
    }
}

/// Returns whether a part is a file that is stored at the provider of this name.
pub(super) fn is_stored_at(part: &ContentPart, provider: &str) -> bool {
    let source = match part {
        ContentPart::Image(part) => &part.source,
        ContentPart::Document(part) => &part.source,
        _ => return false,
    };
    matches!(source, MediaSource::ProviderFile { provider: owner, .. } if owner == provider)
}

fn document(part: &DocumentPart) -> Value {
    let source = match words_of(&part.source) {
        Some(text) => json!({"type": "text", "media_type": "text/plain", "data": text}),
        None => source(&part.source),
    };
    let mut block = json!({"type": "document", "source": source});
    if let Some(name) = part.name.as_deref().filter(|name| !name.trim().is_empty()) {
        block["title"] = Value::from(name);
    }
    block
}

fn source(source: &MediaSource) -> Value {
    match source {
        MediaSource::Url { url } => match inline_data(url) {
            Some((media_type, data)) => base64(media_type, data),
            None => json!({"type": "url", "url": url}),
        },
        MediaSource::Base64 { media_type, data } => base64(media_type, data),
        MediaSource::ProviderFile { file_id, .. } => json!({"type": "file", "file_id": file_id}),
    }
}

fn base64(media_type: &str, data: &str) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": data})
}

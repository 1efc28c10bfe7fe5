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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_its_form() {
        let base64 = |media_type: &str, data: &str| serde_json::json!({"kind": "base64", "media_type": media_type, "data": data});
        let url = |url: &str| serde_json::json!({"kind": "url", "url": url});
        for (kind, from, expected) in [
            (
                "image",
                url("https://h/a.png"),
                serde_json::json!({"type": "url", "url": "https://h/a.png"}),
            ),
            (
                "image",
                url("data:image/png;base64,AAAA"),
                serde_json::json!({"type": "base64", "media_type": "image/png", "data": "AAAA"}),
            ),
            (
                "image",
                base64("image/png", "AAAA"),
                serde_json::json!({"type": "base64", "media_type": "image/png", "data": "AAAA"}),
            ),
            (
                "document",
                url("https://h/a.pdf"),
                serde_json::json!({"type": "url", "url": "https://h/a.pdf"}),
            ),
            (
                "document",
                base64("application/pdf", "JVBERg=="),
                serde_json::json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}),
            ),
            (
                "document",
                base64("text/markdown; charset=utf-8", "IyBHcsO8w59l"),
                serde_json::json!({"type": "text", "media_type": "text/plain", "data": "# Grüße"}),
            ),
            (
                "image",
                serde_json::json!({"kind": "provider_file", "provider": "p", "file_id": "file_1"}),
                serde_json::json!({"type": "file", "file_id": "file_1"}),
            ),
            (
                "document",
                base64("text/plain", "//8="),
                serde_json::json!({"type": "base64", "media_type": "text/plain", "data": "//8="}),
            ),
        ] {
            let part: ContentPart = serde_json::from_value(serde_json::json!({"type": kind, "source": from})).unwrap();
            let block = block(Attachment::of(&part).unwrap());
            assert_eq!((block["type"].as_str(), &block["source"]), (Some(kind), &expected));
        }
    }

    #[test]
    fn a_file_keeps_its_name() {
        let part = |name: Option<&str>| {
            document(&DocumentPart {
                source: MediaSource::Url { url: "u".to_owned() },
                name: name.map(str::to_owned),
            })
        };
        assert_eq!(part(Some("a.pdf"))["title"], "a.pdf");
        assert_eq!(part(Some(" ")).get("title"), None);
        assert_eq!(part(None).get("title"), None);
    }
}

//! Encodes the parts of messages as the protocol's blocks.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::json::Value;
use crate::message::{ContentPart, DocumentPart, ImagePart, MediaSource};
use crate::models::files::{Attachment, as_words, data_url};
use crate::models::target::Target;

/// A block of a message of the caller.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// Words.
    Text(String),
    /// A picture or a file.
    Media(Value),
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.collect_map([("type", "text"), ("text", text)]),
            Self::Media(value) => value.serialize(serializer),
        }
    }
}

/// Encodes the parts of a caller's message. The history may have empty texts, but a request may
/// not. `seen` counts the pictures and files of the conversation.
pub(super) fn blocks(content: &[ContentPart], target: &Target, seen: &mut usize) -> Vec<Block> {
    let parts = content.iter().filter_map(|part| match part {
        ContentPart::Text(part) => (!part.text.is_empty()).then(|| Block::Text(part.text.clone())),
        ContentPart::Refusal { text } => Some(Block::Text(text.clone())),
        _ => target.attachment(part, seen).map(attachment_block),
    });
    parts.collect()
}

/// Returns the text of a tool's result, and the pictures and files that it can't hold.
pub(super) fn result_blocks<'a>(
    content: &'a [ContentPart],
    target: &Target,
    seen: &mut usize,
) -> (Cow<'a, str>, Vec<Block>) {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in content {
        if let Some(text) = part.as_text() {
            texts.push(Cow::Borrowed(text));
            continue;
        }
        match target.attachment(part, seen) {
            Some(Attachment::Words(words)) => texts.push(words.into()),
            Some(attachment) => media.push(attachment_block(attachment)),
            None => {}
        }
    }
    let text = match texts.len() {
        1 => texts.remove(0),
        _ => Cow::Owned(texts.join("\n")),
    };
    (text, media)
}

fn attachment_block(attachment: Attachment<'_>) -> Block {
    match attachment {
        Attachment::Image(ImagePart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        })
        | Attachment::Document(DocumentPart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        }) => Block::Media(json!({"type": "file", "file": {"file_id": file_id}})),
        Attachment::Image(part) => Block::Media(image_block(part)),
        Attachment::Document(part) => document_block(part),
        Attachment::Words(words) => Block::Text(words),
    }
}

fn image_block(part: &ImagePart) -> Value {
    let mut image = json!({"url": address(&part.source)});
    if let Some(detail) = &part.detail {
        image["detail"] = Value::from(detail.as_str());
    }
    json!({"type": "image_url", "image_url": image})
}

/// Encodes a file. Few servers accept files other than PDFs, so text files are sent as text.
fn document_block(part: &DocumentPart) -> Block {
    if let Some(words) = as_words(part) {
        return Block::Text(words);
    }
    let mut file = json!({"file_data": address(&part.source)});
    file["filename"] = Value::from(part.name.as_deref().unwrap_or("document"));
    Block::Media(json!({"type": "file", "file": file}))
}

fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Url { url } => url.clone(),
        MediaSource::Base64 { media_type, data } => data_url(media_type, data),
        MediaSource::ProviderFile { file_id, .. } => file_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_words_goes_as_words() {
        let file = |media_type: &str, data: &str| {
            document_block(&DocumentPart {
                source: MediaSource::Base64 {
                    media_type: media_type.to_owned(),
                    data: data.to_owned(),
                },
                name: Some("a \"b\".md".to_owned()),
            })
        };
        assert_eq!(
            file("text/markdown", "IyBHcsO8w59l"),
            Block::Text("<file name=\"a \\\"b\\\".md\">\n# Grüße\n</file>".to_owned())
        );
        assert_eq!(
            file("application/pdf", "JVBE"),
            Block::Media(
                json!({"type": "file", "file": {"filename": "a \"b\".md", "file_data": "data:application/pdf;base64,JVBE"}})
            )
        );
    }
}

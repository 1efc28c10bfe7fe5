//! Encodes the parts of messages as the protocol's blocks.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::encode::{Part, raw};
use crate::files::{Attachment, as_words, data_url};
use crate::target::Target;
use values::json::Value;
use values::message::{ContentPart, DocumentPart, ImagePart, MediaSource};

/// A block of a message.
#[derive(Debug, Clone)]
pub(super) enum Block {
    /// Words.
    Text(String),
    /// A picture, a file, or a block of the provider's own.
    Raw(Part),
}

impl Block {
    /// Returns about how many bytes of memory the block takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Raw(raw) => raw.get().len(),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.collect_map([("type", "text"), ("text", text)]),
            Self::Raw(raw) => raw.serialize(serializer),
        }
    }
}

/// Encodes the parts of a caller's message. The history may have empty texts, but a request may
/// not. `seen` counts the pictures and files of the conversation.
pub(super) fn blocks(content: &[ContentPart], target: &Target, seen: &mut usize) -> Vec<Block> {
    let parts = content.iter().filter_map(|part| match part {
        ContentPart::Text(part) => (!part.text.is_empty()).then(|| Block::Text(part.text.clone())),
        ContentPart::Refusal { text } => Some(Block::Text(text.clone())),
        _ => attachment_block(target.attachment(part, seen)?),
    });
    parts.collect()
}

/// Returns the text of a tool's result, and the pictures and files that it can't hold.
pub(super) fn result_blocks(content: &[ContentPart], target: &Target, seen: &mut usize) -> (String, Vec<Block>) {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in content {
        if let Some(text) = part.as_text() {
            texts.push(Cow::Borrowed(text));
            continue;
        }
        match target.attachment(part, seen) {
            Some(Attachment::Words(words)) => texts.push(words.into()),
            attachment => media.extend(attachment.and_then(attachment_block)),
        }
    }
    (texts.join("\n"), media)
}

fn attachment_block(attachment: Attachment<'_>) -> Option<Block> {
    let block = match attachment {
        Attachment::Image(ImagePart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        })
        | Attachment::Document(DocumentPart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        }) => json!({"type": "file", "file": {"file_id": file_id}}),
        Attachment::Image(part) => image_block(part),
        Attachment::Document(part) => match as_words(part) {
            Some(words) => return Some(Block::Text(words)),
            None => document_block(part),
        },
        Attachment::Words(words) => return Some(Block::Text(words)),
    };
    raw(&block).map(Block::Raw)
}

fn image_block(part: &ImagePart) -> Value {
    let mut image = json!({"url": address(&part.source)});
    if let Some(detail) = &part.detail {
        image["detail"] = Value::from(detail.as_str());
    }
    json!({"type": "image_url", "image_url": image})
}

/// Encodes a file. Few servers accept files other than PDFs, so text files are sent as text.
fn document_block(part: &DocumentPart) -> Value {
    let name = part.name.as_deref().unwrap_or("document");
    json!({"type": "file", "file": {"file_data": address(&part.source), "filename": name}})
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
            let block = attachment_block(Attachment::Document(&DocumentPart {
                source: MediaSource::Base64 {
                    media_type: media_type.to_owned(),
                    data: data.to_owned(),
                },
                name: Some("a \"b\".md".to_owned()),
            }));
            serde_json::to_value(block).unwrap()
        };
        assert_eq!(
            file("text/markdown", "IyBHcsO8w59l"),
            json!({"type": "text", "text": "<file name=\"a \\\"b\\\".md\">\n# Grüße\n</file>"})
        );
        assert_eq!(
            file("application/pdf", "JVBE"),
            json!({"type": "file", "file": {"filename": "a \"b\".md", "file_data": "data:application/pdf;base64,JVBE"}})
        );
    }
}

//! Messages as LangChain has them.

use serde::Serialize;

use crate::http::faces::chat::EchoMessage;
use values::json::Value;
use values::message::{ContentPart, MediaSource};

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(in crate::http) enum Message {
    Human(Human),
    Ai(Ai),
    Tool(ToolResult),
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct Human {
    pub(super) id: String,
    pub(super) content: Content,
}

/// A step of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(in crate::http) struct Ai {
    pub(super) id: String,
    pub(super) content: String,
    pub(super) additional_kwargs: Kwargs,
    pub(super) tool_calls: Vec<ToolCall>,
}

/// What a step has besides words and calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(in crate::http) struct Kwargs {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reasoning_content: String,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: Value,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct ToolResult {
    pub(super) id: String,
    pub(super) tool_call_id: String,
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) status: &'static str,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(in crate::http) enum Block {
    Text {
        text: String,
    },
    Image {
        mime_type: String,
        data: String,
    },
    File {
        mime_type: String,
        data: String,
        metadata: FileMetadata,
    },
    ImageUrl {
        #[serde(rename = "image_url")]
        image_url: Address,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct FileMetadata {
    filename: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct Address {
    url: String,
}

impl Message {
    /// Makes a message of the user.
    pub(in crate::http) fn of_user(message: EchoMessage) -> Self {
        let content = Content::of_parts(&message.content);
        Self::Human(Human {
            id: message.id,
            content,
        })
    }

    /// Returns its id.
    pub(in crate::http) fn id(&self) -> &str {
        match self {
            Self::Human(message) => &message.id,
            Self::Ai(message) => &message.id,
            Self::Tool(message) => &message.id,
        }
    }
}

impl Content {
    /// Makes the content of a result from the output of its tool: a text, parts, or another value.
    pub(super) fn of_output(output: Value) -> Self {
        if let Value::String(text) = output {
            return Self::Text(text);
        }
        match serde_json::from_value::<Vec<ContentPart>>(output.clone()) {
            Ok(parts) if !parts.is_empty() => Self::of_parts(&parts),
            _ => Self::Text(output.to_string()),
        }
    }

    fn of_parts(parts: &[ContentPart]) -> Self {
        if let [part] = parts
            && let Some(text) = part.as_text()
        {
            return Self::Text(text.to_owned());
        }
        Self::Blocks(parts.iter().filter_map(Block::of_part).collect())
    }
}

impl Block {
    /// Makes a block. Some parts have no form here.
    fn of_part(part: &ContentPart) -> Option<Self> {
        match part {
            ContentPart::Text(part) => Some(Self::Text {
                text: part.text.clone(),
            }),
            ContentPart::Image(part) => {
                Self::of_source(&part.source, |mime_type, data| Self::Image { mime_type, data })
            }
            ContentPart::Document(part) => Self::of_source(&part.source, |mime_type, data| Self::File {
                mime_type,
                data,
                metadata: FileMetadata {
                    filename: part.name.clone(),
                },
            }),
            _ => None,
        }
    }

    /// Makes a block of a file, whose bytes `make` takes.
    fn of_source(source: &MediaSource, make: impl FnOnce(String, String) -> Self) -> Option<Self> {
        match source {
            MediaSource::Base64 { media_type, data } => Some(make(media_type.clone(), data.clone())),
            MediaSource::Url { url } => Some(Self::ImageUrl {
                image_url: Address { url: url.clone() },
            }),
            MediaSource::ProviderFile { .. } => None,
        }
    }
}

//! Messages as a page has them.

use serde::Serialize;

use crate::http::faces::chat::EchoMessage;
use values::ids::SessionId;
use values::json::Value;
use values::message::{ContentPart, MediaSource};

/// A message, and the subagent that it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct Message {
    /// Names the message.
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) said: Said,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<SessionId>,
}

/// What a message says, by its role.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(super) enum Said {
    User {
        content: Content,
    },
    Assistant {
        #[serde(skip_serializing_if = "String::is_empty")]
        content: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        tool_call_id: String,
        content: Content,
    },
    Reasoning {
        content: String,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolCall {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Function,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(in crate::http) enum Part {
    Text { text: String },
    Image { source: Source },
    Document { source: Source },
}

/// Where the bytes of a part are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(in crate::http) enum Source {
    Data { value: String, mime_type: String },
    Url { value: String },
    File { value: String, provider: String },
}

impl Message {
    /// Makes a message of the user.
    pub(super) fn of_user(message: EchoMessage) -> Self {
        let content = Content::of_parts(&message.content);
        Self::new(message.id, None, Said::User { content })
    }

    pub(super) fn new(id: String, subagent_run_id: Option<SessionId>, said: Said) -> Self {
        Self {
            id,
            said,
            subagent_run_id,
        }
    }

    /// Returns whether it is reasoning.
    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self.said, Said::Reasoning { .. })
    }

    /// Returns the same message of reasoning without words.
    pub(super) fn emptied(self) -> Self {
        let content = String::new();
        Self {
            said: Said::Reasoning { content },
            ..self
        }
    }

    /// Returns its calls.
    pub(super) fn calls(&mut self) -> impl Iterator<Item = &mut ToolCall> {
        let calls = match &mut self.said {
            Said::Assistant { tool_calls, .. } => tool_calls.as_mut_slice(),
            _ => &mut [],
        };
        calls.iter_mut()
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

    /// Makes content from parts. Some have no form here.
    fn of_parts(parts: &[ContentPart]) -> Self {
        if let [part] = parts
            && let Some(text) = part.as_text()
        {
            return Self::Text(text.to_owned());
        }
        Self::Parts(parts.iter().filter_map(Part::of_content).collect())
    }
}

impl Part {
    fn of_content(part: &ContentPart) -> Option<Self> {
        match part {
            ContentPart::Text(part) => Some(Self::Text {
                text: part.text.clone(),
            }),
            ContentPart::Image(part) => Some(Self::Image {
                source: Source::of_media(&part.source),
            }),
            ContentPart::Document(part) => Some(Self::Document {
                source: Source::of_media(&part.source),
            }),
            _ => None,
        }
    }
}

impl Source {
    fn of_media(source: &MediaSource) -> Self {
        match source {
            MediaSource::Base64 { media_type, data } => Self::Data {
                value: data.clone(),
                mime_type: media_type.clone(),
            },
            MediaSource::Url { url } => Self::Url { value: url.clone() },
            MediaSource::ProviderFile { provider, file_id } => Self::File {
                value: file_id.clone(),
                provider: provider.clone(),
            },
        }
    }
}

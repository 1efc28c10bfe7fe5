//! Encodes the messages of requests. A message always encodes to the same bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::encode::{Items, Part, text_or_refusal};
use crate::files::{Attachment, inline_data};
use crate::names::{IdRule, WireIds, arguments, tool_name};
use crate::target::Target;
use values::message::{ContentPart, MediaSource, Message, Role, ToolCall, ToolResult};
use values::session::Fold;

/// The messages of a request, encoded one after another.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    target: Target,
    ids: WireIds,
    /// The encoded messages.
    pub(super) messages: Items,
    /// The number of pictures and files in the messages.
    seen: usize,
}

/// A message of a request.
#[derive(Debug, Default, Serialize)]
pub(super) struct WireMessage<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    /// Pictures as base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
struct WireCall {
    id: String,
    function: WireArguments,
}

#[derive(Debug, Serialize)]
struct WireArguments {
    name: String,
    arguments: Part,
}

impl WireMessage<'_> {
    /// Makes a message with instructions.
    pub(super) fn system(instructions: &str) -> Self {
        Self {
            role: "system",
            content: instructions.to_owned(),
            ..Self::default()
        }
    }
}

impl Conversation {
    /// Makes a conversation without messages.
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            ids: WireIds::new(IdRule::Any),
            messages: Items::default(),
            seen: 0,
        }
    }

    fn add(&mut self, message: &Message) {
        for result in message.tool_results() {
            self.add_result(result);
        }
        match message.role {
            Role::System => self.messages.push(&WireMessage::system(&message.joined_text())),
            Role::User | Role::Tool => self.add_of_caller(message),
            Role::Assistant => self.add_of_model(message),
        }
    }

    fn add_result(&mut self, result: &ToolResult) {
        let id = self.ids.of_result(result);
        let (content, images) = self.content(&result.content);
        self.messages.push(&WireMessage {
            role: "tool",
            content,
            images,
            tool_name: Some(tool_name(&result.name)),
            tool_call_id: Some(id),
            ..WireMessage::default()
        });
    }

    fn add_of_caller(&mut self, message: &Message) {
        let (content, images) = self.content(&message.content);
        let has_results = message.role == Role::Tool || message.tool_results().next().is_some();
        if !content.is_empty() || !images.is_empty() || !has_results {
            self.messages.push(&WireMessage {
                role: "user",
                content,
                images,
                ..WireMessage::default()
            });
        }
    }

    /// Adds a message of the model, unless nothing of it is sent. Only the model that made it gets
    /// its reasoning back.
    fn add_of_model(&mut self, message: &Message) {
        let own = self.target.made(message);
        let mut wire = WireMessage {
            role: "assistant",
            ..WireMessage::default()
        };
        for part in &message.content {
            match part {
                ContentPart::Reasoning(part) if own => wire.thinking.push_str(&part.text),
                ContentPart::ToolCall(call) => {
                    let id = self.ids.of_call(message.id, call, own).into_owned();
                    wire.tool_calls.extend(WireCall::of(call, id));
                }
                part => wire.content.push_str(text_or_refusal(part).unwrap_or_default()),
            }
        }
        if !(wire.content.is_empty() && wire.thinking.is_empty() && wire.tool_calls.is_empty()) {
            self.messages.push(&wire);
        }
    }

    /// Returns the words of parts, one per line, and their pictures.
    fn content<'a>(&mut self, parts: &'a [ContentPart]) -> (String, Vec<&'a str>) {
        let (mut words, mut images) = (Vec::new(), Vec::new());
        for part in parts {
            if let Some(text) = text_or_refusal(part) {
                words.push(Cow::Borrowed(text));
                continue;
            }
            match self.target.attachment(part, &mut self.seen) {
                Some(Attachment::Words(text)) => words.push(text.into()),
                Some(attachment) => match picture(&attachment) {
                    Some(data) => images.push(data),
                    None => words.push(format!("[{}, which can't be opened here]", attachment.what()).into()),
                },
                None => {}
            }
        }
        (words.join("\n"), images)
    }
}

impl WireCall {
    fn of(call: &ToolCall, id: String) -> Option<Self> {
        let function = WireArguments {
            name: tool_name(&call.name).into_owned(),
            arguments: RawValue::from_string(arguments(call).into_owned()).ok()?,
        };
        Some(Self { id, function })
    }
}

/// Returns the base64 text of a picture. The protocol takes no addresses.
fn picture<'a>(attachment: &Attachment<'a>) -> Option<&'a str> {
    match (attachment, attachment.source()?) {
        (Attachment::Image(_), MediaSource::Base64 { data, .. }) => Some(data),
        (Attachment::Image(_), MediaSource::Url { url }) => inline_data(url).map(|(_, data)| data),
        _ => None,
    }
}

impl Fold for Conversation {
    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        for message in messages {
            self.add(message);
        }
    }

    fn retained(self) -> Self {
        Self {
            messages: self.messages.retained(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        self.messages.bytes() + self.ids.bytes()
    }
}

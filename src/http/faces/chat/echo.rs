//! What the record of a run retains of its request: whether it goes on with a turn, and the new
//! messages, which the session of the run has only once the run has ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::run::InputMessage;
use values::ids::SessionId;
use values::json::{Object, Value, json_length_within};
use values::message::{ContentPart, Message, Role};

/// The most bytes of the messages that a record retains.
const MAX_BYTES: usize = 1 << 20;
/// The key of a message's metadata with the id that the page has given it.
const PAGE_ID: &str = "ui_message_id";

/// A request as the record of its run retains it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::http) struct ChatEcho {
    /// Whether the run answers the calls of the run before, and goes on with its message. Absent in
    /// runs of other requests.
    #[serde(rename = "ui_continues")]
    pub(in crate::http) continues: Option<bool>,
    /// The session whose input the run repeats, as the request has named it.
    #[serde(rename = "ui_again", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::http) again: Option<SessionId>,
    /// The new messages.
    #[serde(rename = "ui_messages", default)]
    pub(in crate::http) messages: Vec<EchoMessage>,
}

/// A message of the user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::http) struct EchoMessage {
    /// What the page calls it.
    pub(in crate::http::faces) id: String,
    /// Its parts.
    pub(in crate::http::faces) content: Vec<ContentPart>,
}

impl ChatEcho {
    /// Makes the echo of a request. Leaves out files, and then all messages, that are too large.
    pub(in crate::http) fn of_request(input: &[InputMessage]) -> Self {
        let messages: Vec<_> = input.iter().map(EchoMessage::of_input).collect();
        let fits = |messages: &Vec<EchoMessage>| json_length_within(messages, MAX_BYTES).is_some();
        let small = Some(messages).filter(fits).or_else(|| {
            let texts = input
                .iter()
                .map(|message| EchoMessage::of_input(message).without_files());
            Some(texts.collect()).filter(fits)
        });
        Self {
            continues: Some(input.is_empty()),
            again: None,
            messages: small.unwrap_or_default(),
        }
    }

    /// Returns the form that a record retains.
    pub(in crate::http) fn stored(&self) -> Arc<Object> {
        let object = serde_json::to_value(self).ok().and_then(|echo| match echo {
            Value::Object(fields) => Some(fields),
            _ => None,
        });
        Arc::new(object.unwrap_or_default())
    }

    /// Reads the echo of a run.
    pub(in crate::http) fn of_stored(echo: Option<&Object>) -> Self {
        let read = echo.and_then(|echo| Self::deserialize(echo).ok());
        read.unwrap_or_default()
    }
}

impl EchoMessage {
    /// Returns what the page calls it.
    pub(in crate::http) fn id(&self) -> &str {
        &self.id
    }

    /// Makes a message of a run that repeats it.
    pub(in crate::http) fn into_input(self) -> InputMessage {
        InputMessage {
            metadata: page_metadata(&self.id),
            ..InputMessage::of_user(self.content)
        }
    }

    fn of_input(message: &InputMessage) -> Self {
        Self {
            id: page_id(&message.metadata).unwrap_or_default().to_owned(),
            content: message.content.clone(),
        }
    }

    /// Makes one from a stored message, under the id that the page has given it.
    pub(in crate::http) fn of_stored(message: &Message) -> Self {
        let id = page_id(&message.metadata);
        Self {
            id: id.map_or_else(|| message.id.to_string(), str::to_owned),
            content: message.content.clone(),
        }
    }

    /// Returns whether a stored message of the user has an id on the page.
    pub(in crate::http) fn names(message: &Message, id: &str) -> bool {
        let given = page_id(&message.metadata);
        message.role == Role::User && (given == Some(id) || (given.is_none() && message.id.to_string() == id))
    }

    fn without_files(mut self) -> Self {
        self.content.retain(|part| part.as_text().is_some());
        self
    }
}

/// Makes the metadata of a message, with the id that the page has given it.
pub(in crate::http::faces) fn page_metadata(id: &str) -> Object {
    Object::from_iter([(PAGE_ID.to_owned(), Value::from(id))])
}

fn page_id(metadata: &Object) -> Option<&str> {
    metadata.get(PAGE_ID).and_then(Value::as_str)
}

//! What the record of a run retains of its request: whether it goes on with a turn, and the new
//! messages, which the session of the run has only once the run has ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::UiMessage;
use crate::run::InputMessage;
use values::json::{Object, Value, json_length_within};

/// The most bytes of the messages that a record retains.
const MAX_BYTES: usize = 1 << 20;

/// A request as the record of its run retains it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(in crate::http) struct ChatEcho {
    /// Whether the run answers the calls of the run before, and goes on with its message. Absent in
    /// runs of other requests.
    #[serde(rename = "ui_continues")]
    pub(in crate::http) continues: Option<bool>,
    /// The new messages.
    #[serde(rename = "ui_messages", default)]
    pub(in crate::http) messages: Vec<Value>,
}

impl ChatEcho {
    /// Makes the echo of a request. Leaves out files, and then all messages, that are too large.
    pub(in crate::http) fn of_request(input: &[InputMessage]) -> Arc<Object> {
        let messages: Vec<_> = input.iter().map(UiMessage::of_input).collect();
        let fits = |messages: &Vec<UiMessage>| json_length_within(messages, MAX_BYTES).is_some();
        let small = Some(messages).filter(fits).or_else(|| {
            let texts = input.iter().map(|message| UiMessage::of_input(message).without_files());
            Some(texts.collect()).filter(fits)
        });
        let messages = small.unwrap_or_default().into_iter();
        let echo = Self {
            continues: Some(input.is_empty()),
            messages: messages
                .filter_map(|message| serde_json::to_value(message).ok())
                .collect(),
        };
        let object = serde_json::to_value(echo).ok().and_then(|echo| match echo {
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

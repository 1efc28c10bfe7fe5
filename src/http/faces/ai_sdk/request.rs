//! The body of a request, as `useChat` sends it. Pages add fields of their own, which have no
//! effect.

use serde::Deserialize;

use crate::http::faces::chat::page_metadata;
use crate::http::faces::fields::{Fields, decode};
use crate::http::input::{InputPart, check_part_with};
use crate::http::problem::Problem;
use crate::run::InputMessage;
use agent::record::{ParseThreadNameError, ThreadName};
use values::ids::RunId;
use values::json::{Object, Value};
use values::message::{ContentPart, MediaSource, Role};

/// The longest id of a message, in bytes.
const MAX_ID: usize = 256;

/// A request for an answer of the agent.
#[derive(Debug)]
pub(in crate::http) struct ChatRequest {
    /// The thread of the chat.
    pub(in crate::http) thread: ThreadName,
    /// The messages of the page, oldest first; at least one. Those that an edit or a regeneration
    /// replaces are gone.
    pub(in crate::http) messages: Vec<PageMessage>,
    /// Whether the page has sent its last message only.
    pub(in crate::http) is_last_only: bool,
}

/// A message of the page. Nothing in it is trusted but its id, and what it adds.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct PageMessage {
    /// Names the message.
    pub(in crate::http) id: String,
    /// The speaker.
    role: String,
    /// The parts.
    #[serde(default)]
    pub(super) parts: Vec<Value>,
    /// Its JSON pointer.
    #[serde(skip)]
    pub(in crate::http) pointer: String,
}

#[derive(Debug, Deserialize)]
struct TextPart {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilePart {
    media_type: String,
    url: String,
    filename: Option<String>,
}

impl ChatRequest {
    /// Reads a body.
    pub(in crate::http) fn read(body: Object) -> Result<Self, Problem> {
        let mut fields = Fields::new(body);
        let id: String = fields.required("id")?;
        let thread = id.parse().map_err(|error: ParseThreadNameError| {
            Problem::invalid_field("/id", format!("the id of a chat names its thread, and {error}"))
        })?;
        let all: Option<Vec<Value>> = fields.take("messages")?;
        let is_last_only = all.is_none();
        let messages = match all {
            Some(messages) => messages,
            None => vec![fields.required("message")?],
        };
        if messages.is_empty() {
            return Err(Problem::invalid_field("/messages", "a chat begins with a message"));
        }
        let messages = messages.into_iter().enumerate().map(|(index, message)| {
            let pointer = if is_last_only {
                "/message".to_owned()
            } else {
                format!("/messages/{index}")
            };
            PageMessage::read(message, pointer)
        });
        Ok(Self {
            thread,
            messages: messages.collect::<Result<_, _>>()?,
            is_last_only,
        })
    }
}

impl PageMessage {
    fn read(message: Value, pointer: String) -> Result<Self, Problem> {
        let read: Self = decode(message, &pointer)?;
        if read.id.len() > MAX_ID {
            let words = format!("an id has at most {MAX_ID} bytes");
            return Err(Problem::invalid_field(format!("{pointer}/id"), words));
        }
        Ok(Self { pointer, ..read })
    }

    /// Returns whether it is of the user.
    pub(in crate::http) fn is_of_user(&self) -> bool {
        self.role == "user"
    }

    /// Returns whether it is of the agent.
    pub(in crate::http) fn is_of_agent(&self) -> bool {
        self.role == "assistant"
    }

    /// Returns the run that its id names.
    pub(in crate::http) fn run_id(&self) -> Option<RunId> {
        self.id.parse().ok()
    }

    /// Makes a message for the run from one of the user: its texts and files.
    pub(super) fn input(&self) -> Result<InputMessage, Problem> {
        let parts = self.parts.iter().enumerate();
        let content = parts.map(|(index, part)| read_part(part, &format!("{}/parts/{index}", self.pointer)));
        let content: Vec<_> = content.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if content.is_empty() {
            let words = "neither a text nor a file";
            return Err(Problem::invalid_field(format!("{}/parts", self.pointer), words));
        }
        Ok(InputMessage {
            metadata: page_metadata(&self.id),
            ..InputMessage::of_user(content)
        })
    }
}

/// Reads a part of a message; `None` for one that says nothing to the agent.
fn read_part(part: &Value, pointer: &str) -> Result<Option<ContentPart>, Problem> {
    let (part, pointer) = match part.get("type").and_then(Value::as_str) {
        Some("text") => {
            let TextPart { text } = decode(part.clone(), pointer)?;
            if text.is_empty() {
                return Ok(None);
            }
            (InputPart::Text { text }, format!("{pointer}/text"))
        }
        Some("file") => {
            let FilePart {
                media_type,
                url,
                filename,
            } = decode(part.clone(), pointer)?;
            let source = MediaSource::Url { url };
            let part = if media_type.starts_with("image/") {
                InputPart::Image { source, detail: None }
            } else {
                InputPart::Document { source, name: filename }
            };
            (part, format!("{pointer}/url"))
        }
        _ => return Ok(None),
    };
    check_part_with(part, Role::User, &pointer, &|_| pointer.clone()).map(Some)
}

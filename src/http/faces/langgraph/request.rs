//! The body of a request for a run. Clients send dozens of fields; those without an effect here are
//! ignored.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::writer::Modes;
use crate::http::checks::check_metadata;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::page_metadata;
use crate::http::faces::fields::{Fields, decode, missing, unsupported};
use crate::http::input::{InputPart, check_part_with};
use crate::http::problem::Problem;
use crate::run::{InputMessage, OnDisconnect};
use agent::ports::RunWebhook;
use agent::record::RunControl;
use store::queue::IfBusy;
use values::ids::SessionId;
use values::json::{Object, Value};
use values::message::{ContentPart, MediaSource, Role};

/// The longest id of a message, in bytes.
const MAX_ID: usize = 512;
/// The checkpoint before all sessions.
pub(in crate::http) const ROOT: &str = "root";
/// The end of the name of a checkpoint after the input of a run.
const INPUT: &str = ".in";

/// A checkpoint: a session, or the state after the input of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum CheckpointName {
    /// Before all sessions.
    Root,
    /// A session.
    Session(SessionId),
    /// The input of the run that publishes a session.
    Input(SessionId),
}

impl CheckpointName {
    /// Reads a name; `None` if no checkpoint has it.
    pub(in crate::http) fn read(name: &str) -> Option<Self> {
        if name == ROOT {
            return Some(Self::Root);
        }
        match name.strip_suffix(INPUT) {
            Some(session) => session.parse().ok().map(Self::Input),
            None => name.parse().ok().map(Self::Session),
        }
    }
}

impl std::fmt::Display for CheckpointName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => formatter.write_str(ROOT),
            Self::Session(session_id) => write!(formatter, "{session_id}"),
            Self::Input(session_id) => write!(formatter, "{session_id}{INPUT}"),
        }
    }
}

/// The effect of another run that works on the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum Multitask {
    Reject,
    #[default]
    Enqueue,
    Interrupt,
    /// The other run is cancelled: nothing of it stays.
    Rollback,
}

impl Multitask {
    /// Returns how the run at work ends, if it is in the way.
    pub(in crate::http) fn control(self) -> Option<RunControl> {
        match self {
            Self::Reject | Self::Enqueue => None,
            Self::Interrupt => Some(RunControl::Stop),
            Self::Rollback => Some(RunControl::Cancel),
        }
    }

    /// Returns what the queue does.
    pub(in crate::http) fn if_busy(self) -> IfBusy {
        match self {
            Self::Reject => IfBusy::Reject,
            Self::Enqueue | Self::Rollback => IfBusy::Queue,
            Self::Interrupt => IfBusy::Interrupt,
        }
    }
}

/// What a client does with open calls.
#[derive(Debug)]
pub(in crate::http) enum Command {
    /// Answers them.
    Resume(Value),
    /// Goes on without answers.
    Resolve,
}

/// A request for a run.
#[derive(Debug)]
pub(in crate::http) struct RunBody {
    /// The name or the id of the agent.
    pub(in crate::http) assistant: String,
    /// The messages of the user, with their JSON pointers.
    messages: Vec<(Value, String)>,
    pub(in crate::http) command: Option<Command>,
    /// The checkpoint to start from; `None` for the head of the thread.
    pub(in crate::http) checkpoint: Option<String>,
    pub(in crate::http) multitask: Multitask,
    pub(in crate::http) on_disconnect: OnDisconnect,
    pub(in crate::http) modes: Modes,
    pub(in crate::http) metadata: Object,
    pub(in crate::http) webhook: Option<RunWebhook>,
    /// Whether a thread that does not exist is created.
    pub(in crate::http) creates_thread: bool,
}

#[derive(Debug, Deserialize)]
struct CommandBody {
    #[serde(default)]
    resume: Value,
    #[serde(default)]
    goto: Value,
}

#[derive(Debug, Deserialize)]
struct Checkpoint {
    checkpoint_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    configurable: Object,
}

impl RunBody {
    /// Reads a body.
    pub(in crate::http) fn read(body: Object) -> Result<Self, Problem> {
        let mut fields = Fields::new(body);
        let command: Option<CommandBody> = fields.take("command")?;
        let checkpoint: Option<Checkpoint> = fields.take("checkpoint")?;
        let config: Config = fields.take("config")?.unwrap_or_default();
        let mut configurable = config.configurable;
        let of_config = configurable.remove("checkpoint_id");
        let of_config = of_config.and_then(|id| id.as_str().map(str::to_owned));
        let named = checkpoint.and_then(|checkpoint| checkpoint.checkpoint_id);
        let named = named.or(fields.take("checkpoint_id")?).or(of_config);
        if fields
            .take::<f64>("after_seconds")?
            .is_some_and(|seconds| seconds > 0.0)
        {
            return Err(unsupported("/after_seconds", "runs begin at once"));
        }
        let on_disconnect: Option<String> = fields.take("on_disconnect")?;
        let webhook: Option<String> = fields.take("webhook")?;
        let if_not_exists: Option<String> = fields.take("if_not_exists")?;
        let metadata: Object = fields.take("metadata")?.unwrap_or_default();
        check_metadata(&metadata, "/metadata")?;
        Ok(Self {
            assistant: fields.required("assistant_id")?,
            messages: messages_in(fields.take("input")?),
            command: command.and_then(CommandBody::into_command),
            checkpoint: named,
            multitask: fields.take("multitask_strategy")?.unwrap_or_default(),
            on_disconnect: match on_disconnect.as_deref() {
                Some("cancel") => OnDisconnect::Stop,
                _ => OnDisconnect::Continue,
            },
            modes: Modes::read(fields.take("stream_mode")?),
            metadata,
            webhook: webhook.map(|url| RunWebhook {
                url,
                events: Vec::new(),
                secret: None,
                trace_context: true,
            }),
            creates_thread: if_not_exists.as_deref() == Some("create"),
        })
    }

    /// Returns the new messages of the user: those whose ids are not known. A message of the page
    /// that replaces a known one has no effect.
    pub(in crate::http) fn new_messages(
        &self,
        is_known: impl Fn(&str) -> bool,
        make_id: impl Fn() -> String,
        max: usize,
    ) -> Result<Vec<InputMessage>, Problem> {
        let (mut new, mut seen) = (Vec::new(), BTreeSet::new());
        for (message, pointer) in &self.messages {
            match read_message(message, pointer)? {
                Read::OfUser(Some(id), _) | Read::OfAgent(Some(id)) if is_known(&id) || !seen.insert(id.clone()) => (),
                Read::OfUser(id, content) => new.push(InputMessage {
                    metadata: page_metadata(&id.unwrap_or_else(&make_id)),
                    ..InputMessage::of_user(content)
                }),
                Read::OfAgent(_) => {
                    let words = "no message of the agent in this thread has this id";
                    return Err(Problem::invalid_field(format!("{pointer}/id"), words));
                }
                Read::Other => (),
            }
        }
        if new.len() > max {
            let words = format!("{} new messages, and at most {max} are allowed", new.len());
            return Err(Problem::of_field(
                ProblemCode::TooManyMessages,
                "/input/messages",
                words,
            ));
        }
        Ok(new)
    }
}

impl CommandBody {
    fn into_command(self) -> Option<Command> {
        if !self.resume.is_null() {
            return Some(Command::Resume(self.resume));
        }
        (!self.goto.is_null()).then_some(Command::Resolve)
    }
}

impl Modes {
    /// Reads modes: a text, or a list of texts. Without any, a client gets the values.
    pub(in crate::http) fn read(modes: Option<Value>) -> Self {
        let modes = match modes {
            Some(Value::Array(modes)) => modes,
            Some(mode) => vec![mode],
            None => Vec::new(),
        };
        let modes: Vec<&str> = modes
            .iter()
            .filter_map(Value::as_str)
            .filter(|mode| !mode.is_empty())
            .collect();
        let has = |mode: &str| modes.contains(&mode);
        Self {
            values: modes.is_empty() || has("values"),
            messages: has("messages-tuple") || has("messages"),
            updates: has("updates"),
            custom: has("custom"),
        }
    }

    /// All modes.
    pub(in crate::http) const ALL: Self = Self {
        values: true,
        messages: true,
        updates: true,
        custom: true,
    };
}

/// Returns the messages of an input, with their pointers. Other values have no effect.
fn messages_in(input: Option<Value>) -> Vec<(Value, String)> {
    let messages = match input {
        Some(Value::Object(mut fields)) => fields.remove("messages"),
        _ => None,
    };
    let messages = match messages {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(messages)) => messages,
        Some(message) => vec![message],
    };
    let pointed = messages.into_iter().enumerate();
    pointed
        .map(|(index, message)| (message, format!("/input/messages/{index}")))
        .collect()
}

#[derive(Debug, Deserialize)]
struct MessageBody {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: Value,
}

/// A message of an input.
enum Read {
    /// A message of the user, with its id, if it has one.
    OfUser(Option<String>, Vec<ContentPart>),
    /// A message that the agent has made, as the client says.
    OfAgent(Option<String>),
    /// A message without an effect. A page has results for calls that wait only to go on without
    /// them.
    Other,
}

fn read_message(message: &Value, pointer: &str) -> Result<Read, Problem> {
    let read: MessageBody = decode(message.clone(), pointer)?;
    match read.kind.or(read.role).as_deref() {
        Some("human" | "user") => (),
        Some("ai" | "assistant" | "AIMessageChunk") => return Ok(Read::OfAgent(read.id)),
        Some(_) => return Ok(Read::Other),
        None => return Err(missing(pointer, "type")),
    }
    if read.id.as_ref().is_some_and(|id| id.len() > MAX_ID) {
        let words = format!("an id has at most {MAX_ID} bytes");
        return Err(Problem::invalid_field(format!("{pointer}/id"), words));
    }
    let pointer = format!("{pointer}/content");
    let content = match read.content {
        Value::String(text) if !text.is_empty() => vec![ContentPart::text(text)],
        Value::Array(blocks) => read_blocks(blocks, &pointer)?,
        _ => Vec::new(),
    };
    if content.is_empty() {
        return Err(Problem::invalid_field(pointer, "neither a text nor a file"));
    }
    Ok(Read::OfUser(read.id, content))
}

/// A part of a message, in the forms of clients.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    Image(Media),
    File(Media),
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Plain(String),
    Object { url: String },
}

#[derive(Debug, Deserialize)]
struct Media {
    #[serde(alias = "mimeType")]
    mime_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
    #[serde(default)]
    metadata: Object,
}

fn read_blocks(blocks: Vec<Value>, pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    let mut read = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        let part = match decode(block, &pointer)? {
            Block::Text { text } if text.is_empty() => continue,
            Block::Text { text } => InputPart::Text { text },
            Block::ImageUrl { image_url } => {
                let (ImageUrl::Plain(url) | ImageUrl::Object { url }) = image_url;
                InputPart::Image {
                    source: MediaSource::Url { url },
                    detail: None,
                }
            }
            Block::Image(media) => InputPart::Image {
                source: media.source(&pointer)?,
                detail: None,
            },
            Block::File(media) => InputPart::Document {
                name: media.name(),
                source: media.source(&pointer)?,
            },
            Block::Other => return Err(unsupported(pointer, "only texts, images and files reach the model")),
        };
        read.push(check_part_with(part, Role::User, &pointer, &|_| pointer.clone())?);
    }
    Ok(read)
}

impl Media {
    fn name(&self) -> Option<String> {
        let name = self.metadata.get("filename").or(self.metadata.get("name"));
        name.and_then(Value::as_str).map(str::to_owned)
    }

    fn source(self, pointer: &str) -> Result<MediaSource, Problem> {
        match (self.data, self.url) {
            (Some(data), _) => Ok(MediaSource::Base64 {
                media_type: self.mime_type.unwrap_or_default(),
                data,
            }),
            (None, Some(url)) => Ok(MediaSource::Url { url }),
            (None, None) => Err(Problem::invalid_field(pointer, "neither `data` nor `url`")),
        }
    }
}

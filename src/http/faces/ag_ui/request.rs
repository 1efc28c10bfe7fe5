//! The body of a request, `RunAgentInput` (<https://ag-ui.com/spec/1.0/schema.json>). Pages add
//! fields of their own, which have no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use crate::http::checks::check_variables;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::page_metadata;
use crate::http::faces::fields::{Fields, decode, wrong_type};
use crate::http::input::{InputPart, check_part_with};
use crate::http::problem::Problem;
use crate::run::InputMessage;
use agent::answers::ClientTool;
use agent::record::{ParseThreadNameError, ThreadName};
use values::ids::RunId;
use values::json::{Object, Value};
use values::message::{ContentPart, MediaSource, Role};

/// The longest id of a message, a call or a run, in bytes.
const MAX_ID: usize = 512;

/// A request to run an agent.
#[derive(Debug)]
pub(in crate::http) struct RunInput {
    /// The thread.
    pub(in crate::http) thread: ThreadName,
    /// What the page calls the run.
    pub(in crate::http) run_id: String,
    /// The messages of the page, oldest first.
    pub(in crate::http) messages: Vec<PageMessage>,
    /// The messages as the page has sent them, as a JSON array.
    pub(in crate::http) raw_messages: String,
    /// The answers to interrupts.
    pub(in crate::http) resume: Vec<ResumeEntry>,
    /// The tools of the page.
    pub(in crate::http) tools: Vec<ClientTool>,
    /// What the application tells the agent, for this run.
    pub(in crate::http) instructions: Option<String>,
    /// The state of the page: variables of the session. `None` if it has none.
    pub(in crate::http) state: Option<BTreeMap<String, Value>>,
}

/// A message of the page. Nothing in it is trusted but its id, and what it adds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct PageMessage {
    /// Names the message.
    pub(in crate::http) id: String,
    role: String,
    #[serde(default)]
    pub(super) content: Value,
    /// The call whose result it is.
    pub(super) tool_call_id: Option<String>,
    /// The error of that call.
    pub(super) error: Option<String>,
    /// The subagent that it is of.
    subagent_run_id: Option<String>,
    /// Its JSON pointer.
    #[serde(skip)]
    pub(in crate::http) pointer: String,
}

/// An answer to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ResumeEntry {
    /// The interrupt.
    pub(super) interrupt_id: String,
    /// Whether there is an answer.
    pub(super) status: ResumeStatus,
    /// The answer.
    #[serde(default)]
    pub(super) payload: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    Resolved,
    Cancelled,
}

#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Context {
    description: String,
    value: String,
}

/// A part of a message of the user.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Part {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Document {
        source: Source,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Source {
    Data { value: String, mime_type: String },
    Url { value: String },
    File { value: String, provider: Option<String> },
}

impl RunInput {
    /// Reads a body.
    pub(in crate::http) fn read(body: Object) -> Result<Self, Problem> {
        let mut fields = Fields::new(body);
        let thread: String = fields.required("threadId")?;
        let thread = thread.parse().map_err(|error: ParseThreadNameError| {
            Problem::invalid_field("/threadId", format!("it is the name of the thread, and {error}"))
        })?;
        let run_id: String = fields.required("runId")?;
        check_id(&run_id, "/runId")?;
        let messages: Vec<Value> = fields.required("messages")?;
        let raw_messages = serde_json::to_string(&messages).map_err(Problem::internal)?;
        let messages = messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| PageMessage::read(message, format!("/messages/{index}")));
        let tools: Option<Vec<Tool>> = fields.take("tools")?;
        let context: Option<Vec<Context>> = fields.take("context")?;
        Ok(Self {
            thread,
            run_id,
            messages: messages.collect::<Result<_, _>>()?,
            raw_messages,
            resume: fields.take("resume")?.unwrap_or_default(),
            tools: tools
                .unwrap_or_default()
                .into_iter()
                .map(Tool::into_client_tool)
                .collect(),
            instructions: instructions_of(&context.unwrap_or_default()),
            state: read_state(fields.take("state")?)?,
        })
    }

    /// Returns the names of the tools of the page.
    pub(in crate::http) fn tool_names(&self) -> BTreeSet<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Returns the calls whose results the page has sent.
    pub(in crate::http) fn answered(&self) -> BTreeSet<String> {
        let results = self.messages.iter().filter(|message| message.is_result());
        results.filter_map(|message| message.tool_call_id.clone()).collect()
    }

    /// Returns whether the page has sent a message of the agent, and so all that it shows.
    pub(in crate::http) fn shows_agent(&self) -> bool {
        self.messages.iter().any(PageMessage::is_of_agent)
    }

    /// Returns whether the page asks for what is there: it has at most a greeting.
    pub(in crate::http) fn is_empty(&self) -> bool {
        let says = |message: &PageMessage| message.is_of_user() || message.is_result();
        self.resume.is_empty() && !self.messages.iter().any(says)
    }
}

/// Reads the state of a page. An empty one says nothing: pages begin with it.
fn read_state(state: Option<Value>) -> Result<Option<BTreeMap<String, Value>>, Problem> {
    let state = match state {
        None => return Ok(None),
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return Err(wrong_type(
                "/state",
                "it has the variables of the session, so it is an object",
            ));
        }
    };
    let variables: BTreeMap<_, _> = state.into_iter().collect();
    check_variables(&variables, "/state")?;
    Ok(Some(variables).filter(|variables| !variables.is_empty()))
}

fn instructions_of(context: &[Context]) -> Option<String> {
    let mut text = String::new();
    for Context { description, value } in context {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{description}:\n{value}\n");
    }
    Some(text).filter(|text| !text.is_empty())
}

impl Tool {
    fn into_client_tool(self) -> ClientTool {
        let none = || serde_json::json!({"type": "object"});
        ClientTool {
            name: self.name,
            description: self.description,
            parameters: self.parameters.filter(Value::is_object).unwrap_or_else(none),
            response_schema: None,
            expires_after_seconds: None,
        }
    }
}

impl PageMessage {
    fn read(message: Value, pointer: String) -> Result<Self, Problem> {
        let read: Self = decode(message, &pointer)?;
        check_id(&read.id, &format!("{pointer}/id"))?;
        Ok(Self { pointer, ..read })
    }

    /// Returns whether it is of the user.
    pub(in crate::http) fn is_of_user(&self) -> bool {
        self.role == "user" && self.subagent_run_id.is_none()
    }

    /// Returns whether it is of the agent itself.
    pub(in crate::http) fn is_of_agent(&self) -> bool {
        self.role == "assistant" && self.subagent_run_id.is_none()
    }

    /// Returns whether it is the result of a call.
    pub(super) fn is_result(&self) -> bool {
        self.role == "tool" && self.subagent_run_id.is_none()
    }

    /// Returns the run that its id names.
    pub(in crate::http) fn run_id(&self) -> Option<RunId> {
        self.id.split('.').next()?.parse().ok()
    }

    /// Makes a message for the run from one of the user.
    pub(super) fn input(&self) -> Result<InputMessage, Problem> {
        let content = self.parts()?;
        if content.is_empty() {
            let words = "neither a text nor a file";
            return Err(Problem::invalid_field(format!("{}/content", self.pointer), words));
        }
        Ok(InputMessage {
            metadata: page_metadata(&self.id),
            ..InputMessage::of_user(content)
        })
    }

    /// Returns its texts and files.
    pub(super) fn parts(&self) -> Result<Vec<ContentPart>, Problem> {
        match &self.content {
            Value::String(text) if !text.is_empty() => Ok(vec![ContentPart::text(text.clone())]),
            Value::Array(parts) => read_parts(parts, &format!("{}/content", self.pointer)),
            _ => Ok(Vec::new()),
        }
    }
}

fn read_parts(parts: &[Value], pointer: &str) -> Result<Vec<ContentPart>, Problem> {
    let mut read = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        let part = match decode(part.clone(), &pointer)? {
            Part::Text { text } if text.is_empty() => continue,
            Part::Text { text } => InputPart::Text { text },
            Part::Image { source } => InputPart::Image {
                source: source.into_media(&pointer)?,
                detail: None,
            },
            Part::Document { source } => InputPart::Document {
                source: source.into_media(&pointer)?,
                name: None,
            },
            Part::Other => {
                let words = "only texts, images and documents reach the model";
                return Err(Problem::of_field(ProblemCode::UnsupportedParameter, pointer, words));
            }
        };
        let at = format!("{pointer}/source/value");
        read.push(check_part_with(part, Role::User, &pointer, &|_| at.clone())?);
    }
    Ok(read)
}

impl Source {
    fn into_media(self, pointer: &str) -> Result<MediaSource, Problem> {
        Ok(match self {
            Self::Data { value, mime_type } => MediaSource::Base64 {
                media_type: mime_type,
                data: value,
            },
            Self::Url { value } => MediaSource::Url { url: value },
            Self::File {
                value,
                provider: Some(provider),
            } => MediaSource::ProviderFile {
                provider,
                file_id: value,
            },
            Self::File { .. } => {
                let words = "name the provider that has the file";
                return Err(Problem::invalid_field(format!("{pointer}/source/provider"), words));
            }
        })
    }
}

fn check_id(id: &str, pointer: &str) -> Result<(), Problem> {
    if id.len() <= MAX_ID {
        return Ok(());
    }
    Err(Problem::invalid_field(
        pointer,
        format!("an id has at most {MAX_ID} bytes"),
    ))
}

//! The body of `POST /v1/responses`.

use std::sync::Arc;

use serde_json::json;

use super::generation::Generation;
use super::items::{Item, Opener, read_input};
use crate::http::codes::ProblemCode;
use crate::http::faces::fields::{Fields, decode, unsupported};
use crate::http::faces::openai::echo::{ConversationId, Echo, MAX_ECHO, ReasoningEcho};
use crate::http::faces::openai::ids::parse_response_id;
use crate::http::openai_settings::OpenAiAccess;
use crate::http::problem::Problem;
use crate::run::RunRequest;
use agent::record::{RunMode, ThreadName};
use values::ids::RunId;
use values::json::{Object, Value};

/// Fields that the service accepts and that have no effect.
const IGNORED: [&str; 3] = ["background_options", "prompt_cache_options", "stream_options"];
/// Fields that ask for something that agents do not do.
const UNSUPPORTED: [&str; 9] = [
    "access_programs",
    "context_management",
    "frequency_penalty",
    "image",
    "max_tool_calls",
    "moderation",
    "presence_penalty",
    "prompt",
    "top_logprobs",
];

/// A request for a response, read for its form.
#[derive(Debug)]
pub(in crate::http) struct CreateResponse {
    /// The items of the input, each with its index.
    pub(in crate::http) items: Vec<(usize, Item)>,
    /// The run of the response that it continues.
    pub(in crate::http) previous: Option<RunId>,
    /// The thread that it continues.
    pub(in crate::http) conversation: Option<ThreadName>,
    /// Whether the response is a stream.
    pub(in crate::http) streams: bool,
    /// The request as a response shows it.
    pub(in crate::http) echo: Arc<Echo>,
    generation: Generation,
}

impl CreateResponse {
    /// Reads a body.
    pub(in crate::http) fn read(
        body: Object,
        opener: Opener<'_>,
        access: OpenAiAccess,
        max_items: usize,
    ) -> Result<Self, Problem> {
        let tools = body.get("tools").map(echoed_tools).unwrap_or_default();
        let tool_choice = body.get("tool_choice").filter(|choice| !choice.is_null()).cloned();
        let mut fields = Fields::new(body);
        fields.refuse(&UNSUPPORTED)?;
        let mut generation = Generation::take(&mut fields, access)?;
        let default = Echo::default();
        let mut echo = Echo {
            model: generation.model.clone(),
            previous_response_id: fields.take("previous_response_id")?,
            conversation: take_conversation(&mut fields)?,
            instructions: fields.take("instructions")?,
            tools,
            tool_choice: tool_choice.unwrap_or(default.tool_choice),
            parallel_tool_calls: generation.calls_in_parallel(),
            reasoning: fields.take::<ReasoningEcho>("reasoning")?.unwrap_or_default(),
            temperature: generation.parameters.temperature.unwrap_or(default.temperature),
            top_p: generation.parameters.top_p.unwrap_or(default.top_p),
            max_output_tokens: fields.take("max_output_tokens")?,
            truncation: fields.take("truncation")?.unwrap_or(default.truncation),
            store: fields.take("store")?.unwrap_or(default.store),
            background: fields.take("background")?.unwrap_or(default.background),
            service_tier: fields.take("service_tier")?.unwrap_or(default.service_tier),
            metadata: generation.metadata.clone(),
            safety_identifier: fields.take("safety_identifier")?,
            prompt_cache_key: fields.take("prompt_cache_key")?,
            prompt_cache_retention: fields.take("prompt_cache_retention")?,
            user: fields.take("user")?,
            include: fields.take("include")?.unwrap_or_default(),
            ..default
        };
        if let Some(text) = fields.take("text")? {
            let (shown, format) = read_text(text);
            if let Some(format) = format {
                generation.set_format(format, "/text/format")?;
            }
            echo.text = shown;
        }
        generation
            .parameters
            .reasoning_effort
            .clone_from(&echo.reasoning.effort);
        generation.parameters.max_output_tokens = echo.max_output_tokens;
        let streams = fields.take("stream")?.unwrap_or_default();
        let input: Value = fields.take("input")?.unwrap_or_else(|| json!([]));
        fields.ignore(&IGNORED);
        fields.finish();
        check_size(&echo)?;
        let (previous, conversation) = base_of(&echo)?;
        Ok(Self {
            items: read_input(input, opener, max_items)?,
            previous,
            conversation,
            streams,
            echo: Arc::new(echo),
            generation,
        })
    }

    /// Makes the request for a run, without its input and its base.
    pub(in crate::http) fn into_run(self) -> RunRequest {
        let mode = match (self.echo.background, self.streams) {
            (true, _) => RunMode::Async,
            (false, true) => RunMode::Stream,
            (false, false) => RunMode::Sync,
        };
        self.generation.apply(RunRequest {
            thread: self.conversation,
            instructions: self.echo.instructions.clone().filter(|text| !text.is_empty()),
            publish: self.echo.store,
            echo: Some(self.echo.to_object().into()),
            ..RunRequest::new(mode)
        })
    }
}

/// Returns what the request continues. Refuses fields that exclude each other.
fn base_of(echo: &Echo) -> Result<(Option<RunId>, Option<ThreadName>), Problem> {
    if echo.conversation.is_some() && echo.previous_response_id.is_some() {
        let words = "a request continues a conversation or a response, not both";
        return Err(unsupported("/conversation", words));
    }
    if !echo.store && echo.background {
        let words = "a response in the background is stored: leave `store: false` out";
        return Err(unsupported("/background", words));
    }
    if !echo.store && echo.conversation.is_some() {
        let words = "a response of a conversation is stored: leave `store: false` out";
        return Err(unsupported("/store", words));
    }
    let previous = echo.previous_response_id.as_deref();
    let previous = previous.map(|id| parse_response_id(id).ok_or_else(|| no_previous(id)));
    let conversation = echo.conversation.as_ref().map(|conversation| &conversation.id);
    let conversation = conversation.map(|id| id.parse().map_err(|_| no_conversation(id)));
    Ok((previous.transpose()?, conversation.transpose()?))
}

/// Refuses a request whose echo is too large to be stored with the run. The problem names the
/// largest field.
fn check_size(echo: &Echo) -> Result<(), Problem> {
    let Some(field) = echo.excess() else { return Ok(()) };
    let words = format!("with the other fields that a response repeats, it has more than {MAX_ECHO} bytes");
    Err(Problem::invalid_field(format!("/{field}"), words))
}

/// Makes the problem of a previous response that does not exist.
pub(in crate::http) fn no_previous(id: &str) -> Problem {
    let words = format!("Previous response with id '{}' not found.", shortened(id));
    Problem::new(ProblemCode::PreviousResponseNotFound, words)
}

/// Makes the problem of a conversation that does not exist.
pub(in crate::http) fn no_conversation(id: &str) -> Problem {
    let words = format!("Conversation with id '{}' not found.", shortened(id));
    Problem::new(ProblemCode::ThreadNotFound, words)
}

/// Truncates an id for a message.
pub(in crate::http) fn shortened(id: &str) -> &str {
    const MAX_ID: usize = 128;
    &id[..id.floor_char_boundary(MAX_ID)]
}

fn take_conversation(fields: &mut Fields) -> Result<Option<ConversationId>, Problem> {
    match fields.take::<Value>("conversation")? {
        None => Ok(None),
        Some(Value::String(id)) => Ok(Some(ConversationId { id })),
        Some(conversation) => decode(conversation, "/conversation").map(Some),
    }
}

/// Returns the field `text` as the response repeats it, and the format in it.
fn read_text(mut text: Object) -> (Value, Option<Value>) {
    text.retain(|_, value| !value.is_null());
    let format = text.get("format").cloned();
    let mut shown = format.clone().unwrap_or_else(|| json!({"type": "text"}));
    if let Some(schema) = shown.as_object_mut().filter(|shown| shown.contains_key("schema")) {
        for key in ["description", "strict"] {
            schema.entry(key).or_insert(Value::Null);
        }
    }
    text.insert("format".to_owned(), shown);
    (Value::Object(text), format)
}

/// Returns the tools of a request as its response repeats them.
fn echoed_tools(tools: &Value) -> Vec<Value> {
    let tools = tools.as_array().into_iter().flatten();
    let complete = |tool: &Value| {
        let mut tool = tool.clone();
        let function = tool.as_object_mut();
        if let Some(function) = function.filter(|tool| tool.get("type") == Some(&json!("function"))) {
            for key in ["description", "parameters", "strict"] {
                function.entry(key).or_insert(Value::Null);
            }
        }
        tool
    };
    tools.map(complete).collect()
}

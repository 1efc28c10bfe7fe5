//! The body of `POST /v1/chat/completions`.

use serde::Deserialize;

use super::content::{read_content, read_output};
use super::generation::Generation;
use super::items::Item;
use crate::http::codes::ProblemCode;
use crate::http::faces::fields::{Fields, decode, unsupported};
use crate::http::openai_settings::OpenAiAccess;
use crate::http::problem::Problem;
use crate::run::RunRequest;
use agent::record::{ParseThreadNameError, RunMode, ThreadName};
use values::json::{Object, Value};
use values::message::{ContentPart, Role, ToolCall};
use values::session::Setting;

/// Fields that the service accepts and that have no effect.
const IGNORED: [&str; 9] = [
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "strict",
    "user",
    "verbosity",
];
/// Fields that ask for something that agents do not do.
const UNSUPPORTED: [&str; 11] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "moderation",
    "prediction",
    "presence_penalty",
    "top_logprobs",
    "web_search_options",
];
/// The key of the metadata that names a thread.
const THREAD: &str = "thread";

/// A request for a completion, read for its form.
#[derive(Debug)]
pub(in crate::http) struct CreateChat {
    /// The messages as items, each with the index of its message.
    pub(in crate::http) items: Vec<(usize, Item)>,
    /// The thread that the completion continues, if one is named.
    pub(in crate::http) thread: Option<ThreadName>,
    /// Whether the response is a stream.
    pub(in crate::http) streams: bool,
    /// Whether the stream ends with the usage.
    pub(in crate::http) includes_usage: bool,
    /// The model as the client has named it.
    pub(in crate::http) model: String,
    generation: Generation,
}

#[derive(Debug, Deserialize)]
struct ChatMessage {
    role: String,
    #[serde(default)]
    content: Value,
    refusal: Option<String>,
    tool_calls: Option<Vec<ChatCall>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ChatCall {
    id: String,
    function: ChatFunction,
}

#[derive(Debug, Deserialize)]
struct ChatFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl CreateChat {
    /// Reads a body. `thread` is the thread that a header names.
    pub(in crate::http) fn read(
        body: Object,
        thread: Option<&str>,
        access: OpenAiAccess,
        max_messages: usize,
    ) -> Result<Self, Problem> {
        let mut fields = Fields::new(body);
        fields.refuse(&UNSUPPORTED)?;
        if fields.take::<u32>("n")?.is_some_and(|n| n != 1) {
            return Err(unsupported("/n", "a run has one completion"));
        }
        let modalities: Vec<String> = fields.take("modalities")?.unwrap_or_default();
        if modalities.iter().any(|modality| modality != "text") {
            return Err(unsupported("/modalities", "only `text` is supported"));
        }
        let mut generation = Generation::take(&mut fields, access)?;
        let stop = match fields.take::<Value>("stop")? {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text],
            Some(texts) => decode(texts, "/stop")?,
        };
        let limit = take_limit(&mut fields, "max_completion_tokens")?;
        let older = take_limit(&mut fields, "max_tokens")?;
        let parameters = &mut generation.parameters;
        parameters.stop = stop;
        parameters.max_output_tokens = limit.or(older);
        parameters.reasoning_effort = fields.take("reasoning_effort")?;
        if let Some(format) = fields.take("response_format")? {
            generation.set_format(format, "/response_format")?;
        }
        let thread = match thread {
            Some(name) => Some(thread_named(name, "x-agent-thread")?),
            None => generation
                .metadata
                .get(THREAD)
                .map(|name| thread_named(name, "/metadata/thread"))
                .transpose()?,
        };
        let stream_options = fields.take::<StreamOptions>("stream_options")?.unwrap_or_default();
        let streams = fields.take("stream")?.unwrap_or_default();
        let messages: Vec<Value> = fields.required("messages")?;
        fields.ignore(&IGNORED);
        fields.finish();
        Ok(Self {
            items: read_messages(messages, max_messages)?,
            thread,
            streams,
            includes_usage: stream_options.include_usage.unwrap_or_default(),
            model: generation.model.clone(),
            generation,
        })
    }

    /// Returns whether the request sets a format of JSON.
    pub(in crate::http) fn wants_json(&self) -> bool {
        matches!(self.generation.response_format, Setting::Set(_))
    }

    /// Leaves out what the thread has already: everything up to the last message of the model.
    pub(in crate::http) fn continue_thread(&mut self) {
        if let Some(last) = self.items.iter().rposition(|(_, item)| item.is_of_model()) {
            self.items.drain(..=last);
        }
    }

    /// Makes the request for a run, without its input. A run publishes a session only if something
    /// leads there: a thread or an idempotency key.
    pub(in crate::http) fn into_run(self, has_key: bool) -> RunRequest {
        let mode = if self.streams { RunMode::Stream } else { RunMode::Sync };
        self.generation.apply(RunRequest {
            publish: has_key || self.thread.is_some(),
            thread: self.thread,
            ..RunRequest::new(mode)
        })
    }
}

/// Takes a limit of tokens. The problem names the field that the client has sent.
fn take_limit(fields: &mut Fields, name: &str) -> Result<Option<u64>, Problem> {
    match fields.take(name)? {
        Some(0) => Err(Problem::invalid_field(format!("/{name}"), "must be at least 1")),
        limit => Ok(limit),
    }
}

fn thread_named(name: &str, pointer: &str) -> Result<ThreadName, Problem> {
    name.parse()
        .map_err(|error: ParseThreadNameError| Problem::invalid_field(pointer, error.to_string()))
}

/// Reads messages as items.
fn read_messages(messages: Vec<Value>, max: usize) -> Result<Vec<(usize, Item)>, Problem> {
    if messages.len() > max {
        let words = format!("{} messages, and at most {max} are allowed", messages.len());
        return Err(Problem::of_field(ProblemCode::TooManyMessages, "/messages", words));
    }
    let mut items = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let pointer = format!("/messages/{index}");
        let message = read_message(decode(message, &pointer)?, &pointer)?;
        items.extend(message.into_iter().map(|item| (index, item)));
    }
    Ok(items)
}

fn read_message(message: ChatMessage, pointer: &str) -> Result<Vec<Item>, Problem> {
    let role = match message.role.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        role => {
            let words = format!("messages of the role {role:?} are not supported");
            return Err(unsupported(format!("{pointer}/role"), words));
        }
    };
    let pointer_of_content = format!("{pointer}/content");
    if role == Role::Tool {
        let call_id = message.tool_call_id.ok_or_else(|| {
            let words = "missing field `tool_call_id`";
            Problem::of_field(ProblemCode::MissingField, format!("{pointer}/tool_call_id"), words)
        })?;
        let content = read_output(message.content, &pointer_of_content)?;
        return Ok(vec![Item::Output { call_id, content }]);
    }
    let mut content = read_content(message.content, role, &pointer_of_content)?;
    if role != Role::Assistant {
        // Many clients send an empty system prompt.
        let message = (!content.is_empty()).then_some(Item::Message { role, content });
        return Ok(message.into_iter().collect());
    }
    content.extend(
        message
            .refusal
            .filter(|text| !text.is_empty())
            .map(|text| ContentPart::Refusal { text }),
    );
    let calls = message.tool_calls.into_iter().flatten().map(|call| {
        Item::Call(ToolCall {
            id: call.id,
            name: call.function.name,
            arguments: call.function.arguments,
            signature: None,
        })
    });
    let text = Item::Message { role, content };
    Ok(std::iter::once(text).chain(calls).collect())
}

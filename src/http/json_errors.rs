//! Explains why a JSON value does not fit: the field, the error, and the value that the caller may
//! have meant.

use serde_path_to_error::{Error, Path, Segment};

use super::codes::ProblemCode;
use super::problem::Problem;
use values::json::{escape_token, plain_words};
use values::spelling::meant;

/// The most characters of a decoder's message. It may quote values of the caller.
const MAX_MESSAGE: usize = 800;
/// Names of fields and of types of content in other APIs, and the names to use instead.
const RENAMED: &[(&str, &str)] = &[
    ("message", "input"),
    ("prompt", "input"),
    ("prompt", "system_prompt"),
    ("instructions", "system_prompt"),
    ("system", "system_prompt"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("model_settings", "parameters"),
    ("generation_config", "parameters"),
    ("thread_id", "thread"),
    ("conversation", "thread"),
    ("session", "base_session_id"),
    ("session_id", "base_session_id"),
    ("parent", "base_session_id"),
    ("previous_response_id", "base_session_id"),
    ("tool_outputs", "answers"),
    ("functions", "client_tools"),
    ("id", "call_id"),
    ("tool_call_id", "call_id"),
    ("output", "result"),
    ("input_text", "text"),
    ("output_text", "text"),
    ("input_image", "image"),
    ("input_file", "document"),
    ("file", "document"),
];

/// Fields of other APIs for which another name is not enough, a field of the object that is meant,
/// and advice.
const HABITS: &[(&[&str], &str, &str)] = &[
    (&["stream"], "mode", "write `\"mode\": \"stream\"` instead"),
    (
        &["stream", "mode", "messages", "input"],
        "approvals",
        "an agent has none: requests for runs have `input` and `mode`",
    ),
    (&["async", "background"], "mode", "write `\"mode\": \"async\"` instead"),
    (
        &["messages"],
        "input",
        "write `input` instead: it takes a text or a list of messages",
    ),
    (
        &["messages"],
        "message_history_state",
        "write `\"message_history_state\": {\"messages\": [...]}` instead",
    ),
    (
        &["json_schema"],
        "schema",
        "write its `name`, `schema` and `strict` beside `type` instead",
    ),
    (
        &["max_tokens"],
        "parameters",
        "write `max_output_tokens` into `parameters`, or `max_tokens` of the whole run into `budget`",
    ),
    (
        &["max_completion_tokens"],
        "parameters",
        "write `max_output_tokens` into `parameters` instead",
    ),
    (
        &["max_turns", "max_iterations"],
        "budget",
        "write `max_steps` into `budget` instead",
    ),
    (&["timeout"], "budget", "write `max_seconds` into `budget` instead"),
    (
        &["assistant_id", "agent_id"],
        "agent",
        "write the agent's name as `agent` instead",
    ),
    (&["user"], "metadata", "write it into `metadata` instead"),
    (
        &["idempotency_key"],
        "base_session_id",
        "send the header `Idempotency-Key` instead",
    ),
    (
        &["mcp", "approvals"],
        "base_session_id",
        "the agent has them: PUT /v1/agents/{name} stores an agent",
    ),
    (
        &["type", "function"],
        "response_schema",
        "a client tool has its `name`, `description` and `parameters` in one object, without `type`",
    ),
    (&["input_schema"], "response_schema", "write `parameters` instead"),
    (
        &["approve", "approved"],
        "decision",
        "write `\"decision\": \"approve\"` or `\"decision\": \"deny\"` instead",
    ),
];

/// The fields of an object in a request, by the object's own field.
const PARTS: &[(&str, &[&str])] = &[
    (
        "parameters",
        &[
            "temperature",
            "top_p",
            "max_output_tokens",
            "reasoning_effort",
            "stop",
            "seed",
            "tool_choice",
            "single_tool_call",
        ],
    ),
    ("budget", &["max_steps", "max_seconds", "max_cost", "deadline"]),
];

/// Lists of names, with advice for a value of another type in them.
const NAMES: &[(&str, &str)] = &[
    (
        "tools",
        "write the name of a tool of the service. A tool that your application executes belongs to `client_tools`",
    ),
    (
        "mcp",
        "write the name of an MCP server that the operator has configured",
    ),
];

/// Turns a decoder's error into a problem. `pointer` is the JSON pointer to the decoded value.
pub(super) fn decode_problem(pointer: &str, error: &Error<serde_json::Error>) -> Problem {
    let message = plain_message(error.inner());
    let mut pointer = format!("{pointer}{}", json_pointer(error.path()));
    let named = backticked(&message);
    let (code, advice) = if message.starts_with("unknown field") {
        append(&mut pointer, named.first());
        let advice = habit(&named).unwrap_or_else(|| suggestion(&message));
        (ProblemCode::UnknownField, advice)
    } else if message.starts_with("missing field") {
        append(&mut pointer, named.first());
        (ProblemCode::MissingField, String::new())
    } else if message.starts_with("unknown variant") {
        let advice = habit(&named).unwrap_or_else(|| suggestion(&message));
        (ProblemCode::InvalidField, advice)
    } else if message.starts_with("invalid type") {
        (ProblemCode::InvalidField, name_advice(&pointer))
    } else {
        (ProblemCode::InvalidField, String::new())
    };
    Problem::of_field(code, pointer, format!("{message}{advice}"))
}

/// Returns the pointer and the message of an error about the JSON type of a value; `None` for other
/// errors.
pub(super) fn type_fault(pointer: &str, error: &Error<serde_json::Error>) -> Option<(String, String)> {
    let message = plain_message(error.inner());
    let pointer = || format!("{pointer}{}", json_pointer(error.path()));
    message.starts_with("invalid type").then(|| (pointer(), message))
}

/// Returns advice for a list of names, or for an element of one.
fn name_advice(pointer: &str) -> String {
    let mut tokens = pointer.rsplit('/');
    let last = tokens.next().unwrap_or_default();
    let is_element = last.parse::<usize>().is_ok();
    let field = if is_element { tokens.next() } else { Some(last) };
    match NAMES.iter().find(|(name, _)| field == Some(*name)) {
        Some((_, advice)) if is_element => format!("; {advice}"),
        Some((name, _)) => format!("; write a list of names, such as `\"{name}\": [\"NAME\"]`"),
        None => String::new(),
    }
}

/// Returns the error in JSON terms. Omits line and column, since the problem has a pointer.
fn plain_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    plain_words(&message[..end]).chars().take(MAX_MESSAGE).collect()
}

fn json_pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Seq { index } => format!("{pointer}/{index}"),
        Segment::Map { key } => format!("{pointer}/{}", escape_token(key)),
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
}

/// Adds the name of a field, unless the pointer ends with it already.
fn append(pointer: &mut String, field: Option<&&str>) {
    let Some(token) = field.map(|field| escape_token(field)) else {
        return;
    };
    if pointer.rsplit('/').next() != Some(&token) {
        pointer.push('/');
        pointer.push_str(&token);
    }
}

fn suggestion(message: &str) -> String {
    meant(message)
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}

/// Returns advice for a name of another API: the name here, or the position. A name such as
/// `maxTokens` counts as `max_tokens`.
fn habit(named: &[&str]) -> Option<String> {
    let (given, known) = named.split_first()?;
    let given = snake_case(given);
    let given = given.as_str();
    let mut habits = HABITS.iter();
    if let Some((.., advice)) = habits.find(|(names, field, _)| names.contains(&given) && known.contains(field)) {
        return Some(format!("; {advice}"));
    }
    let mut renamed = RENAMED.iter();
    if let Some((_, instead)) = renamed.find(|(habit, instead)| *habit == given && known.contains(instead)) {
        return Some(format!("; write `{instead}` instead"));
    }
    let mut parts = PARTS.iter();
    let (object, _) = parts.find(|(object, fields)| fields.contains(&given) && known.contains(object))?;
    Some(format!("; write it into `{object}`"))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn backticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

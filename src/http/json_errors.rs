//! Explains why a JSON value does not fit: the field, the error, and what the caller may have
//! meant.

use serde_path_to_error::{Error, Path, Segment};

use super::codes::ProblemCode;
use super::problem::Problem;
use crate::json::{escape_token, plain_words};
use crate::spelling::meant;

/// The most characters of a decoder's message. It may quote values of the caller.
const MAX_MESSAGE: usize = 400;
/// Fields of other APIs, the fields to use instead, and how to write them.
const HABITS: &[(&str, &str, &str)] = &[
    ("stream", "mode", "write `\"mode\": \"stream\"` instead"),
    ("async", "mode", "write `\"mode\": \"async\"` instead"),
    ("background", "mode", "write `\"mode\": \"async\"` instead"),
    (
        "messages",
        "input",
        "write `input` instead: it takes a text or a list of messages",
    ),
    (
        "messages",
        "message_history_state",
        "write `\"message_history_state\": {\"messages\": [...]}` instead",
    ),
    ("message", "input", "write `input` instead"),
    ("prompt", "input", "write `input` instead"),
    ("instructions", "system_prompt", "write `system_prompt` instead"),
    (
        "json_schema",
        "schema",
        "write its `name`, `schema` and `strict` beside `type` instead",
    ),
    (
        "max_tokens",
        "parameters",
        "write `max_output_tokens` into `parameters`, or `max_tokens` of the whole run into `budget`",
    ),
    ("max_tokens", "max_output_tokens", "write `max_output_tokens` instead"),
    (
        "max_completion_tokens",
        "parameters",
        "write `max_output_tokens` into `parameters` instead",
    ),
    (
        "max_completion_tokens",
        "max_output_tokens",
        "write `max_output_tokens` instead",
    ),
    ("max_turns", "budget", "write `max_steps` into `budget` instead"),
    ("max_iterations", "budget", "write `max_steps` into `budget` instead"),
    ("system", "system_prompt", "write `system_prompt` instead"),
    ("assistant_id", "agent", "write the agent's name as `agent` instead"),
    ("agent_id", "agent", "write the agent's name as `agent` instead"),
    ("thread_id", "thread", "write `thread` instead"),
    ("session_id", "base_session_id", "write `base_session_id` instead"),
    ("tool_outputs", "answers", "write `answers` instead"),
    ("functions", "client_tools", "write `client_tools` instead"),
    ("user", "metadata", "write it into `metadata` instead"),
    (
        "previous_response_id",
        "base_session_id",
        "write `base_session_id` instead",
    ),
    ("conversation", "thread", "write `thread` instead"),
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
        ],
    ),
    ("budget", &["max_steps"]),
];

/// What to write instead of a tool with its schema, which other APIs take in a request.
const TOOL_ADVICE: &str = "; write the name of a tool of the service. A tool that your application executes belongs to \
                           the `client_tools` of the agent";

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
        (ProblemCode::InvalidField, suggestion(&message))
    } else if message.starts_with("invalid type: object") && is_tool(&pointer) {
        (ProblemCode::InvalidField, TOOL_ADVICE.to_owned())
    } else {
        (ProblemCode::InvalidField, String::new())
    };
    Problem::of_field(code, pointer, format!("{message}{advice}"))
}

/// Returns whether a pointer points to an element of `tools`.
fn is_tool(pointer: &str) -> bool {
    let mut tokens = pointer.rsplit('/');
    let index = tokens.next().unwrap_or_default();
    tokens.next() == Some("tools") && index.parse::<usize>().is_ok()
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

/// Returns what to write instead of a field of another API, or where to write it.
fn habit(named: &[&str]) -> Option<String> {
    let (given, known) = named.split_first()?;
    let mut habits = HABITS.iter();
    if let Some((.., advice)) = habits.find(|(habit, instead, _)| habit == given && known.contains(instead)) {
        return Some(format!("; {advice}"));
    }
    let mut parts = PARTS.iter();
    let (object, _) = parts.find(|(object, fields)| fields.contains(given) && known.contains(object))?;
    Some(format!("; write it into `{object}`"))
}

fn backticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

//! Errors on the paths of OpenAI's API, in the form that its clients read.
//!
//! Every error below these paths has this form: also problems of authentication and of methods, and
//! of routes that the service does not have. The clients repeat each request with the status 408,
//! 409, 429 or above 499, so no problem has the status 409 here, and a header says whether to
//! repeat.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::ProblemCode as Code;
use super::problem::{FieldProblem, Problem};

/// The first names after `/v1/` in the paths of OpenAI's API. `threads` is not one of them, since
/// the service has threads of its own.
const PATHS: [&str; 19] = [
    "assistants",
    "audio",
    "batches",
    "chat",
    "completions",
    "containers",
    "conversations",
    "embeddings",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "models",
    "moderations",
    "realtime",
    "responses",
    "uploads",
    "vector_stores",
    "videos",
];
/// The beginning of the paths of Chat Completions.
const CHAT: &str = "/v1/chat/";
/// Whether to repeat the request: `true` or `false`.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The time until the response began, in milliseconds.
const PROCESSING: HeaderName = HeaderName::from_static("openai-processing-ms");

/// Fields of a run, as JSON pointers, and the fields that set them in a request for a response and
/// in one of Chat Completions. A field whose pointer begins with one of them is named alike.
const FIELDS: &[(&str, [&str; 2])] = &[
    ("/agent", ["/model", "/model"]),
    ("/base_session_id", ["/previous_response_id", ""]),
    ("/thread", ["/conversation", "/metadata/thread"]),
    ("/client_tools", ["/tools", "/tools"]),
    (
        "/parameters/max_output_tokens",
        ["/max_output_tokens", "/max_completion_tokens"],
    ),
    (
        "/parameters/reasoning_effort",
        ["/reasoning/effort", "/reasoning_effort"],
    ),
    ("/parameters", ["", ""]),
    (
        "/response_format/name",
        ["/text/format/name", "/response_format/json_schema/name"],
    ),
    (
        "/response_format/schema",
        ["/text/format/schema", "/response_format/json_schema/schema"],
    ),
    ("/response_format", ["/text/format", "/response_format"]),
    ("/answers", ["/input", "/messages"]),
    ("/input", ["/input", "/messages"]),
    ("/publish", ["/store", "/store"]),
];

/// An error in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub(super) struct ErrorBody {
    /// The error.
    pub(super) error: ErrorFields,
}

/// The fields of an error. All are always present.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiErrorFields)]
pub(super) struct ErrorFields {
    /// The error of this request, in words.
    pub(super) message: String,
    /// The class of the error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub(super) kind: &'static str,
    /// The field at fault, such as `input[0].content`.
    pub(super) param: Option<String>,
    /// The code.
    pub(super) code: String,
    /// The response that the error ended, if the request has started one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_id: Option<String>,
}

/// Returns whether a path belongs to OpenAI's API, also if no route has it.
pub(super) fn is_openai_path(path: &str) -> bool {
    let first = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| PATHS.contains(&first))
}

/// Returns the status that a problem has on these routes.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::UnknownModel => StatusCode::NOT_FOUND,
        code => match code.status() {
            StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            status => status,
        },
    }
}

/// Returns the class of errors with a status.
pub(super) fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

/// Returns the code that a problem has on these routes.
fn name_of(problem: &Problem) -> &'static str {
    // Only a body that is no object has no pointer.
    let is_whole_body = || problem.first_error().is_some_and(|error| error.pointer.is_empty());
    match problem.code() {
        Code::MissingApiKey | Code::InvalidApiKey | Code::InvalidToken => "invalid_api_key",
        Code::AgentNotFound | Code::UnknownModel => "model_not_found",
        Code::ThreadBusy => "conversation_locked",
        Code::MissingField => "missing_required_parameter",
        Code::UnknownField => Code::UnknownParameter.as_str(),
        Code::InvalidField if is_whole_body() => Code::InvalidType.as_str(),
        code => code.as_str(),
    }
}

/// Writes a problem into the response that it has made to a request for `path`. `has_started` is
/// whether the request has started a run.
pub(super) fn write_error(response: &mut Response, problem: &Problem, path: &str, has_started: bool) {
    let code = problem.code();
    let error = problem.first_error();
    let is_chat = path.starts_with(CHAT);
    let param = error.map(|error| param_of(&error.pointer, is_chat));
    let param = param.or_else(|| default_param(code, is_chat).map(str::to_owned));
    let message = error.map_or(problem.detail(), |FieldProblem { message, .. }| message);
    let body = ErrorBody {
        error: ErrorFields {
            message: message.to_owned(),
            kind: kind_of(status_of(code)),
            param: param.filter(|param| !param.is_empty()),
            code: name_of(problem).to_owned(),
            response_id: None,
        },
    };
    // Serialising strings can't fail. If it did, the response would have an empty body and the
    // right status.
    *response.body_mut() = Body::from(serde_json::to_vec(&body).unwrap_or_default());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.remove(header::CONTENT_LENGTH);
    if let Some(should_retry) = should_retry(code, has_started) {
        mark_retry(headers, should_retry);
    }
}

/// Responds with an error that is no problem of the request, such as the failure of its run.
pub(super) fn error_response(status: StatusCode, body: &ErrorBody) -> Response {
    let mut response = (status, axum::Json(body)).into_response();
    mark_retry(response.headers_mut(), false);
    response
}

/// Adds the time that a request took.
pub(super) fn mark_duration(headers: &mut HeaderMap, duration: Duration) {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    headers.insert(PROCESSING, HeaderValue::from(millis));
}

fn mark_retry(headers: &mut HeaderMap, should_retry: bool) {
    let word = if should_retry { "true" } else { "false" };
    headers.insert(SHOULD_RETRY, HeaderValue::from_static(word));
}

/// Returns whether a client should repeat the request; `None` if its own rule is right. An
/// unavailable store may have accepted the run, so nothing encourages a client to repeat then.
fn should_retry(code: Code, has_started: bool) -> Option<bool> {
    let status = code.status();
    if has_started || status == StatusCode::CONFLICT {
        return Some(false);
    }
    let is_temporary = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
    (is_temporary && code != Code::StoreUnavailable).then_some(true)
}

/// Returns the field that a problem is always about.
fn default_param(code: Code, is_chat: bool) -> Option<&'static str> {
    match code {
        Code::AgentNotFound | Code::UnknownModel | Code::ModelNotConfigured => Some("model"),
        Code::PreviousResponseNotFound => Some("previous_response_id"),
        Code::ThreadBusy | Code::ThreadNotFound => (!is_chat).then_some("conversation"),
        Code::InvalidAnswers | Code::AnswersRequired | Code::TooManyMessages | Code::InvalidHistory => {
            Some(if is_chat { "messages" } else { "input" })
        }
        _ => None,
    }
}

/// Writes a JSON pointer as these clients do, such as `input[0].content`.
fn param_of(pointer: &str, is_chat: bool) -> String {
    let in_tool = is_chat.then(|| chat_tool(pointer)).flatten();
    let known = in_tool.or_else(|| {
        FIELDS.iter().find_map(|(own, [of_responses, of_chat])| {
            let theirs = if is_chat { of_chat } else { of_responses };
            let rest = pointer.strip_prefix(own)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{theirs}{rest}"))
        })
    });
    let pointer = known.as_deref().unwrap_or(pointer);
    let mut param = String::new();
    for token in pointer.split('/').filter(|token| !token.is_empty()) {
        let token = token.replace("~1", "/").replace("~0", "~");
        // Writing to a string can't fail.
        let _ = if token.bytes().all(|digit| digit.is_ascii_digit()) {
            write!(param, "[{token}]")
        } else if param.is_empty() {
            write!(param, "{token}")
        } else {
            write!(param, ".{token}")
        };
    }
    param
}

/// Returns the pointer to a field of a client tool in Chat Completions, which has the fields one
/// level below.
fn chat_tool(pointer: &str) -> Option<String> {
    let (index, field) = pointer.strip_prefix("/client_tools/")?.split_once('/')?;
    Some(format!("/tools/{index}/function/{field}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi;

    #[test]
    fn the_form_is_that_of_these_paths_alone() {
        for path in [
            "/v1/responses",
            "/v1/responses/x/cancel",
            "/v1/models/a/b",
            "/v1/embeddings",
            "/v1/images/generations",
        ] {
            assert!(is_openai_path(path), "{path}");
        }
        for path in ["/v1/response", "/v1/responsesx", "/v1", "/v1/", "/", "/responses"] {
            assert!(!is_openai_path(path), "{path}");
        }
        let description = serde_json::to_value(openapi()).unwrap();
        for (path, item) in description["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values() {
                let mut tags = operation["tags"].as_array().into_iter().flatten();
                assert_eq!(is_openai_path(path), tags.any(|tag| tag == "openai"), "{path}");
            }
        }
    }

    #[test]
    fn a_field_of_a_run_has_the_name_that_the_client_knows() {
        for (pointer, of_responses, of_chat) in [
            ("/input/0/content", "input[0].content", "messages[0].content"),
            ("/client_tools", "tools", "tools"),
            ("/client_tools/12/name", "tools[12].name", "tools[12].function.name"),
            ("/parameters/temperature", "temperature", "temperature"),
            ("/parameters/reasoning_effort", "reasoning.effort", "reasoning_effort"),
            (
                "/response_format/schema",
                "text.format.schema",
                "response_format.json_schema.schema",
            ),
            ("/agent", "model", "model"),
            ("/agents", "agents", "agents"),
            ("/metadata/a~1b", "metadata.a/b", "metadata.a/b"),
            ("limit", "limit", "limit"),
            ("", "", ""),
        ] {
            let params = [false, true].map(|is_chat| param_of(pointer, is_chat));
            assert_eq!(params, [of_responses, of_chat], "{pointer}");
        }
    }

    #[test]
    fn no_client_repeats_what_has_started_or_conflicts() {
        for code in Code::ALL {
            let status = status_of(*code);
            assert!(![409, 422].contains(&status.as_u16()), "{}", code.as_str());
            assert_eq!(should_retry(*code, true), Some(false));
            let repeats = matches!(status.as_u16(), 408 | 429 | 500..);
            assert!(repeats || should_retry(*code, false) != Some(true), "{}", code.as_str());
        }
        assert_eq!(should_retry(Code::ThreadBusy, false), Some(false));
        assert_eq!(should_retry(Code::QueueFull, false), Some(true));
        assert_eq!(should_retry(Code::StoreUnavailable, false), None);
    }
}

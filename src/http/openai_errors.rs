//! Errors on the routes for OpenAI's clients, in the form that these clients read.
//!
//! Everything below the paths of these routes has this form: also problems of authentication, of
//! methods and of paths. The clients repeat each request with the status 408, 409, 429 or above
//! 499, so no problem has the status 409 here, and a header says whether to repeat.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::ProblemCode as Code;
use super::problem::{FieldProblem, Problem};

/// The beginnings of the paths.
const PATHS: [&str; 4] = [
    "/v1/responses",
    "/v1/conversations",
    "/v1/chat/completions",
    "/v1/models",
];
/// Whether to repeat the request: `true` or `false`.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Fields of a run, as JSON pointers, and the fields of these routes that set them. A field whose
/// pointer begins with one of them is named alike.
const FIELDS: &[(&str, &str)] = &[
    ("/agent", "/model"),
    ("/base_session_id", "/previous_response_id"),
    ("/thread", "/conversation"),
    ("/client_tools", "/tools"),
    ("/parameters/max_output_tokens", "/max_output_tokens"),
    ("/parameters/reasoning_effort", "/reasoning/effort"),
    ("/parameters", ""),
    ("/response_format", "/text/format"),
    ("/answers", "/input"),
    ("/publish", "/store"),
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

/// Returns whether a path is one of these routes, or would be below one.
pub(super) fn is_openai_path(path: &str) -> bool {
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    PATHS.iter().any(|known| path.strip_prefix(known).is_some_and(is_below))
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
fn name_of(code: Code) -> &'static str {
    match code {
        Code::MissingApiKey | Code::InvalidApiKey => "invalid_api_key",
        Code::AgentNotFound | Code::UnknownModel => "model_not_found",
        Code::ThreadBusy => "conversation_locked",
        Code::MissingField => "missing_required_parameter",
        code => code.as_str(),
    }
}

/// Writes a problem into the response that it has made. `has_started` tells whether the request has
/// started a run.
pub(super) fn write_error(response: &mut Response, problem: &Problem, has_started: bool) {
    let code = problem.code();
    let error = problem.first_error();
    let param = error.map(|error| param_of(&error.pointer));
    let param = param.or_else(|| default_param(code).map(str::to_owned));
    let message = error.map_or(problem.detail(), |FieldProblem { message, .. }| message);
    let body = ErrorBody {
        error: ErrorFields {
            message: message.to_owned(),
            kind: kind_of(status_of(code)),
            param: param.filter(|param| !param.is_empty()),
            code: name_of(code).to_owned(),
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
fn default_param(code: Code) -> Option<&'static str> {
    match code {
        Code::AgentNotFound | Code::UnknownModel | Code::ModelNotConfigured => Some("model"),
        Code::PreviousResponseNotFound => Some("previous_response_id"),
        Code::ThreadBusy | Code::ThreadNotFound => Some("conversation"),
        Code::InvalidAnswers | Code::AnswersRequired | Code::TooManyMessages | Code::InvalidHistory => Some("input"),
        _ => None,
    }
}

/// Writes a JSON pointer as these clients do, such as `input[0].content`.
fn param_of(pointer: &str) -> String {
    let known = FIELDS.iter().find_map(|(own, theirs)| {
        let rest = pointer.strip_prefix(own)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{theirs}{rest}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_of_these_paths_alone() {
        for path in [
            "/v1/responses",
            "/v1/responses/x/cancel",
            "/v1/models/a/b",
            "/v1/chat/completions",
        ] {
            assert!(is_openai_path(path), "{path}");
        }
        for path in [
            "/v1/runs",
            "/v1/response",
            "/v1/responsesx",
            "/v1/chat",
            "/",
            "/v1/models2",
        ] {
            assert!(!is_openai_path(path), "{path}");
        }
    }

    #[test]
    fn a_field_of_a_run_has_the_name_that_the_client_knows() {
        for (pointer, param) in [
            ("/input/0/content", "input[0].content"),
            ("/client_tools/12/name", "tools[12].name"),
            ("/parameters/temperature", "temperature"),
            ("/parameters/reasoning_effort", "reasoning.effort"),
            ("/response_format/schema", "text.format.schema"),
            ("/agent", "model"),
            ("/agents", "agents"),
            ("/metadata/a~1b", "metadata.a/b"),
            ("limit", "limit"),
            ("", ""),
        ] {
            assert_eq!(param_of(pointer), param, "{pointer}");
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

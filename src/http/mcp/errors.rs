//! Problems as errors of JSON-RPC. Causes go to the log.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::json;

use crate::http::codes::ProblemCode;
use crate::http::problem::Problem;

/// A request that the service can't serve now. The client may repeat it.
const UNAVAILABLE: ErrorCode = ErrorCode(-32000);

/// Makes the error of a problem.
pub(super) fn error_of(problem: &Problem) -> ErrorData {
    let code = problem.code();
    let cause = problem.cause_chain();
    if let Some(cause) = &cause {
        tracing::error!(code = code.as_str(), cause, "request of an MCP client failed");
    }
    let error = match code.status().as_u16() {
        429 | 503 => UNAVAILABLE,
        500.. => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::INVALID_PARAMS,
    };
    let data = json!({"code": code.as_str()});
    ErrorData::new(error, problem.detail().to_owned(), Some(data))
}

/// Makes the error of a problem with a resource.
pub(super) fn resource_error(problem: &Problem, uri: &str) -> ErrorData {
    match problem.code() {
        ProblemCode::SessionNotFound
        | ProblemCode::SessionNotCommitted
        | ProblemCode::FileNotFound
        | ProblemCode::InvalidPath => not_found(uri),
        _ => error_of(problem),
    }
}

/// Makes the error of a resource that does not exist.
pub(super) fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// Makes the error of parameters that can't be used.
pub(super) fn invalid(words: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(words.into(), None)
}

impl From<Problem> for ErrorData {
    fn from(problem: Problem) -> Self {
        error_of(&problem)
    }
}

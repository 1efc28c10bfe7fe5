//! The errors of requests: a message for the model, and the causes for the log.

use std::error::Error;

use agent::ports::ToolError;
use net::outgoing::OutgoingError;

/// Logs a request without a response, and makes the error that the model reads. Neither has the
/// URL, since it may contain secrets.
pub(crate) fn failed(tool: &str, host: &str, error: &OutgoingError) -> ToolError {
    tracing::warn!(
        tool,
        host,
        error = error as &dyn Error,
        "a tool got no response over HTTP"
    );
    let advice = if error.may_pass() {
        "; the same call may succeed later"
    } else {
        ""
    };
    ToolError::new(format!("no response from {host}: {error}{advice}"))
}

//! The errors of requests to the server.

use redis::RedisError;
use tokio::time::error::Elapsed;

/// The reason why a request has no reply.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the request failed")]
    Request(#[source] RedisError),
    #[error("the server is known to be away")]
    Away,
}

impl From<Elapsed> for LinkError {
    fn from(_: Elapsed) -> Self {
        Self::Timeout
    }
}

impl From<RedisError> for LinkError {
    /// Converts an error of the client. The client has its own timeout.
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Request(error)
        }
    }
}

//! The reasons why the proxy refuses a request of a command.

use hyper::{Response, StatusCode};

use super::body::{ProxyBody, text};
use crate::outgoing::{OutgoingError, UrlFault};

/// A request without a response of its host.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The request is not meant for a proxy, or has no host and port.
    #[error("this is a proxy: a request names a host with its scheme, and CONNECT a host with its port")]
    NotForProxy,
    /// The response would repeat the headers, and the secret among them.
    #[error("the proxy does not send the method TRACE to a host that has a secret")]
    Trace,
    /// The operator does not allow it.
    #[error("the proxy does not connect to it: {0}")]
    NotAllowed(#[from] UrlFault),
    /// The host could not be asked.
    #[error("the proxy can't reach it: {0}")]
    Failed(#[from] OutgoingError),
}

impl Refusal {
    /// Returns the response that the command reads.
    pub(super) fn response(&self) -> Response<ProxyBody> {
        let status = match self {
            Self::NotForProxy | Self::Trace => StatusCode::BAD_REQUEST,
            Self::NotAllowed(_) | Self::Failed(OutgoingError::NotPublic) => StatusCode::FORBIDDEN,
            Self::Failed(OutgoingError::Timeout) => StatusCode::GATEWAY_TIMEOUT,
            Self::Failed(_) => StatusCode::BAD_GATEWAY,
        };
        let mut response = Response::new(text(format!("{self}\n")));
        *response.status_mut() = status;
        response
    }
}

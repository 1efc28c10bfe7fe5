//! The errors of requests to a server, in words for models and for the log.

use std::error::Error;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};

use super::http::TokenError;
use net::outgoing::OutgoingError;

/// The most bytes of an error of a server that the model reads.
const MAX_WORDS: usize = 2_000;

/// Why a request has no result. The words are for models and for the log, and contain no URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    /// The server did not respond in time.
    #[error("it did not respond within {0:?}")]
    Timeout(Duration),
    /// The server responded with an error of the protocol.
    #[error("it refused the request: {message} (code {code})")]
    Refused {
        /// The code of JSON-RPC.
        code: i32,
        /// The words of the server.
        message: String,
    },
    /// The server wants other credentials.
    #[error("it does not accept the configured credentials")]
    Unauthorized,
    /// The server responded with an error of HTTP.
    #[error("it responded with HTTP {0}")]
    Status(u16),
    /// The server has accepted the request, and sent no response to it.
    #[error("it responded with HTTP {0}, without a result")]
    NoResult(u16),
    /// The server can't be reached, or the guard refuses its address.
    #[error("{0}")]
    Unreachable(String),
    /// The connection ended, or a response was too large or no MCP.
    #[error("the connection to it broke, or it sent what is no valid response within the limits")]
    Broken,
    /// The response is a valid one, but to another request.
    #[error("its response does not fit the request")]
    Unexpected,
    /// The process of the server has ended, or had to be ended.
    #[error("its process {0}")]
    Process(String),
}

impl RequestError {
    pub(super) fn refused(error: &ErrorData) -> Self {
        let message = &error.message;
        let end = message.floor_char_boundary(MAX_WORDS);
        Self::Refused {
            code: error.code.0,
            message: message[..end].to_owned(),
        }
    }

    /// Returns the error of a request on an open connection.
    pub(super) fn of_service(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::refused(error),
            ServiceError::UnexpectedResponse => Self::Unexpected,
            ServiceError::Timeout { timeout } => Self::Timeout(*timeout),
            error => Self::of_causes(error),
        }
    }

    /// Returns the error of a connection that was not opened.
    pub(super) fn of_opening(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(error) => Self::refused(error),
            ClientInitializeError::TransportError { error, .. } => Self::of_causes(error),
            ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. }
            | ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::Unexpected,
            error => Self::of_causes(error),
        }
    }

    fn of_causes(error: &(dyn Error + 'static)) -> Self {
        let mut causes = std::iter::successors(Some(error), |cause| (*cause).source());
        causes.find_map(Self::of_cause).unwrap_or(Self::Broken)
    }

    fn of_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = cause.downcast_ref::<StreamableHttpError<OutgoingError>>() {
            return match error {
                StreamableHttpError::Client(error) => Some(Self::of_outgoing(error)),
                StreamableHttpError::HttpStatus(error) if error.status < 300 => Some(Self::NoResult(error.status)),
                StreamableHttpError::HttpStatus(error) => Some(Self::Status(error.status)),
                StreamableHttpError::SessionExpired => Some(Self::Status(404)),
                StreamableHttpError::ReinitializationFailed(error) => Some(Self::refused(error)),
                StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                    Some(Self::Unauthorized)
                }
                _ => None,
            };
        }
        if let Some(error) = cause.downcast_ref::<HttpStatusError>() {
            return Some(Self::Status(error.status));
        }
        cause.downcast_ref::<OutgoingError>().map(Self::of_outgoing)
    }

    fn of_outgoing(error: &OutgoingError) -> Self {
        match error {
            OutgoingError::Broken(cause) => match cause.downcast_ref::<TokenError>() {
                Some(error) => Self::Unreachable(error.to_string()),
                None => Self::Broken,
            },
            error => Self::Unreachable(error.to_string()),
        }
    }

    /// Returns whether the server may speak another revision of the protocol.
    pub(super) fn may_be_other_era(&self) -> bool {
        match self {
            Self::Unauthorized | Self::Unreachable(_) => false,
            Self::Refused { code, .. } => !MODERN_CODES.contains(code),
            Self::Timeout(_)
            | Self::Status(_)
            | Self::NoResult(_)
            | Self::Broken
            | Self::Process(_)
            | Self::Unexpected => true,
        }
    }

    /// Returns whether an error on an open connection may come from a server that has changed its
    /// revisions meanwhile, so that a new connection may succeed.
    pub(super) fn may_be_new_revision(&self) -> bool {
        match self {
            Self::Refused { code, .. } => *code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0,
            Self::Status(status) => (400..500).contains(status),
            Self::Broken => true,
            Self::Timeout(_)
            | Self::NoResult(_)
            | Self::Unauthorized
            | Self::Unreachable(_)
            | Self::Unexpected
            | Self::Process(_) => false,
        }
    }
}

/// The codes of errors that only a server of the revision 2026-07-28 has: a header that does not
/// fit, and a capability that the client lacks.
const MODERN_CODES: [i32; 2] = [-32020, -32021];

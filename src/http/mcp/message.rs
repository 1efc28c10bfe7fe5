//! Reads the form of a message before rmcp does: JSON within the limits of `/v1`, one message, and
//! a method whose scope the caller has.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::codes::ProblemCode;
use crate::http::json_body::scan_body;
use crate::http::limits::HttpLimits;
use store::keys::Scope;

/// The method that begins a session of an earlier revision.
const HANDSHAKE: &str = "initialize";

/// A message whose form is right.
#[derive(Debug)]
pub(super) struct Message {
    /// The bytes that rmcp reads.
    pub(super) bytes: Vec<u8>,
    /// The method; empty for a response of the client.
    pub(super) method: String,
    /// The id of a request, or else null.
    pub(super) id: Value,
}

/// A message that can't be served, as JSON-RPC says it.
#[derive(Debug)]
pub(super) struct MessageFault {
    status: StatusCode,
    code: ErrorCode,
    words: String,
    id: Value,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    method: Option<Value>,
    #[serde(default)]
    id: Value,
}

impl Message {
    /// Checks the bytes of a body. Revisions without sessions have no handshake.
    pub(super) fn read(mut bytes: Vec<u8>, limits: &HttpLimits, is_stateless: bool) -> Result<Self, MessageFault> {
        let invalid = |words: &str, id| MessageFault::refusal(StatusCode::BAD_REQUEST, words.to_owned(), id);
        let text = scan_body(&bytes, limits).map_err(|problem| {
            let code = match problem.code() {
                ProblemCode::EmptyBody | ProblemCode::InvalidUtf8 | ProblemCode::MalformedJson => {
                    ErrorCode::PARSE_ERROR
                }
                _ => ErrorCode::INVALID_REQUEST,
            };
            let fault = invalid(problem.detail(), Value::Null);
            MessageFault { code, ..fault }
        })?;
        if text.trim_start().starts_with('[') {
            return Err(invalid("a body has one message, not a batch", Value::Null));
        }
        let head: Head = serde_json::from_str(text).map_err(|_| invalid("not a message of JSON-RPC", Value::Null))?;
        let id = Some(head.id).filter(|id| id.is_string() || id.is_i64());
        let id = id.unwrap_or(Value::Null);
        if serde_json::from_str::<ClientJsonRpcMessage>(text).is_err() {
            return Err(invalid("not a message of JSON-RPC 2.0 that a client may send", id));
        }
        let method = head.method.as_ref().and_then(Value::as_str);
        let method = method.unwrap_or_default().to_owned();
        if is_stateless && method == HANDSHAKE {
            let fault = MessageFault::refusal(StatusCode::NOT_FOUND, method, id);
            let code = ErrorCode::METHOD_NOT_FOUND;
            return Err(MessageFault { code, ..fault });
        }
        // The library reads no byte order mark.
        let mark = bytes.len() - text.len();
        bytes.drain(..mark);
        Ok(Self { bytes, method, id })
    }

    /// Returns the scope that the method needs; `None` if any key will do.
    pub(super) fn scope(&self) -> Option<Scope> {
        match self.method.as_str() {
            "tools/list" | "tools/call" | "tasks/update" | "tasks/cancel" => Some(Scope::RunsWrite),
            "tasks/get" | "resources/list" | "resources/templates/list" | "resources/read" => Some(Scope::SessionsRead),
            _ => None,
        }
    }

    /// Returns whether the message is itself a response.
    pub(super) fn is_response(&self) -> bool {
        self.method.is_empty()
    }

    /// Returns whether the message takes as long as a run.
    pub(super) fn runs(&self) -> bool {
        self.method == "tools/call"
    }
}

impl MessageFault {
    /// Refuses a message.
    pub(super) fn refusal(status: StatusCode, words: String, id: Value) -> Self {
        Self {
            status,
            code: ErrorCode::INVALID_REQUEST,
            words,
            id,
        }
    }

    /// Makes the response.
    pub(super) fn into_response(self) -> Response {
        let body = json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": self.code.0, "message": self.words},
        });
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (self.status, json, body.to_string()).into_response()
    }
}

//! Finds the request that a response belongs to, also if the server has lost its id.

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use serde::Deserialize as _;
use serde_json::json;

use crate::json::Value;

/// A request without a response.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Awaited {
    pub(in crate::mcp) id: RequestId,
    /// Decides the parts of the result.
    pub(in crate::mcp) method: String,
}

/// The requests that a message may respond to.
#[derive(Debug, Clone)]
pub(in crate::mcp) enum Awaiting {
    /// The request of a POST. The response belongs to it also if it has another id.
    One(Awaited),
    /// Those of a connection. A response without an id belongs to the only one.
    Open(Vec<Awaited>),
}

/// The requests of a connection without a response.
#[derive(Debug, Default)]
pub(in crate::mcp) struct OpenRequests(Mutex<Vec<Awaited>>);

impl Awaited {
    /// Returns the request that a message makes.
    pub(in crate::mcp) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        Some(Self {
            id: request.id.clone(),
            method: request.request.method().to_owned(),
        })
    }

    /// Returns whether an id is that of the request. Some servers make a text of a number.
    fn has_id(&self, id: &Value) -> bool {
        RequestId::deserialize(id).is_ok_and(|id| id.to_string() == self.id.to_string())
    }
}

impl Awaiting {
    /// Finds the request of a response, and gives the response the id of the request. Returns also
    /// whether it had that id.
    pub(super) fn claim(&self, message: &mut Value) -> Option<(&Awaited, bool)> {
        let fields = message.as_object_mut()?;
        let is_response = fields.contains_key("result") || fields.contains_key("error");
        if !is_response || fields.contains_key("method") {
            return None;
        }
        let id = fields.get("id").cloned().unwrap_or_default();
        let (request, had_id) = match self {
            Self::One(request) => (request, request.has_id(&id)),
            Self::Open(requests) => match requests.as_slice() {
                [request] if id.is_null() => (request, false),
                requests => (requests.iter().find(|request| request.has_id(&id))?, true),
            },
        };
        fields.insert("id".to_owned(), json!(request.id));
        Some((request, had_id))
    }
}

impl OpenRequests {
    /// Notes what a message that is sent begins or cancels.
    pub(in crate::mcp) fn note_sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(_) => self.0.lock().extend(Awaited::of(message)),
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Notes that a request has its response.
    pub(in crate::mcp) fn end(&self, id: &RequestId) {
        self.0.lock().retain(|request| request.id != *id);
    }

    /// Returns the requests that a message may respond to.
    pub(in crate::mcp) fn awaiting(&self) -> Awaiting {
        Awaiting::Open(self.0.lock().clone())
    }
}

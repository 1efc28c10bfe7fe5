//! Finds the request that a response belongs to, also if the server has lost its id.

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use serde::Deserialize as _;
use serde_json::json;

use values::json::Value;

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
    /// Those of a connection. A response with an id that no request has had belongs to the only
    /// one.
    Open(SentRequests),
}

/// The requests of a connection without a response.
#[derive(Debug, Default)]
pub(in crate::mcp) struct OpenRequests(Mutex<SentRequests>);

/// The requests that were sent on a connection.
#[derive(Debug, Clone, Default)]
pub(in crate::mcp) struct SentRequests {
    open: Vec<Awaited>,
    /// The id of the last request. Ids are numbers that grow.
    last_id: u32,
}

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
            Self::Open(sent) => match sent.open.as_slice() {
                [request] if sent.is_unknown(&id) => (request, false),
                requests => (requests.iter().find(|request| request.has_id(&id))?, true),
            },
        };
        fields.insert("id".to_owned(), json!(request.id));
        Some((request, had_id))
    }
}

impl SentRequests {
    /// Returns whether no request has had an id. A request that was cancelled has had one.
    fn is_unknown(&self, id: &Value) -> bool {
        let number = id.as_f64().or_else(|| id.as_str()?.parse().ok());
        number.is_none_or(|number| number < 0.0 || number > f64::from(self.last_id))
    }
}

impl OpenRequests {
    /// Notes what a message that is sent begins or cancels.
    pub(in crate::mcp) fn note_sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut sent = self.0.lock();
                if let RequestId::Number(id) = request.id {
                    sent.last_id = sent.last_id.max(u32::try_from(id).unwrap_or_default());
                }
                sent.open.extend(Awaited::of(message));
            }
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
        self.0.lock().open.retain(|request| request.id != *id);
    }

    /// Returns the requests that a message may respond to.
    pub(in crate::mcp) fn awaiting(&self) -> Awaiting {
        Awaiting::Open(self.0.lock().clone())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientRequest, ListToolsRequest};

    use super::*;

    #[test]
    fn an_id_that_no_request_has_had_is_that_of_the_only_request() {
        let requests = OpenRequests::default();
        for id in 0..3 {
            let list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
            requests.note_sent(&ClientJsonRpcMessage::request(list, RequestId::Number(id)));
        }
        let claimed = |id: &Value| {
            let (mut error, awaiting) = (json!({"id": id, "error": {}}), requests.awaiting());
            awaiting.claim(&mut error).map(|(request, _)| request.id.to_string())
        };
        assert_eq!(claimed(&Value::Null), None);
        for ended in [0, 1] {
            requests.end(&RequestId::Number(ended));
        }
        for id in [
            json!(2),
            json!("2"),
            json!(null),
            json!(""),
            json!(-1),
            json!(3),
            json!("lost"),
        ] {
            assert_eq!(claimed(&id).as_deref(), Some("2"), "{id}");
        }
        // A late response to a request that was cancelled is that of no other.
        for id in [json!(0), json!(1), json!("1"), json!(1.0)] {
            assert_eq!(claimed(&id), None, "{id}");
        }
    }
}

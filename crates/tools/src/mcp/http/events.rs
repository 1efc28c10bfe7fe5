//! Reads the events of a stream before the library parses them on an async worker.

use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_client::SseError;
use serde::Deserialize as _;
use serde_json::json;
use sse_stream::Sse;

use crate::mcp::incoming::{Incoming, Sent, message};
use crate::mcp::requests::{Awaited, Requests};
use values::json::Value;

/// The library parses every message of up to this many bytes on an async worker: in the worst case,
/// in 10 ms.
const SMALL: usize = 64 << 10;
/// The most bytes of a message that the library has to parse: of all but responses to requests,
/// and of lists of tools. In the worst case, that takes 160 ms. 16 MiB would take 2.8 s.
const MAX_PARSED: usize = 1 << 20;
/// The text that replaces data which is no message. The library ignores this text, or fails during
/// the handshake.
const NO_MESSAGE: &str = "no message";

/// A message that the library has to parse is larger than allowed.
#[derive(Debug, thiserror::Error)]
#[error("a message that is no result of a call has more than {MAX_PARSED} bytes")]
struct TooLarge;

/// Reads an event, which may have a batch of messages. Returns an event for each, without secrets
/// and with little to parse: a large result is set aside, and a small one stands for it.
pub(super) async fn read(incoming: &Incoming, request: Option<Awaited>, event: Sse) -> Result<Vec<Sse>, SseError> {
    let Sse { event, data, id, retry } = event;
    let mut read = Vec::new();
    match data {
        Some(data) if !data.trim().is_empty() => {
            for message in incoming.messages(data.into()).await {
                read.push(Some(parsed(incoming, request.clone(), message).await?));
            }
        }
        // An event that only has an id.
        data => read.push(data),
    }
    let id = id.map(|id| incoming.redacted(&id));
    let with_data = |data| Sse {
        event: event.clone(),
        data,
        id: id.clone(),
        retry,
    };
    Ok(read.into_iter().map(with_data).collect())
}

async fn parsed(incoming: &Incoming, request: Option<Awaited>, message: Bytes) -> Result<String, SseError> {
    let (bytes, requests) = (message.len(), Arc::clone(&incoming.requests));
    let read = incoming.read(message, request, move |sent| to_parse(sent, bytes, &requests));
    match read.await {
        Ok(text) => text.map_err(|error| SseError::Body(Box::new(error))),
        Err(_) => Ok(NO_MESSAGE.to_owned()),
    }
}

/// Returns the text that the library parses. Sets a large result aside.
fn to_parse(Sent { value, is_unread }: Sent, bytes: usize, requests: &Requests) -> Result<String, TooLarge> {
    if is_unread {
        // The next request begins a new session.
        requests.outdated.cancel();
    }
    if bytes <= SMALL {
        return Ok(value.to_string());
    }
    if let Some(id) = answered(&value).filter(|id| requests.is_observed(id)) {
        let Ok(message) = message(value) else {
            return Ok(NO_MESSAGE.to_owned());
        };
        requests.set_aside(&id, message);
        return Ok(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
    }
    if bytes > MAX_PARSED {
        return Err(TooLarge);
    }
    Ok(value.to_string())
}

/// Returns the request that a message responds to. The library has to read lists of tools, since
/// they say which arguments are headers.
fn answered(message: &Value) -> Option<RequestId> {
    let is_response = message.get("result").is_some() || message.get("error").is_some();
    if !is_response || message.pointer("/result/tools").is_some() {
        return None;
    }
    RequestId::deserialize(message.get("id")?).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetExtensions as _,
        ListToolsRequest,
    };

    use super::*;
    use crate::Redactor;
    use crate::mcp::observer::Observer;
    use tasks::off_thread::assert_beside;
    use values::tenant::TenantId;

    /// Reads a message in an event. A large one has to be read beside the workers.
    fn read_event(requests: &Arc<Requests>, message: &Value) -> Result<Value, SseError> {
        let incoming = Incoming::new("s", &Redactor::new([]), &TenantId::anonymous(), requests);
        let event = Sse::default().data(message.to_string());
        let events = assert_beside(read(&incoming, None, event)).unwrap()?;
        Ok(serde_json::from_str(events[0].data.as_ref().unwrap()).unwrap())
    }

    /// Returns requests of which 6 lists tools and 7 calls one. A caller waits for them until the
    /// observer is dropped.
    fn sent() -> (Arc<Requests>, Arc<Observer>) {
        let (requests, observer) = (Arc::<Requests>::default(), Arc::<Observer>::default());
        let list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("t")));
        for (id, mut request) in [(6, list), (7, call)] {
            request.extensions_mut().insert(Arc::clone(&observer));
            requests.note_sent(&mut ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        }
        (requests, observer)
    }

    #[test]
    fn large_responses_are_set_aside_and_come_back() {
        let text = "x".repeat(3 << 20);
        for (kind, value) in [
            ("result", json!({"content": [{"type": "text", "text": text}]})),
            ("result", json!({"content": [], "structuredContent": {"a": [text]}})),
            ("error", json!({"code": -32000, "message": text})),
        ] {
            let (requests, _observer) = sent();
            let mut response = json!({"jsonrpc": "2.0", "id": 7});
            response[kind] = value;
            let passed = read_event(&requests, &response).unwrap();
            assert_eq!(passed, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
            let whole = requests.end(&RequestId::Number(7)).unwrap();
            assert_eq!(serde_json::to_value(whole).unwrap(), response);
            assert!(requests.end(&RequestId::Number(7)).is_none());
        }
        let (requests, observer) = sent();
        drop(observer);
        let response = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": text}]}});
        assert!(read_event(&requests, &response).is_err());
    }

    #[test]
    fn other_large_messages_are_passed_on_up_to_a_limit() {
        let (requests, _observer) = sent();
        let messages = |text: &str| {
            let tool = json!({"name": "t", "title": text, "inputSchema": {"type": "object"}});
            [
                json!({"jsonrpc": "2.0", "id": 6, "result": {"tools": [tool]}}),
                json!({"jsonrpc": "2.0", "id": 8, "result": {"content": [{"type": "text", "text": text}]}}),
                json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"message": text}}),
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": text}}),
            ]
        };
        for message in messages(&"x".repeat(1 << 17)) {
            assert_eq!(read_event(&requests, &message).unwrap(), message);
        }
        for message in messages(&"x".repeat(1 << 20)) {
            assert!(read_event(&requests, &message).is_err());
        }
    }
}

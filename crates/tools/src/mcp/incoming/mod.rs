//! Reads the messages of a server, over HTTP and from a process, before the library reads them.
//!
//! All of it loses its secrets here, so that nothing that follows has to remove them. Parts that
//! the library can't read are mended or left out here, so that it never refuses the whole. A large
//! message is parsed beside the async workers.

mod content;
mod fitted;
mod lenient;
mod mended;

use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::json;

pub(super) use self::mended::left_out;
use super::requests::{Awaited, Requests};
use crate::Redactor;
use tasks::off_thread::by_size;
use values::json::{Value, without_mark};
use values::tenant::TenantId;

/// The most messages of a batch.
const MAX_BATCH: usize = 1_000;

/// Reads the messages of a server to a tenant on a connection.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    server: String,
    redactor: Redactor,
    tenant: TenantId,
    /// The requests of the connection.
    pub(super) requests: Arc<Requests>,
}

/// A message of a server, without secrets.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) value: Value,
    /// Whether it is an error without the id of the request, which the server has not read then.
    pub(super) is_unread: bool,
}

impl Incoming {
    pub(super) fn new(server: &str, redactor: &Redactor, tenant: &TenantId, requests: &Arc<Requests>) -> Self {
        Self {
            server: server.to_owned(),
            redactor: redactor.clone(),
            tenant: tenant.clone(),
            requests: Arc::clone(requests),
        }
    }

    /// Returns the messages of a batch, which servers of the revision 2025-03-26 may send. Other
    /// JSON is one message.
    pub(super) async fn messages(&self, json: Bytes) -> Vec<Bytes> {
        if first_byte(&json) != Some(b'[') {
            return vec![json];
        }
        let bytes = json.len() as u64;
        by_size(&self.tenant, bytes, move || {
            let messages = lenient::parse::<Vec<Value>>(&json).unwrap_or_default();
            let messages = messages.into_iter().filter(Value::is_object).take(MAX_BATCH);
            messages.map(|message| Bytes::from(message.to_string())).collect()
        })
        .await
    }

    /// Reads JSON, and converts it: without secrets, and with parts that the library can read.
    /// `request` is the request of the POST, if the JSON is the response to one.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        json: Bytes,
        request: Option<Awaited>,
        convert: impl FnOnce(Sent) -> T + Send + 'static,
    ) -> Result<T, serde_json::Error> {
        let (incoming, bytes) = (self.clone(), json.len() as u64);
        by_size(&self.tenant, bytes, move || {
            let mut value = lenient::parse(&json)?;
            incoming.redactor.redact(&mut value);
            Ok(convert(incoming.mended(value, request.as_ref())))
        })
        .await
    }

    /// Removes the secrets from a text that is no message.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.redactor.redacted(text.to_owned(), false)
    }

    fn mended(&self, mut value: Value, request: Option<&Awaited>) -> Sent {
        let Some((method, had_id)) = self.requests.claim(&mut value, request) else {
            return Sent {
                value,
                is_unread: false,
            };
        };
        for problem in mended::mend(&mut value, &method) {
            let server = &self.server;
            tracing::warn!(server, problem, "a part of what an MCP server sent is left out");
        }
        Sent {
            is_unread: !had_id && value.get("error").is_some(),
            value,
        }
    }
}

/// Returns the first byte of a text that is no blank.
pub(super) fn first_byte(text: &[u8]) -> Option<u8> {
    without_mark(text).trim_ascii_start().first().copied()
}

/// Converts a value to a message.
pub(super) fn message(mut value: Value) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    // The library copies a value for each type of message that it tries. This is the part that may
    // have any number of small values.
    let structured = value.pointer_mut("/result/structuredContent");
    let structured = structured.filter(|content| content.is_object() || content.is_array());
    let structured = structured.map(|content| std::mem::replace(content, json!({})));
    let mut message = serde_json::from_value(value)?;
    if let JsonRpcMessage::Response(response) = &mut message
        && let ServerResult::CallToolResult(result) = &mut response.result
        && structured.is_some()
    {
        result.structured_content = structured;
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasks::off_thread::assert_beside;

    #[test]
    fn a_large_message_is_parsed_beside_the_workers() {
        let incoming = Incoming::new("s", &Redactor::new([]), &TenantId::anonymous(), &Arc::default());
        let sent = json!({
            "jsonrpc": "2.0", "id": 7,
            "result": {"content": [{"type": "text", "text": "x".repeat(1 << 17)}], "structuredContent": {"a": [1, {}]}},
        });
        let reading = incoming.read(sent.to_string().into(), None, |sent| message(sent.value));
        let read = assert_beside(reading).unwrap().unwrap().unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), sent);
    }
}

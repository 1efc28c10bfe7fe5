//! Reads what a server sends before the library has it, over HTTP and from a process.
//!
//! All of it loses its secrets here, so that nothing that follows has to remove them. A large
//! message is parsed beside the async workers.

use bytes::Bytes;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::json;

use crate::json::Value;
use crate::off_thread::by_size;
use crate::tenant::TenantId;
use crate::tools::Redactor;

/// Reads what a server sends to a tenant.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    redactor: Redactor,
    tenant: TenantId,
}

impl Incoming {
    pub(super) fn new(redactor: &Redactor, tenant: &TenantId) -> Self {
        Self {
            redactor: redactor.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Reads JSON, and converts what it says without secrets.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        json: Bytes,
        convert: impl FnOnce(Value) -> T + Send + 'static,
    ) -> Result<T, serde_json::Error> {
        let (redactor, bytes) = (self.redactor.clone(), json.len() as u64);
        by_size(&self.tenant, bytes, move || {
            let mut value = serde_json::from_slice(&json)?;
            redactor.redact(&mut value);
            Ok(convert(value))
        })
        .await
    }

    /// Reads a message.
    pub(super) async fn message(&self, json: Bytes) -> Result<ServerJsonRpcMessage, serde_json::Error> {
        self.read(json, message).await?
    }

    /// Removes the secrets from a text that is no message.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.redactor.redacted(text.to_owned(), false)
    }
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
    use crate::off_thread::assert_beside;

    #[test]
    fn a_large_message_is_parsed_beside_the_workers() {
        let incoming = Incoming::new(&Redactor::new([]), &TenantId::anonymous());
        let sent = json!({
            "jsonrpc": "2.0", "id": 7,
            "result": {"content": [{"type": "text", "text": "x".repeat(1 << 17)}], "structuredContent": {"a": [1, {}]}},
        });
        let read = assert_beside(incoming.message(sent.to_string().into())).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), sent);
    }
}

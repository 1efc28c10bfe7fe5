//! A server of the revision 2026-07-28 by hand, so that it may do anything wrong.

use serde_json::json;
use test_support::raw_server::{RawReply, RawServer, head};
use values::json::Value;

/// The running server; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct RawMcp {
    server: RawServer,
}

impl RawMcp {
    /// Starts a server with one tool `t`, whose calls are answered by the function.
    pub(super) async fn start(call: impl Fn(&Value) -> RawReply + Send + Sync + 'static) -> Self {
        Self::start_all(move |request| {
            if request["method"] == "tools/call" {
                call(request)
            } else {
                begin(request)
            }
        })
        .await
    }

    /// Starts a server that answers every request by the function.
    pub(super) async fn start_all(react: impl Fn(&Value) -> RawReply + Send + Sync + 'static) -> Self {
        let server = RawServer::start(move |request| match serde_json::from_str(&request.body) {
            Ok(message) => react(&message),
            Err(_) => RawReply::new(405, &[], ""),
        });
        Self { server: server.await }
    }

    pub(super) fn url(&self) -> String {
        self.server.url("/mcp")
    }

    /// Returns how many replies have begun to hang, and how many of their connections the client
    /// has closed.
    pub(super) fn hangs(&self) -> (usize, usize) {
        self.server.hangs()
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }
}

/// Answers all requests but calls.
pub(crate) fn begin(request: &Value) -> RawReply {
    let id = &request["id"];
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0});
            response(id, result)
        }
        "tools/list" => {
            let tool = json!({"name": "t", "description": "A tool.", "inputSchema": {"type": "object"}});
            response(id, json!({"tools": [tool], "ttlMs": 0}))
        }
        _ => RawReply::new(202, &[], ""),
    }
}

/// Returns a response with a result.
pub(crate) fn response(id: &Value, mut result: Value) -> RawReply {
    result["resultType"] = json!("complete");
    result["cacheScope"] = json!("private");
    let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
    RawReply::new(200, &[("content-type", "application/json")], message.to_string())
}

/// Returns a stream of events that begins like this.
pub(super) fn sse(events: &str) -> RawReply {
    let mut bytes = head(200, &[("content-type", "text/event-stream")]);
    bytes.extend(format!("\r\n{events}").bytes());
    RawReply::bytes(bytes)
}

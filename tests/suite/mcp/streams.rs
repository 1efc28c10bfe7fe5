//! Responses that are streams: how many there may be, and large messages in them.

use std::sync::Arc;

use agent::ports::ToolServers as _;
use net::outgoing::SystemResolver;
use serde_json::json;
use test_support::wait::until;
use tools::ToolSecrets;
use values::json::Value;
use values::session::ToolPins;
use values::tenant::TenantId;

use super::raw::{RawMcp, begin, sse};
use super::{McpApp, servers_with};
use crate::tools::setup::call;

#[tokio::test]
async fn calls_whose_responses_are_streams_are_limited_for_each_tenant() {
    let server = RawMcp::start(|_| sse(": begun\n\n").then_hang()).await;
    let definition = format!(
        "name = \"box\"\nurl = {:?}\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\ntimeout = \"10m\"\n\
         connect_timeout = \"2m\"",
        server.url()
    );
    let servers = servers_with(&definition, &ToolSecrets::default(), Arc::new(SystemResolver)).unwrap();
    let (names, pins) = (["box".to_owned()], ToolPins::default());
    let [first, second] = ["a", "b"].map(|name| name.parse::<TenantId>().unwrap());
    let offered = servers.offered(&first, &names, &pins).await;
    let mut calls: Vec<_> = (0..20)
        .map(|_| {
            let tool = Arc::clone(&offered.tools[0].tool);
            tokio::spawn(async move { call(&tool, &json!({})).await })
        })
        .collect();
    until("the calls do not begin", async || server.hangs().0 >= 16).await;
    // The connection lists tools meanwhile: a run begins. And another tenant has a connection of
    // its own.
    for tenant in [&first, &second, &first] {
        let offered = servers.offered(tenant, &names, &pins).await;
        assert_eq!(offered.tools[0].tool.spec().name, "box_t");
    }
    assert_eq!(server.hangs(), (16, 0));
    // Each call that ends makes room for another one.
    for ended in 1..=4 {
        calls.remove(0).abort();
        until("no other call begins", async || server.hangs().0 == 16 + ended).await;
    }
    for call in calls {
        call.abort();
    }
    until("streams stay open", async || server.hangs() == (20, 20)).await;
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_in_streams_reach_the_model_whole() {
    let server = RawMcp::start_all(|request| {
        let id = &request["id"];
        let (arguments, large) = (&request["params"]["arguments"], "large ".repeat(40_000));
        let progress = json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
        let respond = |message: Value| {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
            sse(&format!("data: {progress}\n\ndata: {message}\n\n"))
        };
        let result = match (request["method"].as_str(), arguments["kind"].as_str()) {
            (Some("tools/call"), Some("text")) => json!({"content": [{"type": "text", "text": large}]}),
            (Some("tools/call"), Some("structured")) => {
                json!({"content": [], "structuredContent": {"large": [large, {"a": 1}]}})
            }
            (Some("tools/call"), Some("error")) => {
                let error = json!({"code": -32602, "message": large});
                return respond(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            (Some("tools/list"), _) => {
                let tool = |name: &str| {
                    let description = "words ".repeat(8_000);
                    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
                };
                json!({"tools": [tool("t"), tool("u"), tool("v")], "ttlMs": 60_000, "cacheScope": "private"})
            }
            _ => return begin(request),
        };
        let mut result = result;
        result["resultType"] = json!("complete");
        respond(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    });
    let server = server.await;
    let settings = [("runs.max_tool_output_bytes", "1000000")];
    let app = McpApp::alone_with(&[("box", &server.url(), "")], &settings).await;
    let large = "large ".repeat(40_000);
    assert_eq!(app.use_tool("box_t", json!({"kind": "text"})).await, large);
    assert_eq!(app.offered(), ["box_t", "box_u", "box_v"]);
    let structured = app.use_tool("box_t", json!({"kind": "structured"})).await;
    assert_eq!(structured, json!({"large": [large, {"a": 1}]}).to_string());
    let error = app.use_tool("box_t", json!({"kind": "error"})).await;
    assert!(
        error.contains("it refused the request: large large") && error.len() < 3_000,
        "{error}"
    );
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_list_of_tools_in_a_stream_can_not_be_used() {
    let server = RawMcp::start_all(|request| {
        if request["method"] != "tools/list" {
            return begin(request);
        }
        let tool = json!({"name": "t", "title": "x".repeat(1 << 20), "inputSchema": {"type": "object"}});
        let result = json!({"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        sse(&format!("data: {message}\n\n"))
    });
    let server = server.await;
    let app = McpApp::alone(&[("box", &server.url(), "")]).await;
    let words = app.use_tool("box_unavailable", json!({})).await;
    assert!(words.contains("no valid response within the limits"), "{words}");
    app.finish().await;
}

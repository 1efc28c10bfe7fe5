//! Servers that hang, die, lie or send without end. Each is at most an error of a call.

use std::time::Duration;

use agent::ports::ToolServers as _;
use serde_json::json;
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer, head};
use tokio::time::timeout;
use tools::ToolSecrets;
use values::json::Value;
use values::session::ToolPins;
use values::tenant::TenantId;

use super::raw::{RawMcp, response, sse};
use super::{McpApp, servers_with};
use crate::support::text::assert_contains;

/// How long a test of a server waits at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// Limits that make a test short.
const SHORT: &str = "timeout = \"1s\"\nconnect_timeout = \"1500ms\"\nmax_response_bytes = 65536";

async fn app_with(url: &str) -> McpApp {
    McpApp::alone(&[("box", url, SHORT)]).await
}

/// A response that declares a type and then sends without end.
fn endless(media_type: &str, begin: &str, again: &str) -> RawReply {
    let mut bytes = head(200, &[("content-type", media_type)]);
    bytes.extend(format!("\r\n{begin}").bytes());
    RawReply::bytes(bytes).then_repeat(again.repeat(1_000))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_begins_without_the_tools_of_a_server_that_can_not_be_used() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let app = app_with(&address).await;
    let words = app.use_tool("box_unavailable", json!({})).await;
    assert_contains!(
        words,
        "The tools of the server \"box\" are not available in this run: it can't be reached"
    );
    assert_eq!(app.offered(), ["box_unavailable"]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_misbehaves_in_a_call_is_an_error_of_the_call() {
    type Misbehave = fn(&Value) -> RawReply;
    let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n";
    let cases: [(&str, Misbehave, &str); 12] = [
        (
            "hangs",
            |_| RawReply::bytes("").then_hang(),
            "it did not respond within 1s",
        ),
        (
            "hangs after the head",
            |_| sse("").then_hang(),
            "it did not respond within 1s",
        ),
        ("closes", |_| RawReply::bytes(""), ""),
        ("dies in the stream", |_| sse("data: {\"jsonrpc\": \"2.0\", \"id\""), ""),
        ("ends the stream", |_| sse(": nothing\n\n"), ""),
        (
            "sends an endless line",
            |_| endless("text/event-stream", "data: ", "x"),
            "",
        ),
        ("sends endless JSON", |_| endless("application/json", "{", " "), ""),
        (
            "sends endless comments",
            |_| endless("text/event-stream", "", ": x\n\n"),
            "",
        ),
        (
            "sends no JSON",
            |_| RawReply::new(200, &[("content-type", "application/json")], "<html>"),
            "",
        ),
        ("sends no MCP", |_| RawReply::text("hello"), ""),
        (
            "nests without end",
            |_| RawReply::new(200, &[("content-type", "application/json")], "[".repeat(60_000)),
            "",
        ),
        (
            "fails",
            |_| RawReply::new(503, &[], "down"),
            "it responded with HTTP 503",
        ),
    ];
    for (name, misbehave, expected) in cases {
        let server = RawMcp::start(misbehave).await;
        let app = app_with(&server.url()).await;
        let words = timeout(PATIENCE, app.use_tool("box_t", json!({}))).await;
        let words = words.unwrap_or_else(|_| panic!("a server that {name} stops the run"));
        assert!(
            words.starts_with("the MCP server \"box\" gave no result: "),
            "{name}: {words}"
        );
        assert!(words.contains(expected) && words.len() < 3_000, "{name}: {words}");
        app.finish().await;
    }
    // A flood of progress ends at the limit of the response, too.
    let server = RawMcp::start(move |_| endless("text/event-stream", "", progress)).await;
    let app = app_with(&server.url()).await;
    let words = timeout(PATIENCE, app.use_tool("box_t", json!({}))).await.unwrap();
    assert!(words.starts_with("the MCP server \"box\" gave no result: "), "{words}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_a_server_is_shown_up_to_a_limit() {
    let server = RawMcp::start(|request| {
        let error = json!({"code": -32602, "message": format!("no such city{}", "!".repeat(10_000))});
        let message = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
        RawReply::new(200, &[("content-type", "application/json")], message.to_string())
    });
    let server = server.await;
    let app = app_with(&server.url()).await;
    let words = app.use_tool("box_t", json!({})).await;
    assert!(words.contains("it refused the request: no such city!!!"), "{words}");
    assert!(words.ends_with("(code -32602)") && words.len() < 3_000, "{words}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_misbehaves_at_the_start_is_not_available() {
    type React = fn(&Value) -> RawReply;
    let cases: [(&str, React, &str); 4] = [
        (
            "hangs",
            |_| RawReply::bytes("").then_hang(),
            "it did not respond within",
        ),
        (
            "sends HTML",
            |_| RawReply::new(200, &[("content-type", "text/html")], "<html>"),
            "",
        ),
        ("sends endless JSON", |_| endless("application/json", "{", " "), ""),
        (
            "wants other credentials",
            |_| RawReply::new(401, &[], ""),
            "does not accept the configured credentials",
        ),
    ];
    for (name, react, expected) in cases {
        let server = RawMcp::start_all(react).await;
        let app = app_with(&server.url()).await;
        let words = timeout(PATIENCE, app.use_tool("box_unavailable", json!({}))).await;
        let words = words.unwrap_or_else(|_| panic!("a server that {name} stops the run"));
        assert!(words.contains("are not available in this run: "), "{name}: {words}");
        assert!(words.contains(expected), "{name}: {words}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_definitions_are_left_out() {
    let server = RawMcp::start_all(|request| {
        let object = json!({"type": "object"});
        let deep = (0..60).fold(json!({}), |inner, _| json!({"not": inner}));
        match request["method"].as_str() {
            Some("tools/list") => {
                let tools = json!([
                    {"name": "good", "inputSchema": object},
                    {"name": "good", "inputSchema": object, "description": "another one"},
                    {"name": "text", "inputSchema": {"type": "string"}},
                    {"name": "broken", "inputSchema": {"type": "object", "properties": 7}},
                    {"name": "deep", "inputSchema": {"type": "object", "properties": {"a": deep}}},
                    {"name": "elsewhere", "inputSchema": {"type": "object", "$ref": "http://127.0.0.1/schema"}},
                    {"name": "large", "inputSchema": object, "description": "x".repeat(66_000)},
                    {"name": "n".repeat(129), "inputSchema": object},
                    {"name": "output", "inputSchema": object, "outputSchema": {"type": "object", "required": 1}},
                ]);
                response(&request["id"], json!({"tools": tools}))
            }
            _ => super::raw::begin(request),
        }
    });
    let server = server.await;
    // It accepts the call and never responds.
    let app = McpApp::alone(&[("box", &server.url(), "timeout = \"1s\"")]).await;
    app.use_tool("box_good", json!({})).await;
    // Results are not checked by a schema that can't be used.
    assert_eq!(app.offered(), ["box_good", "box_output"]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_floods_requests_loses_its_connection() {
    let server = RawMcp::start_all(|request| match request["method"].as_str() {
        Some("tools/call") => {
            let ping = |n: u32| json!({"jsonrpc": "2.0", "id": format!("p{n}"), "method": "ping"});
            let pings: Vec<String> = (0..1_000).map(|n| format!("data: {}\n\n", ping(n))).collect();
            sse(&pings.concat()).then_hang()
        }
        // It does not accept the responses.
        None => RawReply::bytes("").then_hang(),
        _ => super::raw::begin(request),
    });
    let server = server.await;
    let app = McpApp::alone(&[("box", &server.url(), "timeout = \"10m\"")]).await;
    let words = timeout(PATIENCE, app.use_tool("box_t", json!({}))).await;
    let words = words.expect("the flood does not end the call");
    assert!(words.contains("the connection to it broke"), "{words}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_not_followed() {
    let internal = RawServer::start(|_| RawReply::text("internal")).await;
    let target = internal.url("/");
    let server = RawServer::start(move |_| RawReply::redirect(307, &target)).await;
    let app = app_with(&server.url("/mcp")).await;
    let words = app.use_tool("box_unavailable", json!({})).await;
    assert!(words.contains("it responded with HTTP 307"), "{words}");
    assert!(internal.requests().is_empty());
    app.finish().await;
}

#[tokio::test]
async fn a_name_that_moves_to_an_internal_address_is_refused() {
    let dns = DnsServer::start(|_, before| match before {
        0 | 1 => vec![Record::address("127.0.0.1")],
        _ => vec![Record::address("127.0.0.2")],
    });
    let dns = dns.await;
    let (server, internal) = loop {
        let server = RawMcp::start_all(super::raw::begin).await;
        let address = format!("127.0.0.2:{}", server.port());
        // Another process may have the port.
        if std::net::TcpListener::bind(&address).is_ok() {
            break (
                server,
                RawServer::start_on(&address, |_| RawReply::text("internal")).await,
            );
        }
    };
    let definition = format!(
        "name = \"box\"\nurl = \"http://moving.test:{}/mcp\"\nallow_http = true\nallow_networks = [\"127.0.0.1\"]",
        server.port()
    );
    let servers = servers_with(&definition, &ToolSecrets::default(), dns.resolver()).unwrap();
    let (tenant, names) = (TenantId::anonymous(), ["box".to_owned()]);
    let mut words = String::new();
    // The first connections use the permitted address, and a later one must not use the other.
    for _ in 0..3 {
        let offered = servers.offered(&tenant, &names, &ToolPins::default()).await;
        words = offered.tools[0].tool.spec().description.clone();
        if words.contains("are not available") {
            break;
        }
    }
    assert!(words.contains("its address is not public"), "{words}");
    assert!(internal.requests().is_empty());
    servers.close().await;
}

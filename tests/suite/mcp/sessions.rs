//! Servers that have lost a session, or an id, or send no response at all.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use test_support::raw_server::{RawReply, RawServer};
use tokio::time::timeout;
use values::json::Value;

use super::McpApp;
use super::raw::{RawMcp, begin, response};

/// How long a test waits at most for what has no time limit of its own.
const PATIENCE: Duration = Duration::from_mins(1);
/// No time limit of a server ends a test.
const SLOW: &str = "timeout = '10m'\nconnect_timeout = '5m'";

fn json_reply(status: u16, message: &Value) -> RawReply {
    RawReply::new(status, &[("content-type", "application/json")], message.to_string())
}

/// An error without the id of a request.
fn lost(code: i32, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no such session"}})
}

/// Starts a server of the revision 2025-06-18 that forgets its session after each call, and then
/// replies as given. Its lists end with an empty cursor. The number is how often a session has
/// begun.
async fn forgetful(reply: impl Fn(&Value) -> RawReply + Send + Sync + 'static) -> (RawServer, Arc<AtomicU32>) {
    let (sessions, of_server) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
    let begun = Arc::clone(&sessions);
    let server = RawServer::start(move |request| {
        let Ok(message) = serde_json::from_str::<Value>(&request.body) else {
            return RawReply::new(405, &[], "");
        };
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        let ok = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let session = of_server.load(Ordering::SeqCst).to_string();
        if method == "initialize" {
            begun.fetch_add(1, Ordering::SeqCst);
            let server = json!({"name": "s", "version": "1"});
            let all = json!({"tools": {}, "resources": {}, "prompts": {}});
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": all, "serverInfo": server});
            let headers = [
                ("content-type", "application/json"),
                ("mcp-session-id", session.as_str()),
            ];
            return RawReply::new(200, &headers, ok(result));
        }
        if request.header("mcp-session-id") != Some(&session) {
            return reply(&message);
        }
        let result = match method {
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "nextCursor": ""}),
            "resources/list" => json!({"resources": [], "nextCursor": ""}),
            "resources/templates/list" => json!({"resourceTemplates": [], "nextCursor": ""}),
            "prompts/list" => json!({"prompts": [], "nextCursor": ""}),
            "tools/call" => {
                of_server.fetch_add(1, Ordering::SeqCst);
                json!({"content": [{"type": "text", "text": "called"}]})
            }
            _ => return RawReply::new(202, &[], ""),
        };
        RawReply::new(200, &[("content-type", "application/json")], ok(result))
    });
    (server.await, sessions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_the_server_has_lost_begins_again() {
    type Reply = fn(&Value) -> RawReply;
    let replies: [Reply; 7] = [
        |_| json_reply(400, &lost(-32_000, &Value::Null)),
        |_| json_reply(200, &lost(-32_000, &Value::Null)),
        |_| json_reply(500, &lost(-32_001, &Value::Null)),
        |_| json_reply(400, &lost(-32_600, &json!("server-error"))),
        |_| json_reply(404, &lost(-32_001, &Value::Null)),
        |_| RawReply::new(400, &[("content-type", "text/plain")], "Invalid session ID"),
        |_| {
            json_reply(
                400,
                &json!({"jsonrpc": "2.0", "error": {"code": -32_600, "message": "who is this?"}}),
            )
        },
    ];
    for (number, reply) in replies.into_iter().enumerate() {
        let (server, sessions) = forgetful(reply).await;
        let app = McpApp::alone(&[("box", &server.url("/mcp"), SLOW)]).await;
        let calls = json!([["c1", "box_t", {}], ["c2", "box_t", {}], ["c3", "box_t", {}]]).to_string();
        for _ in 0..2 {
            let body = json!({"agent": "user", "input": calls});
            let run = timeout(PATIENCE, app.run_with(body))
                .await
                .expect("a call waits for ever");
            let words = run["output_text"].as_str().unwrap();
            // Calls of one step are made at the same time, so that a session may be lost again.
            assert!(words.contains("called"), "{number}: {words}");
        }
        for _ in 0..3 {
            assert_eq!(app.use_tool("box_t", json!({})).await, "called", "{number}");
        }
        assert!(sessions.load(Ordering::SeqCst) >= 4, "{number}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_reads_the_name_and_the_version_of_the_service() {
    let (server, _) = forgetful(|_| json_reply(404, &lost(-32_001, &Value::Null))).await;
    let app = McpApp::alone(&[("box", &server.url("/mcp"), SLOW)]).await;
    assert_eq!(app.use_tool("box_t", json!({})).await, "called");
    let requests = server.requests();
    let bodies = requests
        .iter()
        .filter_map(|request| serde_json::from_str::<Value>(&request.body).ok());
    let begun: Vec<Value> = bodies.filter(|body| body["method"] == "initialize").collect();
    assert!(!begun.is_empty());
    for body in begun {
        let client = &body["params"]["clientInfo"];
        let expected = json!({"name": "agent-runtime", "version": env!("CARGO_PKG_VERSION")});
        assert_eq!(*client, expected, "{body}");
    }
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_cursor_ends_a_list_of_an_older_revision() {
    let (server, _) = forgetful(|_| json_reply(404, &lost(-32_001, &Value::Null))).await;
    let app = McpApp::alone(&[("box", &server.url("/mcp"), SLOW)]).await;
    let events = app.stream(json!({"agent": "user", "input": "nothing"})).await;
    let warned = events.iter().find(|event| event["type"] == "server.warned");
    assert_eq!(warned, None);
    let offered = app.offered();
    assert!(offered.iter().any(|name| name == "box_t"), "{offered:?}");
    for tool in ["box_list_resources", "box_list_prompts"] {
        let words = app.use_tool(tool, json!({})).await;
        let listed: Value = serde_json::from_str(&words).unwrap_or_else(|_| panic!("{words}"));
        assert_eq!(listed.get("next_cursor"), Some(&Value::Null), "{words}");
    }
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_belongs_to_the_request_of_its_post() {
    type Call = fn(&Value) -> RawReply;
    let cases: [(Call, &str); 9] = [
        (|_| json_reply(200, &lost(-32_000, &Value::Null)), "no such session"),
        (|_| json_reply(400, &lost(-32_602, &Value::Null)), "no such session"),
        (|_| json_reply(500, &lost(-32_603, &json!("other"))), "no such session"),
        (|_| json_reply(200, &json!({"error": "plain words"})), "plain words"),
        (
            |_| response(&json!(4_711), json!({"content": [{"type": "text", "text": "mine"}]})),
            "mine",
        ),
        (
            |request| {
                let result = json!({"content": [{"type": "text", "text": "mine"}]});
                json_reply(
                    200,
                    &json!({"id": request["id"].to_string(), "result": result, "error": null}),
                )
            },
            "mine",
        ),
        (
            |_| {
                let event = format!("data: {}\n\n", lost(-32_000, &Value::Null));
                RawReply::new(200, &[("content-type", "text/event-stream")], event)
            },
            "no such session",
        ),
        (
            |_| RawReply::new(202, &[], ""),
            "it responded with HTTP 202, without a result",
        ),
        (
            |_| RawReply::new(200, &[("content-type", "application/json")], ""),
            "it responded with HTTP 200, without a result",
        ),
    ];
    for (number, (call, expected)) in cases.into_iter().enumerate() {
        let server = RawMcp::start(call).await;
        let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
        let words = timeout(PATIENCE, app.use_tool("box_t", json!({}))).await;
        let words = words.unwrap_or_else(|_| panic!("call {number} waits for ever"));
        assert!(words.contains(expected), "{number}: {words}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_request_gets_its_response_as_well() {
    type Broken = fn() -> RawReply;
    let broken: [(Broken, &str); 3] = [
        (|| json_reply(200, &lost(-32_000, &Value::Null)), "no such session"),
        (|| RawReply::new(202, &[], ""), "HTTP 202"),
        (|| RawReply::new(200, &[], ""), "HTTP 200"),
    ];
    let all = json!([
        ["c1", "box_list_resources", {}], ["c2", "box_read_resource", {"uri": "a"}], ["c3", "box_list_prompts", {}],
        ["c4", "box_get_prompt", {"name": "p"}]
    ]);
    for (reply, expected) in broken {
        let server = RawMcp::start_all(move |request| match request["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
                let versions = json!(["2026-07-28"]);
                let result = json!({"supportedVersions": versions, "capabilities": capabilities, "ttlMs": 0});
                response(&request["id"], result)
            }
            "tools/list" => begin(request),
            _ => reply(),
        });
        let server = server.await;
        let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
        let body = json!({"agent": "user", "input": all.to_string()});
        let run = timeout(PATIENCE, app.run_with(body))
            .await
            .expect("a request waits for ever");
        let words = run["output_text"].as_str().unwrap();
        assert_eq!(words.matches(expected).count(), 4, "{words}");
        app.finish().await;
        // So does a request that begins a connection, or lists the tools.
        for method in ["server/discover", "tools/list"] {
            let server = RawMcp::start_all(move |request| match request["method"].as_str().unwrap_or_default() {
                "initialize" => reply(),
                asked if asked == method => reply(),
                _ => begin(request),
            });
            let server = server.await;
            let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
            let words = timeout(PATIENCE, app.use_tool("box_unavailable", json!({}))).await;
            let words = words.unwrap_or_else(|_| panic!("{method} waits for ever"));
            assert!(words.contains(expected), "{method}: {words}");
            app.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_effects_is_sent_again_if_its_connection_breaks() {
    let seen = Mutex::<HashSet<String>>::default();
    let server = RawMcp::start_all(move |request| {
        let method = request["method"].as_str().unwrap_or_default();
        // As a server does that closes unused connections.
        if seen.lock().unwrap().insert(method.to_owned()) {
            return RawReply::bytes("");
        }
        match method {
            "tools/call" => {
                let content = json!([{"type": "text", "text": "called"}]);
                response(&request["id"], json!({"content": content}))
            }
            _ => begin(request),
        }
    });
    let server = server.await;
    let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
    let words = app.use_tool("box_t", json!({})).await;
    assert!(words.contains("the connection to it broke"), "{words}");
    assert_eq!(app.use_tool("box_t", json!({})).await, "called");
    app.finish().await;
}

/// Servers drop a question that they ask while the stream for it is not open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_call_waits_for_the_stream_of_the_messages_of_the_server() {
    let times = Arc::<Mutex<HashMap<String, Instant>>>::default();
    let of_server = Arc::clone(&times);
    let server = RawServer::start(move |request| {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or("stream"));
        if method == "stream" {
            thread::sleep(Duration::from_millis(300));
        }
        of_server
            .lock()
            .unwrap()
            .entry(method.to_owned())
            .or_insert_with(Instant::now);
        let result = match method {
            "initialize" => {
                let server = json!({"name": "s", "version": "1"});
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server})
            }
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "called"}]}),
            "stream" => return RawReply::new(405, &[], ""),
            "server/discover" => return RawReply::new(400, &[], ""),
            _ => return RawReply::new(202, &[], ""),
        };
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let headers = [("content-type", "application/json"), ("mcp-session-id", "1")];
        RawReply::new(200, &headers, response)
    });
    let server = server.await;
    let app = McpApp::alone(&[("box", &server.url("/mcp"), SLOW)]).await;
    assert_eq!(app.use_tool("box_t", json!({})).await, "called");
    let times = times.lock().unwrap().clone();
    let (begun, called) = (times["notifications/initialized"], times["tools/call"]);
    // It waits for a second at most.
    let is_late = called - begun >= Duration::from_secs(1);
    let is_open = times.get("stream").is_some_and(|open| *open <= called);
    assert!(is_open || is_late, "{times:?}");
    app.finish().await;
}

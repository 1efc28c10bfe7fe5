//! Servers whose JSON is not strict, that send several messages at once, or that send a body of
//! another type than they say. What they have executed is not lost.

use serde_json::json;
use test_support::raw_server::RawReply;
use values::json::Value;

use super::McpApp;
use super::raw::{RawMcp, begin};
use crate::support::text::{assert_contains, assert_lacks};

/// No time limit of a server ends a test.
const SLOW: &str = "timeout = '10m'\nconnect_timeout = '5m'";

/// Returns a response with a result that is no strict JSON.
fn loose_result(id: &Value, result: &[u8]) -> Vec<u8> {
    let begin = format!("{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"result\": ");
    [begin.as_bytes(), result, b"}"].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_no_strict_json_reaches_the_model() {
    let cases: [(&[u8], &str); 5] = [
        (
            br#"{"content": [{"type": "text", "text": "EXECUTED \ud83d"}]}"#,
            "EXECUTED \u{fffd}",
        ),
        (
            br#"{"content": [{"type": "text", "text": "EXECUTED"}], "structuredContent": {"x": NaN}}"#,
            "EXECUTED",
        ),
        (
            br#"{"structuredContent": {"x": [1e400, -Infinity, 1]}}"#,
            "[null,null,1]",
        ),
        (
            b"{\"content\": [{\"type\": \"text\", \"text\": \"\x01\tEXECUTED\"}]}",
            "EXECUTED",
        ),
        (
            b"{\"content\": [{\"type\": \"text\", \"text\": \"EXECUTED caf\xe9\"}]}",
            "EXECUTED caf\u{fffd}",
        ),
    ];
    for (result, expected) in cases {
        for (media_type, before, after) in [("application/json", "", ""), ("text/event-stream", "data: ", "\n\n")] {
            let server = RawMcp::start(move |request| {
                let body = loose_result(&request["id"], result);
                let body = [before.as_bytes(), &body, after.as_bytes()].concat();
                RawReply::new(200, &[("content-type", media_type)], body)
            });
            let server = server.await;
            let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
            let words = app.use_tool("box_t", json!({})).await;
            assert_contains!(words, expected; "{media_type}");
            assert_lacks!(words, "gave no result"; "{media_type}");
            app.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_tools_that_is_no_strict_json_is_used() {
    let tools: [&[u8]; 3] = [
        br#"{"name": "b", "description": "Cut \ud83d", "inputSchema": {"type": "object"}}"#,
        br#"{"name": "b", "inputSchema": {"type": "object", "properties": {"x": {"default": NaN}}}}"#,
        b"{\"name\": \"b\", \"description\": \"caf\xe9\t\", \"inputSchema\": {\"type\": \"object\"}}",
    ];
    for tool in tools {
        let server = RawMcp::start_all(move |request| {
            if request["method"] != "tools/list" {
                return begin(request);
            }
            let good = json!({"name": "a", "inputSchema": {"type": "object"}}).to_string();
            let result = [&b"{\"tools\": ["[..], good.as_bytes(), b", ", tool, b"]}"].concat();
            let body = loose_result(&request["id"], &result);
            RawReply::new(200, &[("content-type", "application/json")], body)
        });
        let server = server.await;
        let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
        app.run_with(json!({"agent": "user", "input": "nothing"})).await;
        assert_eq!(app.offered(), ["box_a", "box_b"], "{}", String::from_utf8_lossy(tool));
        app.finish().await;
    }
}

/// The message that responds to a request, and a notification that may come with it.
fn messages(request: &Value) -> Option<(Value, Value)> {
    let mut notification = json!({"method": "notifications/message", "params": {"level": "info", "data": "hello"}});
    let mut result = match request["method"].as_str()? {
        "server/discover" => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0})
        }
        "initialize" => json!({
            "protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "ttlMs": 0}),
        "tools/call" => {
            let token = &request["params"]["_meta"]["progressToken"];
            let params = json!({"progressToken": token, "progress": 1});
            notification = json!({"method": "notifications/progress", "params": params});
            json!({"content": [{"type": "text", "text": "EXECUTED"}]})
        }
        _ => return None,
    };
    result["resultType"] = json!("complete");
    result["cacheScope"] = json!("private");
    notification["jsonrpc"] = json!("2.0");
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    Some((notification, response))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_of_a_body_is_taken_whatever_its_type() {
    type Body = fn(&Value, &Value) -> String;
    let (json_type, events_type) = ("application/json", "text/event-stream");
    let event: Body = |_, response| format!("event: message\ndata: {response}\n\n");
    let events: Body = |notification, response| format!(": begun\n\ndata: {notification}\n\ndata: {response}\n\n");
    let batch: Body = |notification, response| format!("[{notification}, {response}]");
    let turned: Body = |notification, response| format!("[{response}, {notification}]");
    let event_of_batch: Body = |notification, response| format!("data: [{notification}, {response}]\n\n");
    let event_of_turned: Body = |notification, response| format!("data: [{response}, {notification}]\n\n");
    let single: Body = |_, response| format!("[{response}]");
    let pretty: Body = |_, response| format!("\r\n{response:#}\r\n");
    // The last element says whether the notification comes first.
    for (media_type, body, has_progress) in [
        (json_type, batch, true),
        (json_type, turned, false),
        (json_type, single, false),
        (events_type, event_of_batch, true),
        (events_type, event_of_turned, false),
        (json_type, event, false),
        (json_type, events, true),
        ("text/plain", event, false),
        ("text/plain", batch, true),
        (events_type, pretty, false),
        (events_type, batch, true),
    ] {
        for is_modern in [true, false] {
            let server = RawMcp::start_all(move |request| match messages(request) {
                _ if !is_modern && request["method"] == "server/discover" => RawReply::new(404, &[], ""),
                Some((notification, response)) => {
                    RawReply::new(200, &[("content-type", media_type)], body(&notification, &response))
                }
                None => RawReply::new(202, &[], ""),
            });
            let server = server.await;
            let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
            let calls = json!([["c1", "box_t", {}]]).to_string();
            let events = app.stream(json!({"agent": "user", "input": calls})).await;
            let case = format!("{media_type} {is_modern} {:?}", body(&json!("n"), &json!("r")));
            let request = app.mock.requests().pop().unwrap().to_string();
            assert!(request.contains("EXECUTED"), "{case}: {request}");
            let shown = events.iter().any(|event| event["type"] == "tool_call.output");
            assert!(shown || !has_progress, "{case}: {events:#?}");
            app.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_in_an_event_is_read_whatever_its_status() {
    for status in [200, 400] {
        let server = RawMcp::start(move |_| {
            let event = "data: {\"id\": null, \"error\": {\"message\": \"boom\"}}\n\n";
            RawReply::new(status, &[("content-type", "text/event-stream")], event)
        });
        let server = server.await;
        let app = McpApp::alone(&[("box", &server.url(), SLOW)]).await;
        let words = app.use_tool("box_t", json!({})).await;
        assert!(words.contains("boom"), "{status}: {words}");
        app.finish().await;
    }
}

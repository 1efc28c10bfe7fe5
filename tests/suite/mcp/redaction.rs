//! Servers that repeat what shows who calls: a configured secret, or an access token that the
//! service got for them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use test_support::logs::CapturedLog;
use test_support::raw_server::{RawReply, RawRequest, RawServer};
use tracing::Level;
use values::json::Value;

use super::McpApp;
use super::raw::{response, sse};
use crate::support::test_app::{run_path, session_path};

/// A configured secret.
const SECRET: &str = "s3cr3t&t0ken";
/// The token that the endpoint issues.
const TOKEN: &str = "oauth+t0ken/&47110815==";

/// Repeats the token of the request wherever a server can.
fn repeat(request: &RawRequest) -> RawReply {
    if request.line() == "POST /token" {
        let token = json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600});
        return RawReply::new(200, &[("content-type", "application/json")], token.to_string());
    }
    let sent = request.header("authorization").unwrap_or_default();
    let sent = sent.strip_prefix("Bearer ").unwrap_or_default();
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "instructions": sent, "ttlMs": 0,
        }),
        "tools/list" => {
            let kind = json!({"type": "string", "description": sent, "examples": [sent]});
            let schema = json!({"type": "object", "properties": {"kind": kind}, "title": sent});
            json!({"tools": [{"name": "t", "description": format!("Knows {sent}."), "inputSchema": schema}], "ttlMs": 0})
        }
        "resources/list" => json!({"resources": [{"uri": format!("file:///{sent}"), "name": sent}]}),
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": format!("{sent}/{{a}}"), "name": "n"}]})
        }
        "resources/read" => json!({"contents": [{"uri": "file:///a", "text": format!("It says {sent}.")}]}),
        "prompts/list" => json!({"prompts": [{"name": "p", "description": sent}]}),
        "prompts/get" => {
            let content = json!({"type": "text", "text": format!("Use {sent}.")});
            json!({"messages": [{"role": "user", "content": content}]})
        }
        "tools/call" => return called(&message, sent),
        _ => return RawReply::new(202, &[], ""),
    };
    response(&message["id"], result)
}

fn called(message: &Value, sent: &str) -> RawReply {
    let (id, params) = (&message["id"], &message["params"]);
    let text = json!([{"type": "text", "text": format!("You sent {sent}.")}]);
    let stream = |messages: &[Value]| {
        let events = messages.iter().map(|message| format!("data: {message}\n\n"));
        sse(&events.collect::<String>())
    };
    match params["arguments"]["kind"].as_str().unwrap_or_default() {
        "failed" => response(id, json!({"content": text, "isError": true})),
        "structured" => response(
            id,
            json!({"content": [], "structuredContent": {sent: [{"token": sent}]}}),
        ),
        "link" => {
            let link =
                json!({"type": "resource_link", "uri": format!("x://{sent}"), "name": sent, "description": sent});
            response(id, json!({"content": [link]}))
        }
        // Another way to write the same text.
        "escaped" => {
            let characters = sent.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            let escaped = characters.collect::<String>();
            let result = json!({"content": [{"type": "text", "text": "You sent ESCAPED."}], "resultType": "complete"});
            let message = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            let message = message.replace("ESCAPED", &escaped);
            RawReply::new(200, &[("content-type", "application/json")], message)
        }
        "refused" => {
            let error = json!({"code": -32602, "message": format!("I dislike {sent}."), "data": sent});
            let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
            RawReply::new(200, &[("content-type", "application/json")], message.to_string())
        }
        "type" => RawReply::new(200, &[("content-type", sent)], sent),
        "status" => RawReply::new(500, &[("content-type", "text/plain")], sent),
        "progress" => {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1, "message": format!("I use {sent}.")});
            let log = json!({"level": "info", "data": sent});
            stream(&[
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}),
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}),
                json!({"jsonrpc": "2.0", "method": "notifications/unknown", "params": log}),
                json!({"jsonrpc": "2.0", "id": sent, "method": "unknown"}),
                json!({"jsonrpc": "2.0", "id": id, "result": {"content": text, "resultType": "complete"}}),
            ])
        }
        "asks" => {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string", "description": sent}}});
            let question = json!({"mode": "form", "message": format!("Is it {sent}?"), "requestedSchema": schema});
            let requests = json!({"who": {"method": "elicitation/create", "params": question}});
            let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": sent});
            let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
            RawReply::new(200, &[("content-type", "application/json")], message.to_string())
        }
        _ => response(id, json!({"content": text})),
    }
}

// The capture has the lines of one thread.
#[tokio::test]
async fn a_server_that_repeats_what_shows_who_calls_shows_it_nowhere() {
    let (log, _listening) = CapturedLog::listening(Level::DEBUG);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SECRET).unwrap();
    let server = RawServer::start(repeat).await;
    let header = "[headers]\nAuthorization = { secret = \"main\", prefix = \"Bearer \" }".to_owned();
    let oauth = format!(
        "[oauth]\ntoken_url = {:?}\nclient_id = \"me\"\nclient_secret = \"main\"",
        server.url("/token")
    );
    for (shown, more) in [(SECRET, header), (TOKEN, oauth)] {
        let settings = [("tools.secrets.main.file", file.path().to_str().unwrap())];
        let app = McpApp::alone_with(&[("box", &*server.url("/mcp"), &*more)], &settings).await;
        let kinds = "text failed structured link escaped refused type status progress asks";
        let calls = kinds.split(' ').map(|kind| ("box_t", json!({"kind": kind})));
        let calls = calls.chain([
            ("box_list_resources", json!({})),
            ("box_read_resource", json!({"uri": "file:///a"})),
            ("box_list_prompts", json!({})),
            ("box_get_prompt", json!({"name": "p"})),
        ]);
        for (tool, arguments) in calls {
            let input = json!([["c1", tool, arguments]]).to_string();
            let events = app.stream(json!({"agent": "user", "input": input})).await;
            let end = &events.last().unwrap()["data"];
            let session = session_path(end, "");
            let run = run_path(end, "");
            let seen = [
                json!(events).to_string(),
                json!(app.mock.requests()).to_string(),
                app.get(&session).await.to_string(),
                app.get(&format!("{session}/messages")).await.to_string(),
                app.get(&run).await.to_string(),
            ];
            for seen in seen {
                assert!(!seen.contains(shown), "{tool} {arguments}: {seen}");
            }
            let events = json!(events).to_string();
            let says = match arguments["kind"].as_str().unwrap_or(tool) {
                "type" => "no valid response",
                "status" => "HTTP 500",
                "progress" => "I use [secret].",
                "asks" => "Is it [secret]?",
                _ => "[secret]",
            };
            assert!(events.contains(says), "{tool} {arguments}: {events}");
        }
        let request = app.mock.requests().pop().unwrap().to_string();
        assert!(request.contains("Knows [secret]."), "{request}");
        app.finish().await;
    }
    let sent = server.requests();
    for shown in [SECRET, TOKEN] {
        let expected = format!("Bearer {shown}");
        assert!(
            sent.iter()
                .any(|request| request.header("authorization") == Some(expected.as_str()))
        );
        let lines = log.text();
        let line = lines.lines().find(|line| line.contains(shown));
        assert_eq!(line, None);
    }
}

#[tokio::test]
async fn a_token_that_was_renewed_is_removed_as_the_one_before() {
    let given = AtomicUsize::new(0);
    let server = RawServer::start(move |request| {
        if request.line() == "POST /token" {
            let number = given.fetch_add(1, Ordering::SeqCst);
            // Each is used once.
            let token = json!({"access_token": format!("t0ken-{number:02}"), "token_type": "Bearer", "expires_in": 0});
            return RawReply::new(200, &[("content-type", "application/json")], token.to_string());
        }
        let message: Value = serde_json::from_str(&request.body).unwrap();
        if message["method"] != "tools/call" {
            return repeat(request);
        }
        let sent = request.header("authorization").unwrap();
        let number: usize = sent.rsplit('-').next().unwrap().parse().unwrap();
        let text = format!("{sent}, and t0ken-{:02} before", number - 1);
        response(&message["id"], json!({"content": [{"type": "text", "text": text}]}))
    });
    let server = server.await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SECRET).unwrap();
    let oauth = format!(
        "[oauth]\ntoken_url = {:?}\nclient_id = \"me\"\nclient_secret = \"main\"",
        server.url("/token")
    );
    let settings = [("tools.secrets.main.file", file.path().to_str().unwrap())];
    let app = McpApp::alone_with(&[("box", &*server.url("/mcp"), &*oauth)], &settings).await;
    for _ in 0..12 {
        let read = app.use_tool("box_t", json!({})).await;
        assert_eq!(read, "Bearer [secret], and [secret] before");
    }
    app.finish().await;
}

//! Revisions, headers and forms of messages.

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::{LEGACY, MODERN, McpApp};
use crate::support::answer::read;
use crate::support::members::assert_members;

#[tokio::test]
async fn clients_of_each_revision_are_served() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let found = app.client().ok("server/discover", json!({})).await;
    let versions = found["supportedVersions"].as_array().unwrap();
    for version in [MODERN, LEGACY] {
        assert!(versions.contains(&json!(version)), "{found:#}");
    }
    assert_eq!(found["resultType"], "complete");
    assert!(found["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object());
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        let hello = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let client = app.client().legacy();
        let answer = client
            .app
            .request(Method::POST, "/mcp")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(client.message("initialize", &hello).to_string());
        let answer = read(answer).await;
        assert_eq!(answer.header("mcp-session-id"), "");
        let result = &answer.ok()["result"];
        assert_eq!(result["protocolVersion"], version, "{result:#}");
        assert_members!(result, {"serverInfo/name": "agent-runtime", "resultType": null});
    }
    // A notification needs no response.
    let client = app.client().legacy();
    let text = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let answer = read(client.request("notifications/initialized", &json!({})).body(text)).await;
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::ACCEPTED, ""));
    let result = client.tool("echo", json!({"input": "hi"})).await;
    assert_eq!(result["structuredContent"]["output"], "echo: hi");
    app.finish().await;
}

#[tokio::test]
async fn headers_must_fit_the_body() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let params = json!({"name": "echo", "arguments": {"input": "hi"}});
    let body = client.message("tools/call", &params).to_string();
    let other = json!({"name": "asker"});
    for (method, named) in [
        ("tools/list", &params),
        ("tools/call", &other),
        ("tools/call", &json!({})),
    ] {
        let answer = read(client.request(method, named).body(body.clone())).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let error = answer.json();
        assert_members!(error, {"error/code": -32020, "id": 7});
    }
    // The revision of the header is that of the body.
    let legacy = client.clone().legacy();
    let answer = read(legacy.request("tools/call", &params).body(body.clone())).await;
    assert_eq!(answer.json()["error"]["code"], -32020, "{}", answer.text());
    let unknown = body.replace(MODERN, "2099-01-01");
    let request = app
        .request(Method::POST, "/mcp")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", "2099-01-01")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    let answer = read(request.body(unknown)).await;
    assert_eq!(answer.json()["error"]["code"], -32022, "{}", answer.text());
    assert_eq!(app.get("/v1/runs").await["data"], json!([]));
    app.finish().await;
}

#[tokio::test]
async fn malformed_messages_are_errors_of_json_rpc() {
    let (app, _database) = McpApp::with_agents(&[("http.max_json_depth", "8")]).await;
    let client = app.client();
    let list = client.message("tools/list", &json!({})).to_string();
    for (body, code, id) in [
        (String::new(), -32700, Value::Null),
        ("{".to_owned(), -32700, Value::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": \u{1}}".to_owned(), -32700, Value::Null),
        (format!("[{list}]"), -32600, Value::Null),
        ("[]".to_owned(), -32600, Value::Null),
        ("7".to_owned(), -32600, Value::Null),
        ("{}".to_owned(), -32600, Value::Null),
        (
            r#"{"jsonrpc": "1.0", "id": 3, "method": "tools/list"}"#.to_owned(),
            -32600,
            json!(3),
        ),
        (
            r#"{"jsonrpc": "2.0", "id": "a", "method": 5}"#.to_owned(),
            -32600,
            json!("a"),
        ),
        (r#"{"id": 1, "id": 2}"#.to_owned(), -32600, Value::Null),
        (
            format!("{{\"jsonrpc\": {}1{}}}", "[".repeat(9), "]".repeat(9)),
            -32600,
            Value::Null,
        ),
    ] {
        let answer = read(client.request("tools/list", &json!({})).body(body.clone())).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        let error = answer.json();
        assert_members!(error, {"error/code": code, "id": id}, "{body}");
    }
    assert_eq!(client.error("tools/fly", json!({})).await["code"], -32601);
    let answer = client.send("initialize", json!({"protocolVersion": MODERN})).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (StatusCode::NOT_FOUND, &json!(-32601))
    );
    assert_eq!(client.error("prompts/list", json!({})).await["code"], -32601);
    let error = client.error("tools/call", json!({"name": 5})).await;
    assert_eq!(error["code"], -32602, "{error:#}");
    let error = client.error("tools/list", json!({"cursor": "x"})).await;
    assert_eq!(error["code"], -32602, "{error:#}");
    app.finish().await;
}

#[tokio::test]
async fn a_response_has_a_type_that_the_client_accepts() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"input": "hi"}},
    });
    let call = call.to_string();
    let (json_type, events) = ("application/json", "text/event-stream");
    for (accept, of_ping, of_call) in [
        (None, json_type, events),
        (Some(""), json_type, events),
        (Some("*/*"), json_type, events),
        (Some("application/*, text/*"), json_type, events),
        (
            Some("application/json;q=0.9, text/event-stream;q=0.8"),
            json_type,
            events,
        ),
        (Some(json_type), json_type, json_type),
        (Some("APPLICATION/JSON;q=0.1"), json_type, json_type),
        (Some(events), events, events),
        (Some("*/*, application/json;q=0"), events, events),
        (Some("*/*, text/event-stream;q=0"), json_type, json_type),
    ] {
        for (body, path, expected) in [
            (&ping, "/mcp", of_ping),
            (&ping, "/mcp/", of_ping),
            (&call, "/mcp", of_call),
        ] {
            let request = app.request(Method::POST, path).header(header::CONTENT_TYPE, json_type);
            let request = match accept {
                Some(accept) => request.header(header::ACCEPT, accept),
                None => request,
            };
            let answer = read(request.body(body.clone())).await;
            assert_eq!(answer.status, StatusCode::OK, "{accept:?}: {}", answer.text());
            let found = answer.header("content-type").to_owned();
            assert!(found.starts_with(expected), "{accept:?}: {body}: {found}");
            assert!(answer.text().contains(r#""id":1,"result""#), "{}", answer.text());
        }
    }
    for accept in ["text/html", "*/*;q=0"] {
        let request = app
            .request(Method::POST, "/mcp")
            .header(header::CONTENT_TYPE, json_type);
        let answer = read(request.header(header::ACCEPT, accept).body(ping.clone())).await;
        assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE, "{accept}");
        assert_eq!(answer.json()["error"]["code"], -32600, "{accept}");
    }
    app.finish().await;
}

#[tokio::test]
async fn clients_that_differ_in_small_things_are_served() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    for client in [app.client(), app.client().legacy()] {
        for method in ["tools/list", "resources/list", "resources/templates/list"] {
            let result = client.ok(method, json!({"cursor": ""})).await;
            assert!(result.is_object(), "{method}");
        }
        // Responses of a client, which nobody waits for.
        for body in [
            json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}}),
        ] {
            let answer = read(client.request("", &json!({})).body(body.to_string())).await;
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (StatusCode::ACCEPTED, ""),
                "{body}"
            );
        }
        let marked = format!("\u{feff}{}", client.message("tools/list", &json!({})));
        let answer = read(client.request("tools/list", &json!({})).body(marked)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    // A revision that nobody knows is an error of JSON-RPC.
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    for version in ["9999", "2024-01-01", "x"] {
        let request = app
            .request(Method::POST, "/mcp")
            .header(header::CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", version);
        let answer = read(request.body(ping.clone())).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{version}: {}", answer.text());
        let error = answer.json();
        assert_eq!(error["id"], 3, "{version}: {error}");
        assert!(
            error["error"]["code"].is_i64() && error["error"]["message"] != "",
            "{version}: {error}"
        );
    }
    app.finish().await;
}

#[tokio::test]
async fn other_methods_and_media_types_are_problems() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = read(app.request(method, "/mcp")).await;
        answer.assert_problem("method_not_allowed");
        assert_eq!(answer.header("allow"), "POST");
    }
    let client = app.client();
    let body = client.message("tools/list", &json!({})).to_string();
    let plain = app
        .request(Method::POST, "/mcp")
        .header(header::CONTENT_TYPE, "text/plain");
    read(plain.body(body)).await.assert_problem("unsupported_media_type");
    app.finish().await;
}

#[tokio::test]
async fn foreign_web_pages_are_refused() {
    let settings = [("http.allowed_origins", r#"["https://app.example"]"#)];
    let (app, _database) = McpApp::with_agents(&settings).await;
    let (_, key) = app.make_key("default", &store::keys::Scope::ALL).await;
    let client = app.client().with_key(&key);
    let body = client.message("tools/list", &json!({})).to_string();
    let own = format!("http://{}", app.address);
    for (origin, allowed) in [
        ("https://app.example", true),
        (own.as_str(), true),
        ("https://evil.example", false),
        ("null", false),
    ] {
        let request = client.request("tools/list", &json!({})).header(header::ORIGIN, origin);
        let answer = read(request.body(body.clone())).await;
        if allowed {
            assert_eq!(answer.status, StatusCode::OK, "{origin}");
        } else {
            answer.assert_problem("origin_not_allowed");
        }
    }
    app.finish().await;
}

/// A page that resolves its own name to this machine has no key to send.
#[tokio::test]
async fn without_keys_only_known_hosts_are_served() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let body = client.message("tools/list", &json!({})).to_string();
    let request = client
        .request("tools/list", &json!({}))
        .header(header::HOST, "evil.example");
    let request = request.header(header::ORIGIN, "http://evil.example");
    read(request.body(body)).await.assert_problem("host_not_allowed");
    app.finish().await;
}

#[tokio::test]
async fn the_endpoint_can_be_left_out() {
    let (app, _database) = McpApp::with_agents(&[("http.mcp.enabled", "false")]).await;
    let answer = app.client().send("tools/list", json!({})).await;
    answer.assert_problem("route_not_found");
    app.finish().await;
}

//! The limits of `/v1` hold here, too; progress, and what happens when a client leaves.

use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::json;
use store::keys::Scope;
use test_support::wait::until;

use super::McpApp;
use crate::support::members::assert_members;

#[tokio::test]
async fn requests_count_in_the_rate_of_the_tenant() {
    let settings = [
        ("limits.tenants.slow.requests_per_second", "1"),
        ("limits.tenants.slow.request_burst", "2"),
    ];
    let (app, _database) = McpApp::with_agents(&settings).await;
    let (_, key) = app.make_key("slow", &Scope::ALL).await;
    let client = app.client().with_key(&key);
    let requests = (0..20).map(|_| client.send("tools/list", json!({})));
    let answers = join_all(requests).await;
    let (served, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == StatusCode::OK);
    assert!(!served.is_empty() && !refused.is_empty());
    assert!(
        served
            .iter()
            .all(|answer| answer.header("ratelimit").starts_with("\"requests\""))
    );
    refused[0].assert_problem("rate_limited");
    app.finish().await;
}

#[tokio::test]
async fn bodies_are_bounded() {
    let (app, _database) = McpApp::with_agents(&[("http.max_body_bytes", "2048")]).await;
    let arguments = json!({"input": "x".repeat(3_000)});
    let answer = app
        .client()
        .send("tools/call", json!({"name": "echo", "arguments": arguments}))
        .await;
    answer.assert_problem("body_too_large");
    app.finish().await;
}

/// The library has a limit of its own, of 4 MiB.
#[tokio::test]
async fn bodies_may_have_as_many_bytes_as_those_of_v1() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let params = json!({"name": "nobody", "arguments": {"input": "x".repeat(5 << 20)}});
    for client in [app.client(), app.client().legacy()] {
        let error = client.error("tools/call", params.clone()).await;
        assert_eq!(error["message"], "Unknown tool: nobody");
    }
    app.finish().await;
}

#[tokio::test]
async fn runs_are_bounded() {
    let (app, _database) = McpApp::with_agents(&[("limits.each_tenant.light_runs", "1")]).await;
    let client = app.client();
    let waiting = client.tool("echo", json!({"input": "wait"}));
    let other = async {
        app.gate.until_waiting(1).await;
        let refused = client.tool("echo", json!({"input": "x"})).await;
        app.gate.open(1);
        refused
    };
    let (waited, refused) = tokio::join!(waiting, other);
    assert_eq!(refused["isError"], true);
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("too_many_runs: "), "{words}");
    assert_eq!(waited["structuredContent"]["output"], "waited");
    app.finish().await;
}

#[tokio::test]
async fn progress_is_reported_to_clients_that_want_it() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    app.put_agent("worker", json!({"model": "mock/m", "tools": ["deploy"]}))
        .await;
    let calls = json!([["c1", "deploy", {"note": "a"}]]).to_string();
    for client in [app.client(), app.client().legacy()] {
        let params = json!({
            "name": "worker", "arguments": {"input": calls}, "_meta": {"progressToken": "p1"},
        });
        let mut messages = client.messages("tools/call", params).await;
        let last = messages.pop().unwrap();
        assert_eq!(last["result"]["structuredContent"]["output"], r#"read: {"note":"a"}"#);
        let words: Vec<_> = messages
            .iter()
            .map(|message| message["params"]["message"].clone())
            .collect();
        assert_eq!(words, ["step 1", "calls deploy", "deploy has ended", "step 2"]);
        for (number, message) in (1_u32..).zip(&messages) {
            assert_eq!(message["method"], "notifications/progress");
            let params = &message["params"];
            assert_members!(params, {"progressToken": "p1", "progress": f64::from(number)});
        }
    }
    app.finish().await;
}

/// As a synchronous run of `/v1`.
#[tokio::test]
async fn a_client_that_leaves_cancels_its_run() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    for client in [app.client(), app.client().legacy()] {
        let calling = client.send("tools/call", json!({"name": "echo", "arguments": {"input": "wait"}}));
        let waiting = async {
            app.gate.until_waiting(1).await;
        };
        tokio::select! {
            answer = calling => panic!("{}", answer.text()),
            () = waiting => (),
        }
        let status = async || app.get("/v1/runs").await["data"][0]["status"].clone();
        until("the run goes on", async || status().await == "cancelled").await;
        app.until_idle().await;
    }
    app.finish().await;
}

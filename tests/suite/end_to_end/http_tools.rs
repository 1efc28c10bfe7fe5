//! HTTP tools inside runs: declared by files, listed by agents, with a secret that nobody reads.

use std::fs;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::raw_server::{RawReply, RawServer};
use values::json::Value;

use super::on_every_store;
use crate::support::mock_model::{MockModel, Reply, content_text, tool_results};
use crate::support::test_app::TestApp;
use crate::support::text::assert_contains;

const SECRET: &str = "hunter2-hunter2";

on_every_store!(
    an_agent_calls_an_api_whose_secret_nobody_reads,
    a_long_response_is_in_a_file_of_the_session,
);

async fn an_agent_calls_an_api_whose_secret_nobody_reads(database: TestDatabase) {
    let server = RawServer::start(|request| {
        let echo = request.header("authorization").unwrap_or_default();
        let status = if request.line() == "POST /orders" { 201 } else { 404 };
        RawReply::new(
            status,
            &[("content-type", "application/json")],
            json!({"sent": echo}).to_string(),
        )
    });
    let server = server.await;
    let folder = tempfile::tempdir().unwrap();
    let definition = format!(
        "description = 'Orders.'\nmethod = 'POST'\nurl = '{}'\nallow_http = true\nallow_networks = ['127.0.0.1']\n\
         [headers]\nAuthorization = {{ secret = 'shop', prefix = 'Bearer ' }}\n\
         [parameters]\ntype = 'object'\nproperties.item.type = 'string'\n",
        server.url("/orders")
    );
    fs::write(folder.path().join("order.toml"), definition).unwrap();
    fs::write(folder.path().join("notes.md"), "not a tool").unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, format!("{SECRET}\n")).unwrap();

    let mock = MockModel::start(|request| match tool_results(request).len() {
        0 => Reply::call("a", "order", &json!({"item": "tea"})),
        1 => Reply::call(
            "b",
            "http_fetch",
            &json!({"url": "https://169.254.169.254/latest/meta-data/"}),
        ),
        _ => Reply::text("done"),
    });
    let mock = mock.await;
    let settings = [
        ("tools.directory", folder.path().to_str().unwrap()),
        ("tools.secrets.shop.file", secret.to_str().unwrap()),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent("buyer", json!({"model": "mock/m", "tools": ["order", "http_fetch"]}))
        .await;
    let result = app.run_with(json!({"agent": "buyer", "input": "go"})).await;
    assert_eq!(result["status"], "completed", "{result:#}");

    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    assert_eq!(request.body, r#"{"item":"tea"}"#);
    assert!(request.header("idempotency-key").is_some_and(|key| key.len() > 10));

    let requests = mock.requests();
    let results: Vec<String> = requests[2]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| content_text(&message["content"]))
        .collect();
    assert_eq!(results[0], r#"{"sent":"Bearer [secret]"}"#);
    assert_contains!(results[1], "the url can't be used: its address is not public");

    let run_id = result["run_id"].as_str().unwrap();
    let session_id = result["session_id"].as_str().unwrap();
    for path in [
        format!("/v1/runs/{run_id}/steps"),
        format!("/v1/runs/{run_id}"),
        format!("/v1/sessions/{session_id}"),
        format!("/v1/sessions/{session_id}/messages"),
    ] {
        let shown: Value = app.get(&path).await;
        assert!(!shown.to_string().contains("hunter2"), "{path}: {shown:#}");
    }
    assert!(!requests.iter().any(|request| request.to_string().contains("hunter2")));
    app.finish().await;
}

async fn a_long_response_is_in_a_file_of_the_session(database: TestDatabase) {
    let long = "word ".repeat(1_000);
    let body = long.clone();
    let server = RawServer::start(move |_| RawReply::new(200, &[("content-type", "text/plain")], body.clone())).await;
    let folder = tempfile::tempdir().unwrap();
    let definition = format!(
        "description = 'News.'\nmethod = 'GET'\nurl = '{}'\nallow_http = true\nallow_networks = ['127.0.0.1']\n",
        server.url("/news")
    );
    fs::write(folder.path().join("news.toml"), definition).unwrap();
    let mock = MockModel::start(
        |request| match request["messages"].as_array().unwrap().last().unwrap() {
            last if last["role"] == "tool" => Reply::text(&content_text(&last["content"])),
            _ => Reply::call("a", "news", &json!({})),
        },
    );
    let mock = mock.await;
    let settings = [
        ("tools.directory", folder.path().to_str().unwrap()),
        ("runs.max_tool_output_bytes", "1000"),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent("reader", json!({"model": "mock/m", "tools": ["news"]}))
        .await;
    let run = app.run_with(json!({"agent": "reader", "input": "go"})).await;
    let read = run["output_text"].as_str().unwrap();
    assert!(read.len() <= 1_000 && read.starts_with("word word"), "{read}");
    let (_, file) = read.split_once("is in the file ").unwrap();
    let (file, _) = file.split_once(" of the workspace").unwrap();
    assert!(file.starts_with(".agent/output/news-"), "{file}");
    let path = format!("/v1/sessions/{}/files/{file}", run["session_id"].as_str().unwrap());
    let stored = app.request(reqwest::Method::GET, &path).send().await.unwrap();
    assert_eq!(stored.text().await.unwrap(), long);
    app.finish().await;
}

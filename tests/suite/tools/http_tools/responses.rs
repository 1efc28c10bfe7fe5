//! Responses as the model reads them, and repeated requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::ports::Tool;
use serde_json::json;
use test_support::raw_server::{RawReply, RawServer};

use super::super::setup::call;
use super::tool;
use crate::support::text::assert_contains;

fn definition(method: &str, extra: &str) -> String {
    format!("name = 't'\ndescription = 'd'\nmethod = '{method}'\nurl = 'SERVER/'\n{extra}")
}

fn json_reply(text: &str) -> RawReply {
    RawReply::new(200, &[("content-type", "application/json")], text)
}

/// Calls a tool whose server replies with this.
async fn answered(reply: RawReply, extra: &str) -> Result<String, String> {
    let server = RawServer::start(move |_| reply.clone()).await;
    call(&tool(&definition("GET", extra), &server.url("")), &json!({})).await
}

#[tokio::test]
async fn the_model_reads_all_of_a_response_or_a_part() {
    let body = r#"{"data": {"items": [1, {"a": 2}], "text": "some \"text\""}, "b/c": null}"#;
    for (pointer, expected) in [
        ("", Ok(body)),
        (
            "response = ''",
            Ok(r#"{"b/c":null,"data":{"items":[1,{"a":2}],"text":"some \"text\""}}"#),
        ),
        ("response = '/data/items'", Ok(r#"[1,{"a":2}]"#)),
        ("response = '/data/items/1/a'", Ok("2")),
        ("response = '/data/text'", Ok("some \"text\"")),
        ("response = '/b~1c'", Ok("null")),
        (
            "response = '/data/none'",
            Err("HTTP 200 from 127.0.0.1, but the response has nothing at /data/none"),
        ),
    ] {
        let answer = answered(json_reply(body), pointer).await;
        match expected {
            Ok(expected) => assert_eq!(answer.as_deref(), Ok(expected), "{pointer}"),
            Err(expected) => assert_eq!(answer.unwrap_err(), format!("{expected}\n{body}")),
        }
    }
    let answer = answered(RawReply::new(204, &[], ""), "").await;
    assert_eq!(answer.unwrap(), "HTTP 204, without content");
    let answer = answered(RawReply::text("no json"), "response = '/a'").await;
    assert_eq!(
        answer.unwrap_err(),
        "HTTP 200 from 127.0.0.1, but the response is not valid JSON\nno json"
    );
    let answer = answered(RawReply::new(200, &[("content-type", "image/png")], [0; 9]), "").await;
    assert_eq!(
        answer.unwrap(),
        "[binary content of at least 9 bytes (image/png), which is not shown]"
    );
}

#[tokio::test]
async fn a_response_is_read_up_to_its_limit() {
    let large = "x".repeat(5_000);
    let answer = answered(RawReply::text(&large), "max_response_bytes = 2000")
        .await
        .unwrap();
    assert!(answer.starts_with("[only the first 2000 bytes of the response were read; ask for less]\nxxx"));
    assert_eq!(answer.matches('x').count(), 2_000);
    let limits = "max_response_bytes = 2000\nresponse = '/a'";
    let error = answered(json_reply(&format!("{{\"a\": \"{large}\"}}")), limits)
        .await
        .unwrap_err();
    assert_contains!(error, "but the response has more than 2000 bytes; ask for less\n");
    let endless = RawReply::bytes("HTTP/1.1 200 OK\r\n\r\n").then_repeat("x".repeat(1000));
    assert!(answered(endless, "max_response_bytes = 2000").await.is_ok());
}

#[tokio::test]
async fn an_error_has_the_status_and_the_beginning_of_the_body() {
    let reply = RawReply::new(
        422,
        &[("content-type", "application/json")],
        r#"{"error": "no such city"}"#,
    );
    let error = answered(reply, "response = '/data'").await.unwrap_err();
    assert_eq!(error, "HTTP 422 from 127.0.0.1\n{\"error\": \"no such city\"}");
    let error = answered(RawReply::new(500, &[], "x".repeat(9_000)), "max_retries = 0").await;
    assert!(error.unwrap_err().len() < 2_100);
    let redirect = RawReply::redirect(302, "/");
    let error = answered(redirect.clone(), "max_redirects = 0").await.unwrap_err();
    assert_eq!(error, "HTTP 302 (a redirect that is not followed) from 127.0.0.1\n");
    let error = answered(redirect, "max_redirects = 2").await.unwrap_err();
    assert_eq!(error, "no response from 127.0.0.1: it redirects more than 2 times");
    let away = RawReply::redirect(302, "http://169.254.169.254/");
    let error = answered(away, "").await.unwrap_err();
    assert_contains!(
        error,
        "it redirects to an address that is refused: its address is not public"
    );
}

#[tokio::test]
async fn silence_ends_at_the_timeout_of_the_call() {
    let begun = std::time::Instant::now();
    for reply in [
        RawReply::bytes("").then_hang(),
        RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc").then_hang(),
    ] {
        let error = answered(reply, "timeout = '100ms'").await.unwrap_err();
        assert!(error.contains("it did not answer in time"), "{error}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(30));
}

/// Starts a server that fails so often, and then succeeds.
async fn failing(times: usize, reply: RawReply) -> (RawServer, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let server = RawServer::start(move |_| {
        if count.fetch_add(1, Ordering::SeqCst) < times {
            reply.clone()
        } else {
            RawReply::text("at last")
        }
    });
    (server.await, requests)
}

async fn outcome(tool: &Arc<dyn Tool>) -> String {
    call(tool, &json!({})).await.unwrap_or_else(|error| error)
}

#[tokio::test]
async fn only_idempotent_requests_are_repeated() {
    let broken = RawReply::bytes("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc");
    for reply in [RawReply::new(503, &[], ""), RawReply::new(429, &[], ""), broken] {
        for (method, extra, expected) in [
            ("GET", "", 2),
            ("POST", "", 1),
            ("POST", "idempotent = true", 2),
            ("DELETE", "", 1),
            ("GET", "max_retries = 0", 1),
            ("GET", "idempotent = false", 1),
        ] {
            let (server, requests) = failing(1, reply.clone()).await;
            let tool = tool(&definition(method, extra), &server.url(""));
            let text = outcome(&tool).await;
            assert_eq!(requests.load(Ordering::SeqCst), expected, "{method} {extra}");
            assert_eq!(text == "at last", expected == 2, "{text}");
            // Each attempt has the same key.
            let keys: Vec<_> = server
                .requests()
                .iter()
                .map(|request| request.header("idempotency-key").map(str::to_owned))
                .collect();
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        }
    }
}

#[tokio::test]
async fn other_errors_are_not_repeated_and_retries_end() {
    for status in [400, 401, 404, 409, 422, 501] {
        let (server, requests) = failing(1, RawReply::new(status, &[], "")).await;
        outcome(&tool(&definition("GET", ""), &server.url(""))).await;
        assert_eq!(requests.load(Ordering::SeqCst), 1, "{status}");
    }
    let (server, requests) = failing(9, RawReply::new(503, &[], "down")).await;
    let text = outcome(&tool(&definition("GET", "max_retries = 1"), &server.url(""))).await;
    assert_eq!(text, "HTTP 503 from 127.0.0.1\ndown");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_wait_that_the_timeout_does_not_allow_is_not_begun() {
    let reply = RawReply::new(503, &[("retry-after", "3600")], "later");
    let (server, requests) = failing(9, reply).await;
    let begun = std::time::Instant::now();
    let text = outcome(&tool(&definition("GET", ""), &server.url(""))).await;
    assert_eq!(text, "HTTP 503 from 127.0.0.1\nlater");
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    assert!(begun.elapsed() < std::time::Duration::from_secs(30));
}

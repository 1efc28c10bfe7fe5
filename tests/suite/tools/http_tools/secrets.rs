//! Secrets go to the server, and nowhere else.

use serde_json::json;
use test_support::logs::CapturedLog;
use test_support::raw_server::{RawReply, RawServer};

use super::super::setup::call;
use super::{SECRET, tool};

const DEFINITION: &str = r#"
    name = "crm"
    description = "Reads customers."
    url = "SERVER/customers/{id}"
    timeout = "500ms"
    max_retries = 0
    [query]
    key = { secret = "main" }
    [headers]
    Authorization = { secret = "main", prefix = "Bearer " }
"#;

/// Whether a text has the secret, or a recognisable part of it.
fn has_secret(text: &str) -> bool {
    text.contains("s3cr3t")
}

#[tokio::test]
async fn a_secret_is_sent_in_headers_and_the_query() {
    let server = RawServer::start(|_| RawReply::text("ok")).await;
    let tool = tool(DEFINITION, &server.url(""));
    assert_eq!(call(&tool, &json!({"id": "7"})).await, Ok("ok".to_owned()));
    let request = &server.requests()[0];
    assert_eq!(request.line(), "GET /customers/7?key=s3cr3t%2Ft0ken%22%26");
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
}

#[tokio::test]
async fn no_result_no_error_and_no_log_shows_a_secret() {
    let (log, _listening) = CapturedLog::listening(tracing::Level::TRACE);
    let json = json!({"headers": {"authorization": format!("Bearer {SECRET}")}, "data": {"echo": SECRET}}).to_string();
    let line = "GET /customers/7?key=s3cr3t%2Ft0ken%22%26";
    for (status, body) in [
        (200, format!("you sent {SECRET}")),
        (200, json.clone()),
        (200, line.to_owned()),
        (401, json.clone()),
        (500, format!("{}{SECRET}", "x".repeat(1_995))),
    ] {
        let server = RawServer::start(move |_| RawReply::new(status, &[("content-type", "text/plain")], &body)).await;
        let tool = tool(DEFINITION, &server.url(""));
        let answer = call(&tool, &json!({"id": "7"})).await.unwrap_or_else(|error| error);
        assert!(answer.contains("[secret") || answer.len() > 1_000, "{answer}");
        assert!(!has_secret(&answer), "{answer}");
        assert!(!format!("{tool:?}").contains("s3cr3t"), "{tool:?}");
    }
    // Escapes that other encoders write.
    let units = SECRET.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
    let escaped = units.collect::<Vec<_>>().concat();
    for body in [
        format!(r#"{{"sent": "{}"}}"#, SECRET.replace('"', "\\\"").replace('/', "\\/")),
        format!(r#"{{"sent": "{escaped}"}}"#),
        format!("<p>{}</p>", SECRET.replace('"', "&quot;").replace('/', "&#x2F;")),
    ] {
        let server = RawServer::start(move |_| RawReply::text(&body)).await;
        let answer = call(&tool(DEFINITION, &server.url("")), &json!({"id": "7"}))
            .await
            .unwrap();
        assert!(answer.contains("[secret]") && answer.len() < 30, "{answer}");
    }
    // A part of a response.
    let body = json.clone();
    let server = RawServer::start(move |_| RawReply::new(200, &[], &body)).await;
    let part = format!("response = '/data/echo'\n{DEFINITION}");
    assert_eq!(
        call(&tool(&part, &server.url("")), &json!({"id": "7"})).await.unwrap(),
        "[secret]"
    );
    // A response that is cut within the secret.
    for room in 1..SECRET.len() {
        let body = format!("{}{SECRET}", "x".repeat(1_024 - room));
        let server = RawServer::start(move |_| RawReply::text(&body)).await;
        let cut = format!("max_response_bytes = 1024\n{DEFINITION}");
        let answer = call(&tool(&cut, &server.url("")), &json!({"id": "7"})).await.unwrap();
        assert!(!answer.contains("s3"), "{answer}");
    }
    // Requests without a response.
    for reply in [
        RawReply::bytes(""),
        RawReply::bytes("").then_hang(),
        RawReply::bytes(format!("HTTP/1.1 200 {SECRET}\r\nbroken header {SECRET}\r\n\r\n")),
        RawReply::redirect(302, &format!("http://127.0.0.2/?key={SECRET}")),
    ] {
        let server = RawServer::start(move |_| reply.clone()).await;
        let error = call(&tool(DEFINITION, &server.url("")), &json!({"id": "7"}))
            .await
            .unwrap_err();
        assert!(!has_secret(&error), "{error}");
    }
    let closed = RawServer::start(|_| RawReply::text("")).await;
    let address = closed.url("");
    drop(closed);
    let error = call(&tool(DEFINITION, &address), &json!({"id": "7"}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("no response from 127.0.0.1: ") && !has_secret(&error),
        "{error}"
    );

    let text = log.text();
    assert!(text.contains("a tool got no response over HTTP"), "{text}");
    let own: Vec<_> = text.lines().filter(|line| line.contains("agent_runtime")).collect();
    assert!(
        own.iter()
            .any(|line| line.contains("error=") && line.contains("host=\"127.0.0.1\"")),
        "{own:#?}"
    );
    assert!(
        !has_secret(&text),
        "{}",
        text.lines().find(|line| has_secret(line)).unwrap()
    );
}

#[tokio::test]
async fn a_secret_stays_at_its_origin() {
    let other = RawServer::start(|_| RawReply::text("elsewhere")).await;
    let to = other.url("/there");
    let server = RawServer::start(move |_| RawReply::redirect(302, &to)).await;
    let answer = call(&tool(DEFINITION, &server.url("")), &json!({"id": "7"})).await;
    assert_eq!(answer, Ok("elsewhere".to_owned()));
    let request = &other.requests()[0];
    assert!(!has_secret(&request.head), "{}", request.head);
}

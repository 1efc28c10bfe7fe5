//! Requests that are not HTTP/1.1, over raw sockets: each gets a problem and closes its connection.

use serde_json::Value;

use super::service::Service;
use crate::support::text::assert_contains;

const HEAD: &str = "HTTP/1.1\r\nhost: localhost\r\n";
const POST: &str = "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

/// Checks an answer after which the connection was closed.
fn assert_refused(request: &str, answer: &str, code: &str, status: u16) {
    let shown: String = request.chars().take(200).collect();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{shown:?}: {answer}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {answer}");
    let headers: Vec<_> = head.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        let mut values = headers.iter().filter(|(known, _)| *known == name);
        let value = values.next().map_or("", |(_, value)| *value);
        assert!(values.next().is_none(), "{shown:?}: {name} twice: {answer}");
        value
    };
    let problem: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{shown:?}: {answer}"));
    assert_eq!(problem["code"], code, "{shown:?}: {answer}");
    assert_eq!(problem["status"], status);
    assert_eq!(header("content-type"), "application/problem+json");
    assert_eq!(header("x-request-id"), problem["request_id"].as_str().unwrap());
    assert_eq!(header("content-length"), body.len().to_string());
    assert_eq!(header("connection"), "close", "{shown:?}: {answer}");
    assert!(header("date").ends_with(" GMT"), "{shown:?}: {answer}");
    assert_eq!(header("cache-control"), "no-store");
    assert!(problem["instance"].as_str().unwrap().starts_with('/'));
}

/// Requests that are never read to their end.
fn unreadable() -> Vec<(String, &'static str, u16)> {
    let many = "x: 1\r\n".repeat(300);
    let malformed = [
        "what is this\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "G=T / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET / HTTP/1.2\r\nhost: localhost\r\n\r\n".to_owned(),
        "GET / HTTP/3\r\nhost: localhost\r\n\r\n".to_owned(),
        // HTTP/0.9
        "GET /healthz\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{0}\u{1}\u{1}\r\n\r\n".to_owned(),
        format!("GET /v1/sessions?metadata={{\"a\":1}} {HEAD}\r\n"),
        format!("GET /v1/runs?agent=a b {HEAD}\r\n"),
        format!("GET / {HEAD}x\r\n\r\n"),
        format!("GET / {HEAD}x y: 1\r\n\r\n"),
        format!("GET / {HEAD}x : 1\r\n\r\n"),
        format!("GET / {HEAD}x: a\0b\r\n\r\n"),
        // A folded line
        format!("GET / {HEAD}x: a\r\n b\r\n\r\n"),
        format!("{POST}content-length: -1\r\n\r\n"),
        format!("{POST}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!("{POST}content-length: 2, 3\r\n\r\n{{}}"),
        format!("{POST}transfer-encoding: gzip\r\n\r\n"),
        format!("{POST}transfer-encoding: chunked, gzip\r\n\r\n"),
        "POST /v1/runs HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
    ];
    let malformed = malformed.map(|request| (request, "malformed_request", 400));
    let others = [
        (format!("GET / {HEAD}{many}\r\n"), "headers_too_large", 431),
        (
            format!("GET / {HEAD}x: {}\r\n\r\n", "a".repeat(500_000)),
            "headers_too_large",
            431,
        ),
        (format!("GET /{} {HEAD}\r\n", "a".repeat(500_000)), "uri_too_long", 414),
    ];
    malformed.into_iter().chain(others).collect()
}

/// Requests that are read, and refused by a layer or when their bodies are read.
fn unfit() -> Vec<(String, &'static str, u16)> {
    let malformed = [
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET / {HEAD}host: localhost\r\n\r\n"),
        "GET / HTTP/1.1\r\nhost: \r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nhost: a b\r\n\r\n".to_owned(),
        "GET /v1/runs HTTP/1.1\r\n\r\n".to_owned(),
    ];
    let malformed = malformed.map(|request| (request, "malformed_request", 400));
    let others = [
        (
            format!("{POST}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            "unsupported_transfer_encoding",
            501,
        ),
        (
            format!("{POST}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            "unsupported_transfer_encoding",
            501,
        ),
        // A body that is not what its headers say
        (
            format!("{POST}transfer-encoding: chunked\r\n\r\nzz\r\n"),
            "malformed_body",
            400,
        ),
        (
            format!("{POST}transfer-encoding: chunked\r\n\r\n2\r\n{{}}x"),
            "malformed_body",
            400,
        ),
        (
            format!("{POST}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            "malformed_body",
            400,
        ),
    ];
    malformed.into_iter().chain(others).collect()
}

#[tokio::test]
async fn a_request_that_can_not_be_read_is_answered_with_a_problem() {
    let service = Service::start().await;
    for (request, code, status) in unreadable().into_iter().chain(unfit()) {
        let answer = service.send_raw(request.as_bytes()).await;
        assert_refused(&request, &answer, code, status);
    }
    // A TLS handshake, and what is no text at all.
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\xff\xfe\r\n\r\n",
    ] {
        let answer = service.send_raw(bytes).await;
        assert_refused("bytes", &answer, "malformed_request", 400);
    }
    assert_eq!(service.counts().await, (0, 0));
    service.finish().await;
}

#[tokio::test]
async fn mistakes_are_reported() {
    let service = Service::start().await;
    for (request, words) in [
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
        ("GET /?a=\"b\" HTTP/1.1\r\nhost: localhost\r\n\r\n", "percent-encoded"),
        ("GET / HTTP/1.1\r\nx: a\0b\r\n\r\n", "header"),
        ("GET / HTTP/1.1\r\n\r\n", "host: the header is missing"),
    ] {
        let answer = service.send_raw(request.as_bytes()).await;
        assert!(answer.contains(words), "{request:?}: {answer}");
    }
    service.finish().await;
}

#[tokio::test]
async fn a_bad_request_behind_good_ones_is_refused_after_their_responses() {
    let service = Service::start().await;
    let good = format!("GET /healthz {HEAD}\r\n");
    let answers = service
        .send_raw(format!("{good}{good}what is this\r\n\r\n").as_bytes())
        .await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 3, "{answers}");
    let refused = &answers[answers.find("HTTP/1.1 400 ").unwrap()..];
    assert_refused("what is this", refused, "malformed_request", 400);

    let body = "{\"input\": \"hi\"}";
    let post = format!("{POST}content-length: {}\r\n\r\n{body}", body.len());
    let answers = service.send_raw(format!("{post}GET\r\n\r\n").as_bytes()).await;
    assert!(answers.starts_with("HTTP/1.1 200 OK"), "{answers}");
    assert!(answers.contains("echo: hi"), "{answers}");
    let refused = &answers[answers.find("HTTP/1.1 400 ").unwrap()..];
    assert_refused("GET", refused, "malformed_request", 400);
    service.finish().await;
}

/// The length is ignored, and nothing is read after such a request. So a proxy can't disagree with
/// the service about where it ends (RFC 9112, section 6.3).
#[tokio::test]
async fn a_length_beside_chunks_smuggles_nothing() {
    let service = Service::start().await;
    let body = "{\"input\": \"hi\"}";
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for lengths in [
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
    ] {
        let request = format!("{POST}{lengths}\r\n{chunked}GET /healthz {HEAD}\r\n");
        let answer = service.send_raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert_contains!(answer, "echo: hi", "connection: close");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
    service.finish().await;
}

#[tokio::test]
async fn targets_of_other_forms_are_answered_with_problems() {
    let service = Service::start().await;
    for (target, status, code) in [
        ("OPTIONS * ", 404, "route_not_found"),
        ("CONNECT localhost:80 ", 404, "route_not_found"),
        ("GET http://localhost/v1/runs/x ", 400, "malformed_id"),
        ("GET http://evil.example/v1/runs ", 403, "host_not_allowed"),
        ("BREW /v1/runs ", 405, "method_not_allowed"),
    ] {
        let answer = service
            .send_raw(format!("{target}{HEAD}connection: close\r\n\r\n").as_bytes())
            .await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{target}: {answer}");
    }
    // HTTP/1.0 knows no Host, and a probe may speak it.
    let answer = service.send_raw(b"GET /healthz HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
    service.finish().await;
}

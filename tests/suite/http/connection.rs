//! Connections and time: slow, silent, greedy and lost peers.

use std::time::{Duration, Instant};

use reqwest::{Method, header};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;

use super::service::Service;
use crate::support::answer::read;

/// A time limit that a test can wait for, and how the settings write it.
const SHORT: Duration = Duration::from_millis(200);
const SHORT_SETTING: &str = "200ms";

fn head(length: &str) -> String {
    format!("POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n")
}

/// Sends bytes and returns the answer when the service has closed the connection: not before the
/// short limit, and long before the usual ones. A machine that stands still in between has further
/// attempts.
async fn send_until_quick(service: &Service, bytes: &str, status: &str) -> String {
    let mut others = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let answer = service.send_raw(bytes.as_bytes()).await;
        let taken = begun.elapsed();
        assert!(taken >= SHORT, "{taken:?}: {answer}");
        if taken < Duration::from_secs(9) && answer.starts_with(&format!("HTTP/1.1 {status} ")) {
            return answer;
        }
        others.push((taken, answer));
    }
    panic!("not closed in time with {status}: {others:#?}");
}

#[tokio::test]
async fn headers_that_arrive_too_slowly_are_refused() {
    let service = Service::start_with(&[("http.header_timeout", SHORT_SETTING)]).await;
    let answer = send_until_quick(&service, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ", "408").await;
    assert!(answer.contains(r#""code":"request_timeout""#), "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let service = Service::start_with(&[("http.header_timeout", SHORT_SETTING)]).await;
    let answer = send_until_quick(&service, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", "200").await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn a_slow_body_is_a_problem() {
    let service = Service::start_with(&[("http.request_timeout", SHORT_SETTING)]).await;
    let answer = service
        .send_raw(format!("{}{{\"input\":", head("content-length: 1000")).as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains(r#""code":"request_timeout""#), "{answer}");
    assert_eq!(service.counts().await, (0, 0));
    service.finish().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_badly_encoded_is_a_problem() {
    let service = Service::start().await;
    let answer = service
        .send_raw(format!("{}zz\r\n", head("transfer-encoding: chunked")).as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains(r#""code":"malformed_body""#), "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused_unread() {
    let service = Service::start().await;
    let answer = service.send_raw(head("content-length: 104857600").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains(r#""code":"body_too_large""#), "{answer}");

    // The client sends all of it and still reads the answer.
    let body = reqwest::Body::from(vec![b' '; 100 * 1024 * 1024]);
    let request = service
        .request(Method::POST, "/v1/runs")
        .header(header::CONTENT_TYPE, "application/json");
    if let Ok(response) = request.body(body).send().await {
        assert_eq!(response.status(), 413);
    }
    service.finish().await;
}

#[tokio::test]
async fn chunks_are_counted_and_the_client_reads_the_answer() {
    let service = Service::start_with(&[("http.max_body_bytes", "1048576")]).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    stream
        .write_all(head("transfer-encoding: chunked").as_bytes())
        .await
        .unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    // Twice the limit: more than is ever read, less than what closing throws away.
    for _ in 0..32 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains(r#""code":"body_too_large""#), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let service = Service::start().await;
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answers = service.send_raw(format!("{request}{request}{last}").as_bytes()).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    service.finish().await;
}

#[tokio::test]
async fn probes_are_answered_when_streams_have_taken_all_connections() {
    let service = Service::start_with(&[("http.max_connections", "2"), ("http.header_timeout", "1m")]).await;
    let body = json!({"input": "hi", "model": "mock/gated", "mode": "stream"});
    let streams = [service.open_run(&body).await, service.open_run(&body).await];
    service.gate.until_waiting(2).await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for _ in 0..3 {
        for path in ["/healthz", "/readyz"] {
            // A connection of the reserve serves one request.
            let answer = service.send_raw(get(path).as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            assert!(answer.contains("connection: close"), "{answer}");
        }
        let answer = service.send_raw(get("/v1/runs").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains(r#""code":"too_many_connections""#), "{answer}");
        assert!(answer.contains("retry-after: 1"), "{answer}");
    }
    drop(streams);
    service.until_free().await;
    service.finish().await;
}

#[tokio::test]
async fn probes_are_answered_when_silent_clients_have_also_taken_the_reserve() {
    let service = Service::start_with(&[("http.max_connections", "1"), ("http.header_timeout", "1m")]).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(service.address).await.unwrap());
    }
    let probe = service.send_raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let answer = tokio::time::timeout(Duration::from_mins(1), probe).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_disconnected() {
    let limits = [
        // The request itself takes long on a busy machine.
        ("http.request_timeout", "2s"),
        ("http.max_body_bytes", "67108864"),
        ("http.max_connections", "1"),
    ];
    let service = Service::start_with(&limits).await;
    let body = json!({"input": "x".repeat(10_000_000)});
    let mut stream = service.open_run(&body).await;
    service.until_counts((1, 1)).await;
    service.until_free().await;
    // The answer, which has the text twice, did not fit into the buffers of the connection.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.len() < 20_000_000, "{}", answer.len());
    service.finish().await;
}

#[tokio::test]
async fn a_head_request_has_no_body() {
    let service = Service::start().await;
    let answer = read(service.request(Method::HEAD, "/v1/runs/x")).await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (400, 0));
    service.finish().await;
}

#[tokio::test]
async fn a_peer_that_reads_too_slowly_is_disconnected() {
    // It never reads nothing for so long, and reads a fortieth of what it must.
    let limits = [
        ("http.request_timeout", "3s"),
        ("http.min_transfer_rate", "100000000"),
        ("http.max_body_bytes", "67108864"),
    ];
    let service = Service::start_with(&limits).await;
    let body = json!({"input": "x".repeat(12_000_000)});
    let mut stream = service.open_run(&body).await;
    service.until_counts((1, 1)).await;
    let mut pieces = tokio::time::interval(Duration::from_millis(20));
    // However long the answer has taken, it is not read faster for that.
    pieces.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut buffer, mut read) = (vec![0; 50_000], 0);
    loop {
        pieces.tick().await;
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(bytes) => read += bytes,
        }
    }
    // The answer has the text twice.
    assert!(read < 24_000_000, "{read}");
    service.finish().await;
}

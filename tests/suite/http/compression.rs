//! Large JSON is compressed for callers that accept it, and nothing else is.

use net::http_client::client_builder;
use reqwest::{Client, Method, header};
use serde_json::json;

use super::in_flight::{PAGE, history};
use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::test_app::{run_path, session_path};

on_every_store! {
    with &[("http.max_bytes_in_flight", "4194304")];
    large_json_is_compressed_as_the_caller_accepts,
    streams_files_and_small_json_are_sent_as_they_are,
}

/// The two codings.
const CODINGS: &str = "gzip, zstd";

/// A client that takes bodies as they are sent.
pub(super) fn client() -> Client {
    client_builder().unwrap().no_gzip().build().unwrap()
}

async fn get(service: &Service, client: &Client, path: &str, accepted: &str) -> Answer {
    let request = client.request(Method::GET, format!("http://{}{path}", service.address));
    read(request.header(header::ACCEPT_ENCODING, accepted)).await
}

/// Returns the body of a response, decompressed.
pub(super) fn decoded(answer: &Answer) -> Vec<u8> {
    match answer.header("content-encoding") {
        "gzip" => {
            let mut plain = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(&answer.body[..]), &mut plain).unwrap();
            plain
        }
        "zstd" => zstd::decode_all(&answer.body[..]).unwrap(),
        _ => answer.body.clone(),
    }
}

async fn large_json_is_compressed_as_the_caller_accepts(service: &Service) {
    let client = client();
    let metadata = json!({"text": "x".repeat(12_000)});
    let mut body = history(&[PAGE / 2]);
    body["context_state"] = json!({"metadata": metadata});
    let made = service.post("/v1/sessions", &body).await.ok();
    let messages = session_path(&made, "/messages");
    let states = session_path(&made, "?include=context_state");
    let run = service.run_with(json!({"input": "x".repeat(12_000)})).await;
    for path in [messages.as_str(), &states, "/v1/sessions", &run_path(&run, "")] {
        let plain = get(service, &client, path, "identity").await;
        assert_eq!((plain.status.as_u16(), plain.header("content-encoding")), (200, ""));
        assert_eq!(plain.header("vary"), "accept-encoding");
        for (accepted, coding) in [
            ("gzip", "gzip"),
            ("zstd", "zstd"),
            (CODINGS, "zstd"),
            ("gzip, zstd;q=0.1", "gzip"),
            ("br, deflate", ""),
            ("gzip;q=0", ""),
        ] {
            let answer = get(service, &client, path, accepted).await;
            assert_eq!(answer.header("content-encoding"), coding, "{path} {accepted}");
            assert_eq!(answer.header("vary"), "accept-encoding");
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(answer.header("content-length"), answer.body.len().to_string());
            assert!(
                coding.is_empty() || answer.body.len() * 2 < plain.body.len(),
                "{path} {accepted}"
            );
            assert!(decoded(&answer) == plain.body, "{path} {accepted}");
        }
    }
    // All of them together have more bytes than the tenant has room for.
    for _ in 0..10 {
        assert_eq!(get(service, &client, &messages, CODINGS).await.status, 200);
    }
    // The tag of a compressed body is weak, and still names the session.
    let [plain, compressed] = ["identity", CODINGS].map(|accepted| get(service, &client, &states, accepted));
    let (plain, compressed) = tokio::join!(plain, compressed);
    let tag = compressed.header("etag");
    assert_eq!(tag, format!("W/{}", plain.header("etag")));
    let request = service.request(Method::GET, &states).header(header::IF_NONE_MATCH, tag);
    assert_eq!(read(request).await.status, 304);
}

async fn streams_files_and_small_json_are_sent_as_they_are(service: &Service) {
    let client = client();
    let file = json!({"text": "x".repeat(20_000)}).to_string();
    let changes = json!({"changes": [{"path": "a.json", "content": file}]});
    let made = service.post("/v1/sessions", &history(&[20_000])).await.ok();
    let made = service.post(&session_path(&made, "/files"), &changes).await.ok();
    let run = service.run_with(json!({"input": "x".repeat(20_000)})).await;
    for path in [
        session_path(&made, ""),
        session_path(&made, "/messages?pretty"),
        session_path(&made, "/files/a.json"),
        session_path(&made, "/archive"),
        run_path(&run, "/events"),
        "/v1/me".to_owned(),
        "/v1/runs/x".to_owned(),
    ] {
        let [plain, answer] = ["identity", CODINGS].map(|accepted| get(service, &client, &path, accepted));
        let (plain, answer) = tokio::join!(plain, answer);
        assert_eq!(answer.header("content-encoding"), "", "{path}");
        assert_eq!(answer.header("etag"), plain.header("etag"), "{path}");
        // A problem names its request.
        assert!(!answer.status.is_success() || answer.body == plain.body, "{path}");
    }
    let request = client.request(Method::POST, format!("http://{}/v1/runs", service.address));
    let body = json!({"input": "x".repeat(20_000), "mode": "stream"});
    let streamed = read(with_json(request.header(header::ACCEPT_ENCODING, CODINGS), &body)).await;
    assert_eq!(streamed.header("content-encoding"), "");
    assert!(streamed.text().contains("event: run.completed"));
}

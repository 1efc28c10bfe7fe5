//! Headers that can't be used: each is a problem that names it, and nothing happens.

use reqwest::{Method, header};
use serde_json::json;

use super::service::Service;
use crate::support::answer::{read, with_json};

const ID: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

#[tokio::test]
async fn keys_that_are_none_are_refused_by_every_post() {
    let service = Service::start().await;
    let posts = [
        ("/v1/runs".to_owned(), Some(json!({"input": "hi"}))),
        ("/v1/sessions".to_owned(), Some(json!({}))),
        (format!("/v1/runs/{ID}/stop"), None),
        (format!("/v1/runs/{ID}/cancel"), None),
        (format!("/v1/webhooks/deliveries/{ID}/redeliver"), None),
        (format!("/v1/runs/{ID}/steer"), Some(json!({"id": "1", "input": "hi"}))),
    ];
    let long = "k".repeat(256);
    for (path, body) in &posts {
        for keys in [&[""][..], &["two words"], &["caf\u{e9}"], &[&long], &["a", "a"]] {
            let request = service.request(Method::POST, path);
            let request = keys
                .iter()
                .fold(request, |request, key| request.header("idempotency-key", *key));
            let answer = read(match body {
                Some(body) => with_json(request, body),
                None => request,
            })
            .await;
            answer.assert_problem("invalid_header");
            assert_eq!(
                answer.json()["errors"][0]["pointer"],
                "idempotency-key",
                "{path} {keys:?}"
            );
        }
    }
    assert_eq!(service.counts().await, (0, 0));
    service.finish().await;
}

#[tokio::test]
async fn a_number_of_an_event_is_a_number() {
    let service = Service::start().await;
    for value in ["", "seven", "-1", "+1", "1.5", "99999999999999999999"] {
        let request = service.request(Method::GET, &format!("/v1/runs/{ID}/events"));
        let answer = read(request.header("last-event-id", value)).await;
        answer.assert_problem("invalid_header");
        assert_eq!(answer.json()["errors"][0]["pointer"], "last-event-id", "{value}");
    }
    service.finish().await;
}

#[tokio::test]
async fn a_thread_is_made_on_no_other_condition_than_that_it_is_new() {
    let service = Service::start().await;
    let session = service.run_with(json!({"input": "hi"})).await["session_id"].clone();
    for (value, body) in [
        ("\"7\"", json!({"session_id": session})),
        ("*, \"7\"", json!({"session_id": session})),
        ("*", json!({"session_id": session, "expected_session_id": null})),
        ("*", json!({"session_id": session, "expected_session_id": ID})),
    ] {
        let request = service.request(Method::PUT, "/v1/threads/t");
        let answer = read(with_json(request.header(header::IF_NONE_MATCH, value), &body)).await;
        answer.assert_problem("invalid_header");
        assert_eq!(answer.json()["errors"][0]["pointer"], "if-none-match", "{value}");
    }
    service
        .try_get("/v1/threads/t")
        .await
        .assert_problem("thread_not_found");
    service.finish().await;
}

#[tokio::test]
async fn preferences_that_are_not_known_are_ignored() {
    let service = Service::start().await;
    for value in ["wait=10", "return=minimal, x;y=\"respond-async\"", "\"", ","] {
        let request = service.request(Method::POST, "/v1/runs").header("prefer", value);
        let answer = read(with_json(request, &json!({"input": "hi"}))).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("preference-applied")),
            (200, ""),
            "{value}"
        );
        assert_eq!(answer.ok()["status"], "completed", "{value}");
    }
    service.finish().await;
}

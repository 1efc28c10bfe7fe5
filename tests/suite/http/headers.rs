//! Headers that can't be used: each is a problem that names it, and nothing happens.

use reqwest::{Method, header};
use serde_json::json;

use super::refused::assert_refused;
use super::routes::Route;
use super::service::{NOWHERE, Service};
use crate::support::answer::{read, with_json};

#[tokio::test]
async fn a_malformed_idempotency_key_is_refused() {
    let service = Service::start().await;
    let long = "k".repeat(256);
    for route in Route::all() {
        if !route.parameters("header").contains(&"Idempotency-Key") {
            continue;
        }
        for keys in [&[""][..], &["two words"], &["caf\u{e9}"], &[&long], &["a", "a"]] {
            let request = service.request(route.method.clone(), &route.path());
            let request = keys
                .iter()
                .fold(request, |request, key| request.header("idempotency-key", *key));
            let shown = format!("{} {keys:?}", route.path());
            assert_refused(request, "invalid_header", "idempotency-key", &shown).await;
        }
    }
    service.finish().await;
}

#[tokio::test]
async fn the_last_event_id_is_a_number() {
    let service = Service::start().await;
    for value in ["", "seven", "-1", "+1", "1.5", "99999999999999999999"] {
        let request = service.request(Method::GET, &format!("/v1/runs/{NOWHERE}/events"));
        assert_refused(
            request.header("last-event-id", value),
            "invalid_header",
            "last-event-id",
            value,
        )
        .await;
    }
    service.finish().await;
}

#[tokio::test]
async fn a_thread_takes_no_condition_but_that_it_is_new() {
    let service = Service::start().await;
    let session = service.run_with(json!({"input": "hi"})).await["session_id"].clone();
    for (value, body) in [
        ("\"7\"", json!({"session_id": session})),
        ("*, \"7\"", json!({"session_id": session})),
        ("*", json!({"session_id": session, "expected_session_id": null})),
        ("*", json!({"session_id": session, "expected_session_id": NOWHERE})),
    ] {
        let request = service.request(Method::PUT, "/v1/threads/t");
        let request = with_json(request.header(header::IF_NONE_MATCH, value), &body);
        assert_refused(request, "invalid_header", "if-none-match", value).await;
    }
    service
        .try_get("/v1/threads/t")
        .await
        .assert_problem("thread_not_found");
    service.finish().await;
}

#[tokio::test]
async fn unknown_preferences_are_ignored() {
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

//! Bodies of messages that steer runs, and of requests that need none.

use reqwest::Method;
use serde_json::json;

use crate::http::refused::assert_refused;
use crate::http::service::{NOWHERE, Service};
use crate::support::answer::read;
use crate::support::table::rows;

/// Bodies of messages, with the code and the pointer of their problem.
const BAD_MESSAGES: &str = r#"
empty_body        |                  |
malformed_json    |                  | {
missing_field     | /input           | {"id": "1"}
missing_field     | /id              | {"input": "hi"}
invalid_field     | /id              | {"id": 1, "input": "hi"}
invalid_field     | /id              | {"id": "", "input": "hi"}
invalid_field     | /id              | {"id": "a b", "input": "hi"}
invalid_field     | /id              | {"id": "caf\u00e9", "input": "hi"}
unknown_field     | /mode            | {"id": "1", "input": "hi", "mode": "sync"}
invalid_field     | /input           | {"id": "1", "input": []}
invalid_field     | /input           | {"id": "1", "input": 5}
too_many_messages | /input           | {"id": "1", "input": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}
invalid_field     | /input/0/role    | {"id": "1", "input": [{"role": "system", "content": "a"}]}
invalid_field     | /input/0/section | {"id": "1", "input": [{"role": "user", "section": "summary", "content": "a"}]}
invalid_field     | /input/0         | {"id": "1", "input": [{"type": "tool_call", "id": "c", "name": "t", "arguments": "{}"}]}
"#;

#[tokio::test]
async fn problems_of_a_body_come_before_those_of_the_query() {
    let service = Service::start().await;
    for path in [
        "/v1/runs".to_owned(),
        "/v1/sessions".to_owned(),
        format!("/v1/runs/{NOWHERE}/steer"),
        format!("/v1/runs/{NOWHERE}/stop"),
        format!("/v1/webhooks/deliveries/{NOWHERE}/redeliver"),
    ] {
        let request = service.send_json(Method::POST, &format!("{path}?x=1"), "{".to_owned());
        assert_refused(request, "malformed_json", "", &path).await;
    }
    for path in ["/v1/agents/a?x=1", "/v1/threads/t?x=1"] {
        let request = service.send_json(Method::PUT, path, "{".to_owned());
        assert_refused(request, "malformed_json", "", path).await;
    }
    service.finish().await;
}

#[tokio::test]
async fn a_steering_request_has_an_id_and_one_message_of_the_user() {
    let service = Service::start().await;
    let path = format!("/v1/runs/{NOWHERE}/steer");
    let long = json!({"id": "k".repeat(129), "input": "hi"}).to_string();
    for [code, pointer, body] in rows(BAD_MESSAGES).chain([["invalid_field", "/id", &long]]) {
        let request = service.send_json(Method::POST, &path, body.to_owned());
        assert_refused(request, code, pointer, body).await;
    }
    for input in [
        json!("hi"),
        json!([{"type": "text", "text": "hi"}]),
        json!([{"role": "user", "content": "hi"}]),
    ] {
        let answer = service
            .post(&path, &json!({"id": "k".repeat(128), "input": input}))
            .await;
        answer.assert_problem("run_not_found");
    }
    service.finish().await;
}

#[tokio::test]
async fn a_request_that_needs_no_body_takes_an_empty_object_and_nothing_else() {
    let service = Service::start().await;
    for action in ["stop", "cancel"] {
        for (body, code) in [
            ("", "run_not_found"),
            ("{}", "run_not_found"),
            (r#"{"reason": "late"}"#, "unknown_field"),
            ("stop it", "malformed_json"),
            ("[]", "invalid_field"),
        ] {
            let request = service.send_json(Method::POST, &format!("/v1/runs/{NOWHERE}/{action}"), body);
            let answer = read(request).await;
            assert_eq!(answer.code(), code, "{action} {body}: {}", answer.text());
            answer.assert_problem(code);
        }
        let untyped = service.request(Method::POST, &format!("/v1/runs/{NOWHERE}/{action}"));
        read(untyped.body("{}")).await.assert_problem("unsupported_media_type");
    }
    service.finish().await;
}

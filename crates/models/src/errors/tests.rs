//! Tests errors of all shapes and of all servers.

use agent::ports::ModelErrorClass as C;

use super::*;

fn error(status: u16, body: &[u8]) -> (C, String, bool) {
    let failure = error_of_response(status, None, body);
    assert_eq!(failure.error.status, Some(status));
    (failure.error.class, failure.error.message, failure.retryable)
}

#[test]
fn bodies_of_every_shape_give_their_message() {
    for (body, message) in [
        (r#"{"error": {"message": "m", "code": "c", "type": "t"}}"#, "m"),
        (
            r#"{"error": {"message": "m", "code": 400, "metadata": {"raw": "why", "provider_name": "P"}}}"#,
            "m: why",
        ),
        (r#"{"error": "m"}"#, "m"),
        (r#"{"message": "m"}"#, "m"),
        (r#"{"detail": "m"}"#, "m"),
        (r#"{"detail": [{"loc": ["body"], "msg": "m"}]}"#, "body: m"),
        (
            r#"[{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}]"#,
            "m",
        ),
        (
            r#"{"object": "error", "message": "m", "type": "BadRequestError", "code": 400}"#,
            "m",
        ),
        ("\"m\"", "m"),
        ("m", "m"),
        (
            "<html><body>Bad gateway</body></html>",
            "the provider answered with status 400",
        ),
        ("", "the provider answered with status 400"),
        ("{}", "the provider answered with status 400"),
        ("null", "the provider answered with status 400"),
        ("{\"error\": {\"message\": \"a\\u0000b\"}}", "a b"),
    ] {
        assert_eq!(
            error(400, body.as_bytes()),
            (C::Invalid, message.to_owned(), false),
            "{body}"
        );
    }
    assert_eq!(error(500, b"\xFF\xFE").1, "the provider answered with status 500");
}

#[test]
fn the_number_of_an_error_counts_after_its_name() {
    let class = |kind: &str| {
        let body = format!(r#"{{"error": {{"code": "1302", "type": "{kind}", "message": "m"}}}}"#);
        error(400, body.as_bytes()).0
    };
    assert_eq!(class("x"), C::RateLimit);
    assert_eq!(class("overloaded_error"), C::Overload);
}

#[test]
fn the_class_follows_the_words_and_then_the_status() {
    for (status, code, class, retryable) in [
        (400, "context_length_exceeded", C::Context, false),
        (
            400,
            "This model's maximum context length is 10 tokens",
            C::Context,
            false,
        ),
        (429, "insufficient_quota", C::RateLimit, false),
        (429, "rate_limit_exceeded", C::RateLimit, true),
        (413, "rate_limit_exceeded", C::RateLimit, false),
        (500, "overloaded_error", C::Overload, true),
        (400, "invalid_api_key", C::Auth, false),
        (401, "", C::Auth, false),
        (403, "", C::Auth, false),
        (402, "", C::RateLimit, false),
        (404, "model_not_found", C::Invalid, false),
        (408, "", C::Timeout, true),
        (409, "", C::Server, true),
        (422, "", C::Invalid, false),
        (429, "", C::RateLimit, true),
        (500, "", C::Server, true),
        (502, "", C::Server, true),
        (503, "", C::Overload, true),
        (504, "", C::Timeout, true),
        (529, "", C::Overload, true),
        (301, "", C::Protocol, false),
    ] {
        for body in [
            serde_json::json!({"error": {"message": code, "code": null}}),
            serde_json::json!({"error": {"message": "", "code": code}}),
            serde_json::json!({"error": {"type": code}}),
        ] {
            let (got, _, repeated) = error(status, body.to_string().as_bytes());
            assert_eq!((got, repeated), (class, retryable), "{status} {body}");
        }
    }
}

#[test]
fn huge_bodies_are_cut() {
    let body = serde_json::json!({"error": {"message": "é".repeat(1 << 20)}}).to_string();
    let failure = error_of_response(400, Some(Duration::from_secs(1)), body.as_bytes());
    assert_eq!(failure.error.message.chars().count(), MESSAGE_CHARS);
    assert!(failure.error.body.unwrap().len() <= BODY_BYTES);
    assert_eq!(failure.error.retry_after, Some(Duration::from_secs(1)));
}

#[test]
fn an_error_inside_a_completion_has_its_own_status() {
    let failure = error_of_frame(r#"{"error": {"code": 400, "message": "Unknown field"}}"#);
    assert_eq!(
        (failure.error.class, failure.error.status, failure.retryable),
        (C::Invalid, Some(400), false)
    );
    let failure = error_of_frame(r#"{"error": {"type": "server_error", "message": "later"}}"#);
    assert_eq!(
        (failure.error.class, failure.error.status, failure.retryable),
        (C::Server, None, true)
    );
    let failure = error_of_frame("upstream broke");
    assert_eq!(failure.error.message, "upstream broke");
}

#[test]
fn words_of_the_configuration_come_first() {
    let words = ErrorWords {
        context: vec!["Kein Platz".to_owned()],
        overload: vec!["E_FULL".to_owned()],
        ..ErrorWords::default()
    };
    let class = |status, body: &str| {
        let failure = reclassified(error_of_response(status, None, body.as_bytes()), &words);
        (failure.error.class, failure.retryable)
    };
    assert_eq!(class(500, r#"{"error": "kein platz mehr"}"#), (C::Context, false));
    assert_eq!(class(400, r#"{"fault": {"nr": "E_FULL"}}"#), (C::Overload, true));
    assert_eq!(class(400, r#"{"error": "other"}"#), (C::Invalid, false));
}

#[test]
fn a_sentence_about_another_length_is_not_about_the_context() {
    let is_context = |message: &str| {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        error(400, body.as_bytes()).0 == C::Context
    };
    for message in [
        "The image in the request is too large",
        "The prompt has too many images: the limit is 8",
        "max_tokens must be at most 4096",
        "Output token limit is 8192",
        "maximum output tokens exceeds context",
        "Invalid request: temperature must be <= 2",
        "The session token is too long",
        "CUDA out of memory while processing the prompt",
        "Too many tools in request: 200, the maximum is 128",
        "Request queue limit exceeded",
        "file exceeds the maximum size for context",
        "API token limit exceeded",
        "description too long",
        "Concurrent requests limit of prompts reached",
        "cache_control: too many blocks in prompt, maximum 4",
        "请求频率超过限制",
    ] {
        assert!(!is_context(message), "{message}");
    }
}

#[test]
fn the_field_that_an_error_names_is_too_long() {
    for (field, is_context) in [
        ("messages", true),
        ("messages[1].content", true),
        ("body.input", true),
        ("image", false),
        ("max_tokens", false),
        ("tools[0].function.description", false),
        ("input[3].call_id", false),
    ] {
        let error_body = serde_json::json!({"error": {"message": "It exceeds the context length.", "param": field}});
        let class = error(400, error_body.to_string().as_bytes()).0;
        assert_eq!(class == C::Context, is_context, "{field}");
    }
}

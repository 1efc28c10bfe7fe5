//! Responses over a real connection: the address, the headers, repeated attempts and errors.

use agent::ports::{ModelErrorClass, StructuredOutput};
use models::{ProviderKind, ProviderSettings};
use serde_json::json;
use test_support::model_server::{ModelServer, Reply};

use super::support::stream_text;
use crate::support::{ask, greeting, impatient, model_of, provider};

fn settings(base: String) -> ProviderSettings {
    ProviderSettings {
        kind: ProviderKind::OpenAiResponses,
        ..provider("test", base)
    }
}

fn events(events: &[serde_json::Value]) -> Reply {
    Reply::events(stream_text(events))
}

#[tokio::test]
async fn a_failed_attempt_is_repeated_until_something_was_passed_on() {
    let overloaded = json!({"type": "error", "code": "server_is_overloaded", "message": "later"});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "oops"},
                        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}});
    let hello = json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "hello"});
    let server = ModelServer::start(vec![
        events(&[overloaded]),
        events(&[json!({"type": "response.created", "response": {}}), failed.clone()]),
        events(&[]),
        events(&[hello, failed]),
    ])
    .await;
    let model = model_of(settings(server.url("/v1")), &impatient(5));
    assert_eq!(model.structured_output(), StructuredOutput::Native);
    let outcome = ask(model.as_ref(), greeting()).await;
    let error = outcome.end.as_ref().unwrap_err();
    assert_eq!(
        (outcome.texts().as_str(), error.class),
        ("hello", ModelErrorClass::Server)
    );
    assert_eq!(error.message, "oops");
    assert_eq!(outcome.tokens(), (10, 5), "each failed attempt counts");
    let captured = server.captured();
    assert_eq!(captured.len(), 4);
    for request in &captured {
        assert_eq!(
            (request.path.as_str(), request.json()["stream"].as_bool()),
            ("/v1/responses", Some(true))
        );
        assert_eq!(request.json(), captured[0].json());
    }
}

#[tokio::test]
async fn an_answer_that_comes_later_is_asked_for_once() {
    for status in ["queued", "in_progress"] {
        let body = json!({"id": "resp_1", "object": "response", "status": status, "background": true, "output": []});
        let server = ModelServer::start(vec![Reply::json(200, &body)]).await;
        let model = model_of(settings(server.url("/v1")), &impatient(4));
        let error = ask(model.as_ref(), greeting()).await.end.unwrap_err();
        assert_eq!(server.asked(), 1, "{status}: each attempt would be a paid job");
        assert_eq!(error.class, ModelErrorClass::Protocol, "{status}");
        assert_eq!(
            error.message,
            "the provider responds in the background, which is not supported"
        );
    }
}

#[tokio::test]
async fn a_refused_request_is_an_error_of_its_status() {
    for (status, code, class) in [
        (400, "invalid_encrypted_content", ModelErrorClass::Invalid),
        (400, "context_length_exceeded", ModelErrorClass::Context),
        (401, "invalid_api_key", ModelErrorClass::Auth),
        (404, "model_not_found", ModelErrorClass::Invalid),
    ] {
        let body = json!({"error": {"message": "no", "type": "invalid_request_error", "param": "input", "code": code}});
        let server = ModelServer::start(vec![Reply::json(status, &body)]).await;
        let model = model_of(settings(server.url("/v1/responses")), &impatient(5));
        let error = ask(model.as_ref(), greeting()).await.end.unwrap_err();
        assert_eq!(
            (error.class, error.status, error.message.as_str()),
            (class, Some(status), "no"),
            "{code}"
        );
        assert_eq!(server.captured()[0].path, "/v1/responses");
    }
}

//! Calls over a real socket: the key, repeats, errors, and a conversation that goes back and forth.

use std::sync::Arc;
use std::time::Duration;

use agent::ports::{Model, ModelErrorClass, StructuredOutput};
use models::{ClientSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::gemini_chunks::{chunk, last, stream_text};
use test_support::model_server::{Captured, ModelServer, Piece, Reply};
use values::message::ContentPart;

use crate::support::{answered, ask, greeting, impatient, model_of, provider, request, result, user};

fn client(server: &ModelServer, settings: &ClientSettings) -> Arc<dyn Model> {
    let provider = ProviderSettings {
        kind: ProviderKind::Gemini,
        ..provider("test", server.url(""))
    };
    model_of(provider, settings)
}

fn events(chunks: &[Value]) -> Reply {
    Reply::events(stream_text(chunks))
}

fn hello() -> Reply {
    events(&[chunk(&[json!({"text": "hel"})]), last(&[json!({"text": "lo"})], "STOP")])
}

fn failed(code: u16, status: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "status": status}})
}

#[tokio::test]
async fn the_key_stands_in_a_header_and_nowhere_else() {
    let server = ModelServer::start(vec![hello()]).await;
    let model = client(&server, &impatient(0));
    assert_eq!(model.structured_output(), StructuredOutput::Native);
    let outcome = ask(model.as_ref(), greeting()).await;
    assert_eq!(outcome.texts(), "hello");
    let captured = server.captured();
    let header = |name: &str| captured[0].headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(captured[0].path, "/v1beta/models/m:streamGenerateContent");
    assert_eq!(captured[0].query, "alt=sse");
    assert_eq!(header("x-goog-api-key"), Some("sk-test"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("authorization"), None);
}

#[tokio::test]
async fn what_may_pass_is_repeated_only_before_anything_was_passed_on() {
    let overloaded = failed(503, "UNAVAILABLE", "The model is overloaded.");
    let server = ModelServer::start(vec![
        Reply::json(503, &overloaded),
        events(&[last(&[], "MALFORMED_FUNCTION_CALL")]),
        events(&[json!({"usageMetadata": {"promptTokenCount": 5}}), overloaded.clone()]),
        events(&[chunk(&[])]).then(Piece::Abort),
        hello(),
    ])
    .await;
    let outcome = ask(client(&server, &impatient(4)).as_ref(), greeting()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hello", 5));

    let server = ModelServer::start(vec![events(&[chunk(&[json!({"text": "hel"})]), overloaded]), hello()]).await;
    let outcome = ask(client(&server, &impatient(4)).as_ref(), greeting()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hel", 1));
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::Overload);
}

#[tokio::test]
async fn answers_that_are_asked_for_again_count() {
    let lost = |mut chunk: Value| {
        chunk["usageMetadata"] = json!({"promptTokenCount": 10, "thoughtsTokenCount": 8_000});
        chunk
    };
    let lost = events(&[lost(chunk(&[])), lost(last(&[], "MALFORMED_FUNCTION_CALL"))]);
    let counted = |mut chunk: Value| {
        chunk["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 3});
        chunk
    };
    let answer = || events(&[counted(last(&[json!({"text": "hello"})], "STOP"))]);
    let server = ModelServer::start(vec![lost.clone(), lost.clone(), answer()]).await;
    let outcome = ask(client(&server, &impatient(4)).as_ref(), greeting()).await;
    assert_eq!(outcome.tokens(), (2 * 8_010 + 13, 2 * 8_010));
    assert_eq!(outcome.end.unwrap().usage.total_tokens, 13, "those of the answer alone");

    let server = ModelServer::start(vec![lost; 3]).await;
    let outcome = ask(client(&server, &impatient(2)).as_ref(), greeting()).await;
    assert_eq!(
        outcome.tokens(),
        (3 * 8_010, 2 * 8_010),
        "also where no attempt succeeds"
    );
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::Server);
}

#[tokio::test]
async fn errors_of_google_have_their_classes() {
    use ModelErrorClass as C;
    for (status, kind, message, class, attempts) in [
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", C::Invalid, 1),
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            C::Auth,
            1,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (2) exceeds the maximum number of tokens allowed (1).",
            C::Context,
            1,
        ),
        (403, "PERMISSION_DENIED", "no", C::Auth, 1),
        (404, "NOT_FOUND", "models/x is not found", C::Invalid, 1),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, see your billing.",
            C::RateLimit,
            1,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted.",
            C::RateLimit,
            2,
        ),
        (500, "INTERNAL", "An internal error has occurred.", C::Server, 2),
        (504, "DEADLINE_EXCEEDED", "too slow", C::Timeout, 2),
    ] {
        let body = failed(status, kind, message);
        for body in [body.clone(), json!([body])] {
            let replies = vec![Reply::json(status, &body); 2];
            let server = ModelServer::start(replies).await;
            let outcome = ask(client(&server, &impatient(1)).as_ref(), greeting()).await;
            let error = outcome.end.unwrap_err();
            assert_eq!((error.class, error.status), (class, Some(status)), "{body}");
            assert!(error.message.contains(message), "{}", error.message);
            assert_eq!(server.asked(), attempts, "{body}");
        }
    }
}

#[tokio::test]
async fn the_delay_that_a_body_names_is_honoured() {
    let limited = |delay: &str| {
        let mut body = failed(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.");
        body["error"]["details"] =
            json!([{"@type": "google.rpc.Help"}, {"@type": "google.rpc.RetryInfo", "retryDelay": delay}]);
        Reply::json(429, &body)
    };
    for (delay, waits, attempts) in [
        ("33.5s", Some(33_500), 2),
        ("-1s", None, 1),
        ("1e300s", None, 1),
        ("soon", None, 1),
    ] {
        let server = ModelServer::start(vec![limited(delay), limited(delay)]).await;
        let outcome = ask(client(&server, &impatient(1)).as_ref(), greeting()).await;
        let error = outcome.end.unwrap_err();
        assert_eq!(error.retry_after, waits.map(Duration::from_millis), "{delay}");
        assert_eq!(server.asked(), attempts, "{delay}");
    }
}

#[tokio::test]
async fn a_turn_of_several_steps_sends_everything_back() {
    let thought = json!({"text": "Look it up.", "thought": true});
    let first = json!({"functionCall": {"id": "f1", "name": "t", "args": {"n": 1}}, "thoughtSignature": "QUJD+/=="});
    let second = json!({"functionCall": {"id": "f2", "name": "t", "args": {"n": 2}}});
    let server = ModelServer::start(vec![
        events(&[
            chunk(std::slice::from_ref(&thought)),
            chunk(std::slice::from_ref(&first)),
            last(std::slice::from_ref(&second), "STOP"),
        ]),
        hello(),
    ])
    .await;
    let model = client(&server, &impatient(0));
    let mut messages = vec![user("hi")];
    let response = ask(model.as_ref(), request(messages.clone())).await.end.unwrap();
    messages.push(answered(&response));
    messages.extend(["f1", "f2"].map(|id| result(id, vec![ContentPart::text("ok")])));
    ask(model.as_ref(), request(messages)).await.end.unwrap();
    let sent: Vec<_> = server.captured().iter().map(Captured::json).collect();
    assert_eq!(
        sent[1]["contents"][1],
        json!({"role": "model", "parts": [thought, first, second]})
    );
    assert_eq!(sent[1]["contents"][2]["parts"].as_array().unwrap().len(), 2);
}

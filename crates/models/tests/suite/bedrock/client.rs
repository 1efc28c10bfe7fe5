//! Calls over a real socket: signatures, keys, repeats and errors.

use std::sync::Arc;

use agent::ports::{Model, ModelErrorClass, ModelRequest, StructuredOutput};
use models::{AwsCredentials, AwsSettings, ClientSettings, ProviderKind, ProviderSettings};
use serde_json::json;
use test_support::bedrock_frames::{event, exception, metadata, stop, stream_bytes, text_delta};
use test_support::model_server::{ModelServer, Reply};

use crate::support::{ask, greeting, impatient, model_of, provider};

const EVENTS: &str = "application/vnd.amazon.eventstream";

fn settings(server: &ModelServer) -> ProviderSettings {
    ProviderSettings {
        kind: ProviderKind::Bedrock,
        aws: AwsSettings {
            region: "eu-central-1".to_owned(),
            credentials: Some(AwsCredentials {
                access_key_id: "AKIDEXAMPLE".to_owned(),
                secret_access_key: "hidden-key".into(),
                session_token: Some("hidden-token".into()),
            }),
        },
        ..provider("test", server.url(""))
    }
}

fn signing(server: &ModelServer, client: &ClientSettings) -> Arc<dyn Model> {
    let settings = ProviderSettings {
        api_key: None,
        ..settings(server)
    };
    model_of(settings, client)
}

fn asked() -> ModelRequest {
    ModelRequest {
        model: "arn:aws:bedrock:x/m-v1:0".to_owned(),
        ..greeting()
    }
}

fn hello() -> Reply {
    Reply::new(
        200,
        EVENTS,
        stream_bytes(&[text_delta(0, "hello"), stop("end_turn"), metadata()]),
    )
}

#[tokio::test]
async fn each_attempt_is_signed_and_a_key_replaces_signatures() {
    let server = ModelServer::start(vec![Reply::json(503, &json!({"message": "Later."})), hello(), hello()]).await;
    let model = signing(&server, &impatient(1));
    assert_eq!(model.structured_output(), StructuredOutput::Tool);
    assert_eq!(ask(model.as_ref(), asked()).await.texts(), "hello");
    let captured = server.captured();
    assert_eq!(captured.len(), 2);
    for request in &captured {
        let header = |name: &str| request.headers.get(name).map_or("", |value| value.to_str().unwrap());
        assert_eq!(
            request.path,
            "/model/arn%3Aaws%3Abedrock%3Ax%2Fm-v1%3A0/converse-stream"
        );
        let day = &header("x-amz-date")[..8];
        let beginning = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="
        );
        assert!(
            header("authorization").starts_with(&beginning),
            "{}",
            header("authorization")
        );
        assert_eq!(header("x-amz-security-token"), "hidden-token");
        assert_eq!(header("content-type"), "application/json");
    }

    let model = model_of(settings(&server), &impatient(0));
    assert_eq!(ask(model.as_ref(), asked()).await.texts(), "hello");
    let with_key = server.captured().pop().unwrap();
    assert_eq!(with_key.headers["authorization"], "Bearer sk-test");
    assert!(!with_key.headers.contains_key("x-amz-date"));
}

#[tokio::test]
async fn errors_have_their_classes_and_repeat_no_secret() {
    use ModelErrorClass as C;
    for (status, message, class, attempts) in [
        (400, "The provided model identifier is invalid.", C::Invalid, 1),
        (400, "Input is too long for requested model.", C::Context, 1),
        (
            403,
            "The Canonical String was x-amz-security-token:hidden-token",
            C::Auth,
            1,
        ),
        (404, "no", C::Invalid, 1),
        (408, "slow", C::Timeout, 2),
        (424, "The model failed.", C::Server, 1),
        (
            429,
            "Too many tokens, please wait before trying again.",
            C::RateLimit,
            2,
        ),
        (500, "oops", C::Server, 2),
        (503, "later", C::Overload, 2),
    ] {
        let replies = vec![Reply::json(status, &json!({"message": message})); 2];
        let server = ModelServer::start(replies).await;
        let outcome = ask(signing(&server, &impatient(1)).as_ref(), asked()).await;
        let error = outcome.end.unwrap_err();
        assert_eq!((error.class, error.status), (class, Some(status)), "{message}");
        let shown = format!("{error:?}");
        assert!(
            !shown.contains("hidden-") && error.message.contains(&message[..2]),
            "{shown}"
        );
        assert_eq!(server.asked(), attempts, "{message}");
    }
}

#[tokio::test]
async fn an_exception_is_waited_out_only_before_anything_was_passed_on() {
    let throttled = exception("throttlingException", &json!({"message": "Slow down."}));
    let begun = [
        event(&json!({"messageStart": {"role": "assistant"}})),
        throttled.clone(),
    ]
    .concat();
    let broken = stream_bytes(&[stop("malformed_tool_use"), metadata()]);
    let server = ModelServer::start(vec![
        Reply::new(200, EVENTS, begun),
        Reply::new(200, EVENTS, broken),
        hello(),
    ])
    .await;
    let outcome = ask(signing(&server, &impatient(4)).as_ref(), asked()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hello", 3));
    assert_eq!(outcome.tokens(), (10, 5), "the broken answer and the whole one");

    let half = [event(&text_delta(0, "hel")), throttled].concat();
    let server = ModelServer::start(vec![Reply::new(200, EVENTS, half), hello()]).await;
    let outcome = ask(signing(&server, &impatient(4)).as_ref(), asked()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hel", 1));
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::RateLimit);
}

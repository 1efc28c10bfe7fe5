//! The client on a real network: headers, timeouts, retries, lost connections, redirects.

use std::collections::BTreeMap;
use std::time::Duration;

use agent::ports::{ModelError, ModelErrorClass};
use futures_util::StreamExt as _;
use models::{ClientSettings, ProviderSettings, RetrySettings, TimeoutSettings};
use serde_json::json;
use test_support::model_server::{ModelServer, Piece, Reply};
use test_support::ports::RefusingAddress;
use tokio::net::TcpListener;
use values::message::ContentPart;

use super::support::{
    Outcome, answered, ask, client, generated_id, greeting, impatient, model_of, provider, request, result, said, user,
};

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn hello() -> Reply {
    Reply::events(format!("{HELLO}{END}"))
}

fn with_timeouts(change: impl FnOnce(&mut TimeoutSettings)) -> ClientSettings {
    let mut settings = impatient(0);
    change(&mut settings.timeouts);
    settings
}

async fn ask_server(server: &ModelServer, settings: &ClientSettings) -> Outcome {
    let model = client(server, settings);
    let asked = ask(model.as_ref(), greeting());
    tokio::time::timeout(Duration::from_secs(20), asked)
        .await
        .expect("an answer in time")
}

fn failure(outcome: &Outcome) -> (ModelErrorClass, &str) {
    let error = outcome.end.as_ref().unwrap_err();
    (error.class, error.message.as_str())
}

#[tokio::test]
async fn a_request_carries_the_key_and_the_headers() {
    let server = ModelServer::start(vec![hello()]).await;
    let settings = ProviderSettings {
        headers: BTreeMap::from([("X-Title".to_owned(), "runtime".into())]),
        ..provider("test", server.url("/api/v1/"))
    };
    let outcome = ask(model_of(settings, &impatient(0)).as_ref(), greeting()).await;
    assert_eq!(outcome.texts(), "hello");
    let captured = &server.captured()[0];
    assert_eq!(captured.path, "/api/v1/chat/completions");
    for (name, value) in [
        ("authorization", "Bearer sk-test"),
        ("x-title", "runtime"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    ] {
        assert_eq!(captured.headers[name], value);
    }
    let expected = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true,
        "stream_options": {"include_usage": true}});
    assert_eq!(captured.json(), expected);
}

#[tokio::test]
async fn a_large_request_arrives_whole_and_with_its_length() {
    let server = ModelServer::start(vec![hello()]).await;
    let words = "0123456789".repeat(100_000);
    let outcome = ask(client(&server, &impatient(0)).as_ref(), request(vec![user(&words)])).await;
    assert_eq!(outcome.texts(), "hello");
    let captured = &server.captured()[0];
    assert_eq!(captured.json()["messages"][0]["content"], words);
    assert_eq!(captured.headers["content-length"], captured.body.len().to_string());
    assert!(!captured.headers.contains_key("transfer-encoding"));
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = ModelServer::start(vec![hello()]).await;
    let settings = ProviderSettings {
        api_key: None,
        ..provider("test", server.url("/v1"))
    };
    ask(model_of(settings, &impatient(0)).as_ref(), greeting())
        .await
        .end
        .unwrap();
    assert!(!server.captured()[0].headers.contains_key("authorization"));
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = ModelServer::start(vec![hello()]).await;
    drop(client(&server, &impatient(0)).stream(greeting()));
    tokio::task::yield_now().await;
    assert!(server.captured().is_empty());
}

#[tokio::test]
async fn the_first_words_come_before_the_last_are_sent() {
    let server = ModelServer::start(vec![Reply::events(HELLO).then(Piece::Hang)]).await;
    let mut stream = client(&server, &impatient(0)).stream(greeting());
    let first = tokio::time::timeout(Duration::from_secs(10), stream.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(first, said("hello"));
}

#[tokio::test]
async fn connecting_takes_no_longer_than_allowed() {
    // The listener takes the connection and never shakes hands.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = with_timeouts(|timeouts| timeouts.connect = Duration::from_millis(100));
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let outcome = ask(model_of(provider("test", url), &settings).as_ref(), greeting()).await;
    let expected = (ModelErrorClass::Timeout, "the provider could not be reached in time");
    assert_eq!(failure(&outcome), expected);
}

#[tokio::test]
async fn the_first_byte_comes_in_time_or_never() {
    let settings = with_timeouts(|timeouts| timeouts.first_byte = Duration::from_millis(100));
    let expected = (
        ModelErrorClass::Timeout,
        "the provider did not begin its response in time",
    );
    let only_headers = Reply {
        pieces: vec![Piece::Hang],
        ..hello()
    };
    let server = ModelServer::start(vec![only_headers]).await;
    assert_eq!(failure(&ask_server(&server, &settings).await), expected);
    // A listener that takes the connection and says nothing at all.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let outcome = ask(model_of(provider("test", url), &settings).as_ref(), greeting()).await;
    assert_eq!(failure(&outcome), expected);
}

#[tokio::test]
async fn silence_in_the_middle_is_bounded() {
    let settings = with_timeouts(|timeouts| timeouts.idle = Duration::from_millis(100));
    let server = ModelServer::start(vec![Reply::events(HELLO).then(Piece::Hang)]).await;
    let outcome = ask_server(&server, &settings).await;
    let expected = (
        ModelErrorClass::Timeout,
        "the provider stopped sending in the middle of its response",
    );
    assert_eq!((outcome.texts().as_str(), failure(&outcome)), ("hello", expected));
}

#[tokio::test]
async fn a_whole_answer_is_bounded_even_if_it_never_falls_silent() {
    let settings = with_timeouts(|timeouts| timeouts.total = Duration::from_millis(200));
    let endless = (0..1_000).fold(Reply::events(HELLO), |reply, _| {
        reply
            .then(Piece::Wait(Duration::from_millis(10)))
            .then(Piece::Bytes(b": still here\n\n".to_vec()))
    });
    let server = ModelServer::start(vec![endless]).await;
    let expected = (
        ModelErrorClass::Timeout,
        "the provider did not finish its response in time",
    );
    assert_eq!(failure(&ask_server(&server, &settings).await), expected);
}

#[tokio::test]
async fn failures_before_the_first_event_are_repeated() {
    let failing = vec![
        Reply::json(408, &json!({})),
        Reply::json(409, &json!({"error": "conflict"})),
        Reply::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "0"),
        Reply::new(502, "text/html", "<html>"),
        Reply::json(529, &json!({"error": {"message": "busy"}})),
        Reply::events("").then(Piece::Abort),
        Reply::events(": keep-alive\n\n"),
        Reply::events("data: {\"error\": {\"code\": 503, \"message\": \"later\"}}\n\n"),
    ];
    let count = failing.len();
    let server = ModelServer::start(failing.into_iter().chain([hello()]).collect()).await;
    let outcome = ask_server(&server, &impatient(u32::try_from(count).unwrap())).await;
    assert_eq!(outcome.end.unwrap().content.len(), 1);
    let captured = server.captured();
    assert_eq!(captured.len(), count + 1);
    assert!(
        captured.iter().all(|request| request.body == captured[0].body),
        "each attempt sends the same bytes"
    );
}

#[tokio::test]
async fn attempts_are_bounded_and_the_last_error_is_reported() {
    let server = ModelServer::start(vec![]).await;
    let outcome = ask_server(&server, &impatient(2)).await;
    assert_eq!(failure(&outcome), (ModelErrorClass::Server, "no reply is left"));
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let busy = Reply::json(429, &json!({})).header("retry-after-ms", "150");
    let server = ModelServer::start(vec![busy, hello()]).await;
    let mut settings = impatient(1);
    settings.retries = RetrySettings {
        max_delay: Duration::from_secs(5),
        ..settings.retries
    };
    let start = std::time::Instant::now();
    ask_server(&server, &settings).await.end.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn other_failures_are_not_repeated() {
    use ModelErrorClass as C;
    for (reply, class) in [
        (Reply::json(400, &json!({"error": {"message": "no"}})), C::Invalid),
        (Reply::json(401, &json!({"error": {"message": "no"}})), C::Auth),
        (
            Reply::json(429, &json!({"error": {"message": "no", "code": "insufficient_quota"}})),
            C::RateLimit,
        ),
        (Reply::new(200, "text/html", "<html>"), C::Protocol),
    ] {
        let server = ModelServer::start(vec![reply, hello()]).await;
        assert_eq!(failure(&ask_server(&server, &impatient(3)).await).0, class);
        assert_eq!(server.asked(), 1, "{class:?}");
    }
}

#[tokio::test]
async fn nothing_is_repeated_after_output_was_passed_on() {
    let lost = Reply::events(HELLO)
        .then(Piece::Wait(Duration::from_millis(50)))
        .then(Piece::Abort);
    for (reply, class) in [
        (lost, ModelErrorClass::Network),
        (Reply::events(HELLO), ModelErrorClass::Truncated),
        (
            Reply::events(format!("{HELLO}data: {{\"error\": {{\"code\": 500}}}}\n\n")),
            ModelErrorClass::Server,
        ),
    ] {
        let server = ModelServer::start(vec![reply, hello()]).await;
        let outcome = ask_server(&server, &impatient(3)).await;
        assert_eq!((outcome.texts().as_str(), failure(&outcome).0), ("hello", class));
        assert_eq!(server.asked(), 1, "{class:?}");
    }
}

#[tokio::test]
async fn a_connection_lost_after_the_reason_for_the_end_loses_nothing() {
    let finish = END.replace("data: [DONE]\n\n", "");
    let reply = Reply::events(format!("{HELLO}{finish}"))
        .then(Piece::Wait(Duration::from_millis(50)))
        .then(Piece::Abort);
    let server = ModelServer::start(vec![reply]).await;
    assert_eq!(ask_server(&server, &impatient(0)).await.end.unwrap().content.len(), 1);
}

/// Asks a provider at the address. Were an attempt repeated, the pause before it would be too long
/// for the test.
async fn ask_at(url: String, name: &str) -> ModelError {
    let mut settings = ClientSettings::default();
    settings.retries.max_retries = 100;
    settings.retries.base_delay = Duration::from_hours(100);
    settings.retries.max_delay = Duration::from_hours(100);
    let model = model_of(provider(name, url), &settings);
    let asked = ask(model.as_ref(), greeting());
    let outcome = tokio::time::timeout(Duration::from_mins(1), asked).await;
    outcome.expect("no pause before another attempt").end.unwrap_err()
}

#[tokio::test]
async fn an_unreachable_provider_is_reported_at_once_with_its_name_its_host_and_the_cause() {
    let nobody = RefusingAddress::new();
    let refusing = format!("http://{}", nobody.address());
    let plain = ModelServer::start(vec![]).await;
    let not_tls = plain.url("").replace("http:", "https:");
    // No host can have a name like this, so that no server of names has to say so.
    let unknown = format!("http://{}.invalid", "a".repeat(64));
    for (host, cause) in [
        (refusing, "the connection was refused"),
        (unknown, "its host is not known"),
        (
            not_tls,
            "it does not speak TLS as expected, or its certificate is not trusted",
        ),
    ] {
        let error = ask_at(format!("{host}/base?secret=1"), "here").await;
        assert_eq!(error.class, ModelErrorClass::Network, "{host}");
        let message = error.to_agent_error(&"here/m".parse().unwrap()).message;
        let expected = format!("the provider can't be reached: {cause} (provider here at {host})");
        assert_eq!(message, expected);
        assert!(error.source.is_some(), "the log has the causes");
        let address = error.address.unwrap();
        assert_eq!(
            address.url,
            format!("{host}/base/chat/completions"),
            "without the query"
        );
    }
}

#[tokio::test]
async fn a_wrong_provider_is_reported_with_its_status() {
    for (status, body, words) in [
        (404, json!({"error": {"message": "no such model"}}), "no such model"),
        (401, json!({"error": {"message": "bad key sk-test"}}), "bad key [key]"),
        (404, json!({}), "the provider answered with status 404"),
    ] {
        let server = ModelServer::start(vec![Reply::json(status, &body)]).await;
        let error = ask_at(server.url("/v1?secret=1"), "here").await;
        let message = error.to_agent_error(&"here/m".parse().unwrap()).message;
        let host = server.url("");
        assert_eq!(message, format!("{words} (provider here at {host}, status {status})"));
        assert_eq!(server.asked(), 1);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = ModelServer::start(vec![hello()]).await;
    let away = Reply::new(307, "text/plain", "").header("location", &elsewhere.url("/v1/chat/completions"));
    let server = ModelServer::start(vec![away]).await;
    let outcome = ask_server(&server, &impatient(0)).await;
    let expected = (ModelErrorClass::Protocol, "the provider answered with status 307");
    assert_eq!(failure(&outcome), expected);
    assert!(elsewhere.captured().is_empty());
}

#[tokio::test]
async fn a_key_in_a_complaint_is_hidden() {
    let server = ModelServer::start(vec![Reply::json(
        401,
        &json!({"error": {"message": "bad key sk-test"}}),
    )])
    .await;
    let outcome = ask_server(&server, &impatient(0)).await;
    let error = outcome.end.unwrap_err();
    assert_eq!(error.message, "bad key [key]");
    assert!(!format!("{error:?}").contains("sk-test"));
}

#[tokio::test]
async fn a_huge_error_body_is_read_no_further_than_needed() {
    let endless = (0..10_000).fold(Reply::new(500, "text/plain", ""), |reply, _| {
        reply.then(Piece::Bytes(vec![b'x'; 10_000]))
    });
    let server = ModelServer::start(vec![endless.then(Piece::Hang)]).await;
    let error = ask_server(&server, &impatient(0)).await.end.unwrap_err();
    assert_eq!((error.class, error.message.len()), (ModelErrorClass::Server, 1_000));
    assert!(error.body.unwrap().len() <= 4_096);
}

#[tokio::test]
async fn a_plain_answer_becomes_the_same_events() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let server = ModelServer::start(vec![Reply::json(200, &body), hello()]).await;
    let settings = ProviderSettings {
        stream: false,
        ..provider("test", server.url("/v1"))
    };
    let model = model_of(settings, &impatient(0));
    for _ in 0..2 {
        assert_eq!(ask(model.as_ref(), greeting()).await.texts(), "hello");
    }
    let captured = server.captured();
    assert_eq!(captured[0].json()["stream"], false);
    assert_eq!(captured[0].json().get("stream_options"), None);
}

#[tokio::test]
async fn calls_share_a_connection() {
    let server = ModelServer::start(vec![hello().in_pieces(40), hello(), hello()]).await;
    let model = client(&server, &impatient(0));
    for _ in 0..3 {
        ask(model.as_ref(), greeting()).await.end.unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_conversation_goes_back_and_forth() {
    let first = json!({"choices": [{"finish_reason": "tool_calls", "message": {"reasoning": "hm", "tool_calls": [
        {"function": {"name": "t", "arguments": "{\"x\": 1}"}}, {"function": {"name": "t", "arguments": "{"}}]}}]});
    let server = ModelServer::start(vec![Reply::json(200, &first), hello()]).await;
    let model = client(&server, &impatient(0));
    let outcome = ask(model.as_ref(), greeting()).await;
    let mut history = vec![user("hi"), answered(&outcome.end.unwrap())];
    history.extend([1, 2].map(|n| result(&generated_id(n), vec![ContentPart::text("r")])));
    ask(model.as_ref(), request(history)).await.end.unwrap();
    let call = |n, arguments: &str| json!({"id": generated_id(n), "type": "function", "function": {"name": "t", "arguments": arguments}});
    let calls = json!([call(1, "{\"x\": 1}"), call(2, "{\"invalid_json\":\"{\"}")]);
    let expected = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": calls},
        {"role": "tool", "tool_call_id": generated_id(1), "content": "r"},
        {"role": "tool", "tool_call_id": generated_id(2), "content": "r"},
    ]);
    assert_eq!(server.captured()[1].json()["messages"], expected);
}

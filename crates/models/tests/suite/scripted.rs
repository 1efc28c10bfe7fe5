//! The scripted model: turns, placeholders, time, failures, and the demo that is built in.

use std::sync::Arc;
use std::time::Duration;

use agent::ports::{ModelErrorClass, ModelEvent, ModelRequest};
use agent::state::FinishReason;
use models::{Script, Scripted};
use test_support::wires::Counted;
use values::message::ContentPart;

use super::support::{answered, ask, generated_id, request, result, says, usage, user};

fn model(text: &str) -> Scripted {
    Scripted::new(Script::parse("test", text).unwrap(), Arc::new(Counted::default()))
}

fn demo() -> Scripted {
    Scripted::new(Script::demo().unwrap(), Arc::new(Counted::default()))
}

#[tokio::test]
async fn the_demo_calls_the_calculator_and_remembers() {
    let model = demo();
    let first = ask(&model, request(vec![user("What is 12 * (3 + 4)?")])).await;
    let response = first.end.as_ref().unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let call = (
        generated_id(1),
        "calculator".to_owned(),
        r#"{"expression":"12 * (3 + 4)"}"#.to_owned(),
    );
    assert_eq!(first.calls(), [call]);

    let mut history = vec![user("What is 12 * (3 + 4)?"), answered(response)];
    history.push(result(&generated_id(1), vec![ContentPart::text("84")]));
    let second = ask(&model, request(history.clone())).await;
    let expected = "The calculator says: 12 * (3 + 4) = 84. I have seen 1 message(s) of yours in this conversation; the first was: \
                    What is 12 * (3 + 4)?";
    assert_eq!(second.texts(), expected);
    assert!(second.events.len() > 5, "the text comes in pieces");

    history.extend([says(expected), user("And 2+2?")]);
    let third = ask(&model, request(history.clone())).await;
    assert_eq!(third.calls()[0].2, r#"{"expression":"2+2"}"#);
    history.push(answered(&third.end.unwrap()));
    history.push(result("c", vec![ContentPart::text("4")]));
    let fourth = ask(&model, request(history)).await.texts();
    assert!(
        fourth.contains("2+2 = 4. I have seen 2 message(s)") && fourth.ends_with("What is 12 * (3 + 4)?"),
        "{fourth}"
    );
}

#[tokio::test]
async fn an_answer_depends_on_the_request_alone() {
    let model = model(
        "[[turn]]\nstep = 0\ntext = 'first {{input}}'\n[[turn]]\nstep = 1\ntext = 'second {{tool_result}}'\n\
         usage = { input_tokens = 3, output_tokens = 2 }\nfinish_reason = 'length'",
    );
    let early = request(vec![user("a")]);
    let late = request(vec![user("a"), says("x"), result("c", vec![ContentPart::text("r")])]);
    for _ in 0..2 {
        assert_eq!(ask(&model, early.clone()).await.texts(), "first a");
        let outcome = ask(&model, late.clone()).await;
        assert_eq!(outcome.texts(), "second r");
        let response = outcome.end.unwrap();
        let usage = usage(3, 2);
        assert_eq!((response.usage, response.finish_reason), (usage, FinishReason::Length));
    }
    let outcome = ask(&model, request(vec![user("a"), says("x"), says("y")])).await;
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::Invalid);
}

#[tokio::test]
async fn usage_is_estimated_from_the_size_of_the_request() {
    let model = model("[[turn]]\ntext = '12345'");
    let sized = ModelRequest {
        system: "1234".into(),
        ..request(vec![user("123456")])
    };
    let outcome = ask(&model, sized).await;
    let expected = usage(3, 2);
    assert_eq!(outcome.events.last(), Some(&ModelEvent::Usage(expected)));
    assert_eq!(outcome.end.unwrap().usage, expected);
}

#[tokio::test]
async fn a_failure_comes_after_its_pieces() {
    let model = model(
        "[[turn]]\nwhen = 'now'\nfailure = { class = 'rate_limit', status = 429, message = 'slow', retry_after_ms = 20 }\n\
         [[turn]]\ntext = 'abcdef'\nchunk_chars = 2\nfailure = { class = 'network', after_chunks = 2 }",
    );
    let outcome = ask(&model, request(vec![user("NOW")])).await;
    let error = outcome.end.unwrap_err();
    assert_eq!(
        (error.class, error.status, error.message.as_str()),
        (ModelErrorClass::RateLimit, Some(429), "slow")
    );
    assert_eq!(error.retry_after, Some(Duration::from_millis(20)));
    let outcome = ask(&model, request(vec![user("later")])).await;
    assert_eq!(outcome.texts(), "abcd");
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::Network);
}

#[tokio::test]
async fn delays_are_honoured() {
    let model = model("[[turn]]\ntext = 'abc'\nchunk_chars = 1\ndelay_ms = 30\nchunk_delay_ms = 20");
    let start = std::time::Instant::now();
    let outcome = ask(&model, request(vec![user("a")])).await;
    assert_eq!(outcome.texts(), "abc");
    assert!(start.elapsed() >= Duration::from_millis(70));
}

#[tokio::test]
async fn arguments_may_be_any_text() {
    let model = model("[[turn]]\ntool_calls = [{ name = 'f', arguments = '{broken {{input}}' }, { name = 'g' }]");
    let calls = ask(&model, request(vec![user("x")])).await.calls();
    let arguments: Vec<_> = calls
        .into_iter()
        .map(|(_, name, arguments)| (name, arguments))
        .collect();
    assert_eq!(
        arguments,
        [
            ("f".to_owned(), "{broken x".to_owned()),
            ("g".to_owned(), "{}".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_long_input_is_echoed_in_pieces_that_together_are_no_larger() {
    let model = model("[[turn]]\ntext = '{{input}}'\nchunk_chars = 12");
    let input = "0123456789ab".repeat(90_000);
    let outcome = ask(&model, request(vec![user(&input)])).await;
    let held: usize = outcome
        .events
        .iter()
        .map(|event| match event {
            ModelEvent::TextDelta { text } => text.capacity(),
            _ => 0,
        })
        .sum();
    assert_eq!(outcome.events.len(), 90_000 + 1, "the pieces and the usage");
    assert!(held <= 2 * input.len(), "{held} bytes for {}", input.len());
    assert_eq!(outcome.texts(), input);
}

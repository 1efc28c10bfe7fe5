//! The log of a failed model call, and a model that is always ready.

use std::io;
use std::sync::Arc;

use agent::AgentEvent;
use agent::ports::{ModelAddress, ModelError, ModelErrorClass, ModelEvent};
use agent::state::{ExecutionStatus, FinishReason};
use serde_json::{Value, json};
use test_support::fake_model::{Beat, completed, text, usage};
use test_support::logs::{CapturedLog, listen};
use values::message::ContentPart;

use crate::setup::Setup;

#[tokio::test]
async fn a_failed_model_call_is_logged_once_with_its_cause_and_without_its_message() {
    let lines = CapturedLog::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    let _listening = listen(subscriber);
    let error = ModelError {
        status: Some(503),
        address: Some(Arc::new(ModelAddress {
            provider: "fake".to_owned(),
            host: "https://models.test:8443".to_owned(),
            url: "https://models.test:8443/v1/one".to_owned(),
        })),
        body: Some("body-secret".to_owned()),
        source: Some(Arc::new(io::Error::other("connection reset"))),
        ..ModelError::new(ModelErrorClass::Server, "words-secret")
    };
    let state = Setup::new([vec![text("prompt-secret"), Beat::Error(error)]])
        .run()
        .await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    let text = lines.text();
    assert!(!text.contains("secret"), "{text}");
    let fields = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone());
    let reported: Vec<_> = fields
        .filter(|fields| fields["message"] == "model call failed")
        .collect();
    let expected = json!({"message": "model call failed", "model": "fake/one", "class": "model_server_error", "status": 503,
        "url": "https://models.test:8443/v1/one", "cause": "connection reset"});
    assert_eq!(reported, [expected]);
}

#[tokio::test]
async fn the_words_before_a_failure_are_stored_in_the_order_of_their_events() {
    let reasoning = |text: &str| Beat::Event(ModelEvent::ReasoningDelta { text: text.to_owned() });
    let refusal = |text: &str| Beat::Event(ModelEvent::RefusalDelta { text: text.to_owned() });
    let call = Beat::Event(ModelEvent::ToolCallStarted {
        index: 0,
        id: "c1".to_owned(),
        name: "echo".to_owned(),
    });
    let fails = Beat::Fail(ModelErrorClass::Server, "broken");
    let beats = vec![
        text("a"),
        reasoning("b"),
        text("c"),
        call,
        text("d"),
        refusal("e"),
        fails,
    ];
    let setup = Setup::new([beats]);
    let state = setup.run().await;
    let parts = state.current_response().iter().flat_map(|message| &message.content);
    let stored: Vec<_> = parts
        .map(|part| match part {
            ContentPart::Text(part) => format!("text {}", part.text),
            ContentPart::Reasoning(part) => format!("reasoning {}", part.text),
            ContentPart::Refusal { text } => format!("refusal {text}"),
            part => panic!("{part:?}"),
        })
        .collect();
    assert_eq!(stored, ["text a", "reasoning b", "text cd", "refusal e"]);
    let emitted = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::MessageDelta { text, .. } | AgentEvent::ReasoningDelta { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(emitted.collect::<String>(), "abcde");
}

#[tokio::test]
async fn a_model_that_is_always_ready_lets_others_work() {
    let end = completed(vec![ContentPart::text("a")], FinishReason::Stop, usage(1, 1));
    let beats = (0..10_000).map(|_| text("a")).chain([end]).collect();
    let setup = Setup::new([beats]);
    let run = setup.run();
    tokio::pin!(run);
    let mut turns = 0;
    // The one thread is given to this loop whenever the run lets go of it.
    let state = loop {
        tokio::select! {
            biased;
            state = &mut run => break state,
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert!(turns > 10, "only {turns} turns for others");
}

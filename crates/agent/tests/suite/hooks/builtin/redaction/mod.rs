//! `redaction`: after any execution, nothing that was sent, emitted or stored contains the secret.

mod bounds;

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{AgentState, ExecutionStatus, FinishReason};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, completed, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::wait::until;
use values::clock::Clock as _;
use values::ids::{MessageId, UuidV7Source};
use values::json::Value;
use values::message::{ContentPart, Message, ReasoningPart, Role, ToolCall};

use crate::setup::{Setup, shown, transcript};

const SECRET: &str = "sk-4711";

fn setup(answers: impl IntoIterator<Item = Vec<Beat>>) -> Setup {
    let config = json!({"patterns": [{"name": "key", "regex": "sk-[0-9]+", "replacement": "[key]"}]});
    Setup::new(answers)
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
        .with_tool(&FakeTool::new(
            "leak",
            Behaviour::Answer(format!("the key is {SECRET}")),
        ))
        .with_tool(&FakeTool::new(
            "broken",
            Behaviour::Fail(format!("no access with {SECRET}")),
        ))
        .with_attached("redaction", config)
}

/// Fails if anything that was sent, emitted or kept holds the secret.
fn assert_gone(setup: &Setup, state: &AgentState) {
    let retained = serde_json::to_string(state).unwrap();
    assert!(!retained.contains(SECRET), "kept: {retained}");
    let current = format!("{state:?}");
    assert!(!current.contains(SECRET), "in memory: {current}");
    let emitted = serde_json::to_string(&setup.events.events()).unwrap();
    assert!(!emitted.contains(SECRET), "emitted: {emitted}");
    let sent = format!("{:?}", setup.model.requests());
    assert!(!sent.contains(SECRET), "sent: {sent}");
}

/// The words of all emitted events, joined.
fn emitted(setup: &Setup) -> String {
    let events = serde_json::to_value(setup.events.events()).unwrap();
    let deltas = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "message.delta");
    deltas.map(|event| event["data"]["text"].as_str().unwrap()).collect()
}

fn user(setup: &Setup, words: &str) -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, words, setup.clock.now())
}

#[tokio::test(start_paused = true)]
async fn nothing_of_an_execution_holds_the_secret() {
    let reasons = Beat::Event(ModelEvent::ReasoningDelta {
        text: format!("I know {SECRET}"),
    });
    let reasoning = |signature: Option<&str>| {
        ContentPart::Reasoning(ReasoningPart {
            text: format!("I know {SECRET}"),
            signature: signature.map(str::to_owned),
            ..ReasoningPart::default()
        })
    };
    let call = ContentPart::ToolCall(ToolCall {
        id: "c0".to_owned(),
        name: "echo".to_owned(),
        arguments: format!(r#"{{"note": "{SECRET}"}}"#),
        signature: Some("signed".to_owned()),
    });
    let thinks = completed(
        vec![reasoning(Some("signed")), reasoning(None), call],
        FinishReason::ToolCalls,
        usage(10, 5),
    );
    let escaped = r#"{"note": "sk\u002d4711"}"#;
    let calls = asks_for(&[
        ("c1", "leak", "{}"),
        ("c2", "broken", "{}"),
        ("c3", "echo", escaped),
        ("c4", "none", SECRET),
    ]);
    let words = format!("the key is {SECRET}.");
    let setup = setup([vec![reasons, thinks], calls, says(&words)]);
    let state = setup.new_state().with_system_prompt("Guard {{ metadata.key }}.");
    let metadata = serde_json::from_value(json!({"key": "nothing"})).unwrap();
    let message = Message {
        name: Some(SECRET.to_owned()),
        metadata: serde_json::from_value(json!({"note": [SECRET]})).unwrap(),
        ..user(&setup, &words)
    };
    let state = setup.run_on(state.with_metadata(metadata), vec![message]).await;

    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert_gone(&setup, &state);
    assert_eq!(
        transcript(&state),
        [
            "user: the key is [key].",
            "assistant: call c0",
            "tool: result c0",
            "assistant: call c1 call c2 call c3 call c4",
            "tool: result c1 error c2 result c3 error c4",
            "assistant: the key is [key].",
        ]
    );
    assert_eq!(emitted(&setup), "the key is [key].");
    // The signed reasoning is gone whole, and the call has lost its signature with its words.
    let first = state.stored_messages().nth(1).unwrap();
    let [ContentPart::Reasoning(reasoning), ContentPart::ToolCall(call)] = &first.content[..] else {
        panic!("{first:?}")
    };
    assert_eq!(
        (reasoning.text.as_str(), reasoning.signature.as_deref()),
        ("I know [key]", None)
    );
    assert_eq!(
        (call.arguments.as_str(), call.signature.as_deref()),
        (r#"{"note": "[key]"}"#, None)
    );
    // Tools are given what is kept, and it is JSON.
    let calls = &state.steps().nth(1).unwrap().tool_executions;
    let contents: Vec<_> = calls.iter().map(|call| call.content[0].as_text().unwrap()).collect();
    assert_eq!((contents[0], contents[2]), ("the key is [key]", r#"{"note":"[key]"}"#));
    assert_eq!(calls[1].error.as_ref().unwrap().message, "no access with [key]");
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_pieces_is_found() {
    let pieces = ["the key is s", "k-", "47", "11", "."];
    let mut beats: Vec<Beat> = pieces.into_iter().map(text).collect();
    beats.push(completed(
        vec![ContentPart::text(pieces.concat())],
        FinishReason::Stop,
        usage(10, 5),
    ));
    let setup = setup([beats]);
    let state = setup.run().await;
    assert_gone(&setup, &state);
    assert_eq!(
        (emitted(&setup).as_str(), state.final_text().as_str()),
        ("the key is [key].", "the key is [key].")
    );
}

#[tokio::test(start_paused = true)]
async fn a_secret_over_several_parts_is_found() {
    let parts = ["the key is sk-", "4711", "."].map(ContentPart::text).to_vec();
    let setup = setup([vec![completed(parts, FinishReason::Stop, usage(10, 5))]]);
    let state = setup.run().await;
    assert_gone(&setup, &state);
    assert_eq!(state.final_text(), "the key is [key].");
}

#[tokio::test]
async fn a_completion_that_is_cut_or_fails_midway_holds_no_secret() {
    let began = || ["the key is sk", "-4711 and"].map(text).to_vec();
    let calls = || {
        let started = ModelEvent::ToolCallStarted {
            index: 0,
            id: "c1".to_owned(),
            name: "echo".to_owned(),
        };
        let arguments = ModelEvent::ToolCallDelta {
            index: 0,
            arguments: format!(r#"{{"note": "{SECRET}"#),
        };
        vec![Beat::Event(started), Beat::Event(arguments)]
    };
    for (fails, status) in [(true, ExecutionStatus::Failed), (false, ExecutionStatus::Stopped)] {
        let end = if fails {
            Beat::Fail(ModelErrorClass::Server, "no")
        } else {
            Beat::Hang
        };
        let setup = setup([[began(), calls(), vec![end]].concat()]);
        let cancel = async {
            // What comes before the end of its answer comes at once.
            until("the model was never asked", async || !setup.model.requests().is_empty()).await;
            setup.cancellation.cancel();
        };
        let (state, ()) = tokio::join!(setup.run(), cancel);
        assert_eq!(state.status(), Some(status));
        assert_gone(&setup, &state);
        assert_eq!(emitted(&setup), "the key is [key] and");
        assert_eq!(transcript(&state), ["user: go", "assistant: the key is [key] and"]);
    }
}

#[tokio::test(start_paused = true)]
async fn old_messages_are_sent_without_the_secret_and_stay_as_they_are_stored() {
    let open = Setup::new([says("noted")]);
    let state = open.run_from(open.new_state(), SECRET).await;
    let history: Value = serde_json::to_value(state.store()).unwrap();
    let setup = setup([says("hello"), says("hello again")]);
    let state = setup.run_from(state, "hi").await;
    let state = setup.run_from(state, "hi again").await;
    let requests = setup.model.requests();
    assert!(!format!("{requests:?}").contains(SECRET));
    assert_eq!(
        shown(requests[0].messages.iter()),
        ["user: [key]", "assistant: noted", "user: hi"]
    );
    // Each request begins with the one before, so that providers go on finding it in their caches.
    assert_eq!(requests[1].messages.to_vec()[..3], requests[0].messages.to_vec()[..]);
    let now: Value = serde_json::to_value(state.store()).unwrap();
    let old = history.as_array().unwrap();
    assert_eq!(&now.as_array().unwrap()[..old.len()], &old[..]);
}

#[tokio::test(start_paused = true)]
async fn what_holds_no_secret_is_left_byte_for_byte() {
    let answer = [
        ContentPart::Reasoning(ReasoningPart {
            text: "hm".to_owned(),
            signature: Some(SECRET.to_owned()),
            ..ReasoningPart::default()
        }),
        ContentPart::ToolCall(ToolCall {
            id: "c1".to_owned(),
            name: "echo".to_owned(),
            arguments: "{ \"note\" :\"b\" }".to_owned(),
            signature: Some("signed".to_owned()),
        }),
    ];
    let setup = setup([
        vec![completed(answer.to_vec(), FinishReason::ToolCalls, usage(1, 1))],
        says("done"),
    ]);
    let state = setup.run().await;
    assert_eq!(state.stored_messages().nth(1).unwrap().content, answer);
    assert_eq!(setup.model.requests()[1].messages[1].content, answer);
}

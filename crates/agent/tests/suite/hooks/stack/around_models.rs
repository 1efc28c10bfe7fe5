//! Hooks around model requests: their changes are sent and stored, and a completion that is held
//! back is emitted as they changed it.

use std::sync::Arc;

use agent::hooks::{HookContext, HookSubject};
use agent::ports::{ModelEvent, ModelRequest};
use agent::{AgentEvent, HookPoint};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, says, text};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;
use values::message::{ContentPart, ReasoningPart};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, transcript};

#[tokio::test(start_paused = true)]
async fn a_changed_request_is_what_is_sent_and_the_history_stays() {
    let trimmed = Probe::changing(HookPoint::BeforeModelRequest, |context| {
        let HookSubject::Request(request) = &context.subject else {
            return context;
        };
        let last = request.messages.last().cloned();
        let request = ModelRequest {
            system: "Be brief.".into(),
            messages: last.into_iter().collect(),
            ..(**request).clone()
        };
        let subject = HookSubject::Request(Box::new(request));
        HookContext { subject, ..context }
    });
    let setup = Setup::new([says("one"), says("two")]).with_hook(trimmed);
    let state = setup.run().await;
    let state = setup.run_from(state, "again").await;
    let sent: Vec<_> = setup
        .model
        .requests()
        .iter()
        .map(|request| (Arc::clone(&request.system), request.messages.len()))
        .collect();
    assert_eq!(sent, [("Be brief.".into(), 1), ("Be brief.".into(), 1)]);
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: one", "user: again", "assistant: two"]
    );
    assert_eq!(state.context().system_prompt, "");
}

#[tokio::test(start_paused = true)]
async fn a_changed_completion_is_stored_and_emitted_as_changed_when_deltas_are_held_back() {
    for holds_back in [false, true] {
        let shouting = Probe::changing(HookPoint::AfterModelRequest, |mut context| {
            if let HookSubject::Response(response) = &mut context.subject {
                response.content = vec![ContentPart::text("DONE")];
            }
            context
        });
        let shouting = if holds_back { shouting.holding_back() } else { shouting };
        let setup = Setup::new([says("done")]).with_hook(shouting);
        let state = setup.run().await;
        assert_eq!(state.final_text(), "DONE");
        let emitted = setup.events.events().into_iter().filter_map(|event| match event {
            AgentEvent::MessageDelta { text, .. } => Some(text),
            _ => None,
        });
        let expected = if holds_back { "DONE" } else { "done" };
        assert_eq!(emitted.collect::<String>(), expected, "holds back: {holds_back}");
    }
}

#[tokio::test(start_paused = true)]
async fn deltas_that_were_held_back_are_emitted_in_their_pieces() {
    for holds_back in [false, true] {
        let mut beats = asks_for(&[("c1", "echo", "{}"), ("c2", "echo", r#"{"note": "b"}"#)]);
        let Some(Beat::Event(ModelEvent::Completed(response))) = beats.last_mut() else {
            panic!("an answer ends with its response")
        };
        let thought = |text: &str| {
            ContentPart::Reasoning(ReasoningPart {
                text: text.to_owned(),
                ..ReasoningPart::default()
            })
        };
        // Parts without words are kept, and there is nothing to tell of them.
        let said = [
            thought(""),
            thought("hm"),
            ContentPart::text(""),
            ContentPart::text("Look:"),
        ];
        response.content.splice(0..0, said);
        let emitted = ModelEvent::ReasoningDelta { text: "hm".to_owned() };
        beats.splice(0..0, [Beat::Event(emitted), text("Look:")]);

        let probe = Probe::changing(HookPoint::AfterModelRequest, |context| context);
        let probe = if holds_back { probe.holding_back() } else { probe };
        let setup = Setup::new([beats, says("done")])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_hook(probe);
        setup.run().await;
        let call = |index: u64, arguments: &str| {
            let call_id = format!("c{}", index + 1);
            let position = json!({"step_number": 1, "index": index, "call_id": call_id});
            let (mut started, mut delta) = (position.clone(), position);
            started["name"] = json!("echo");
            delta["arguments"] = json!(arguments);
            [("tool_call.started", started), ("tool_call.delta", delta)]
        };
        let mut expected = vec![
            ("reasoning.delta", json!({"step_number": 1, "text": "hm"})),
            ("message.delta", json!({"step_number": 1, "text": "Look:"})),
        ];
        expected.extend(call(0, "{}"));
        expected.extend(call(1, r#"{"note": "b"}"#));
        expected.push(("message.delta", json!({"step_number": 2, "text": "done"})));
        let expected = expected
            .into_iter()
            .map(|(name, data)| json!({"type": name, "data": data}));
        assert_eq!(pieces(&setup), expected.collect::<Value>(), "holds back: {holds_back}");
    }
}

/// Returns the events of the pieces of answers, in their order.
fn pieces(setup: &Setup) -> Value {
    let events = setup.events.events().into_iter();
    let events = events.map(|event| serde_json::to_value(event).unwrap());
    let is_piece = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        matches!(
            name,
            "reasoning.delta" | "message.delta" | "tool_call.delta" | "tool_call.started"
        )
    };
    events.filter(is_piece).collect()
}

//! Hooks around model requests: what they change is what is sent and what is kept, and an answer that is held back is heard changed.

use std::sync::Arc;

use agent_runtime::agent::AgentEvent;
use agent_runtime::agent::hooks::{HookContext, HookPoint, HookSubject};
use agent_runtime::agent::ports::ModelRequest;
use agent_runtime::message::ContentPart;

use super::super::setup::{Setup, transcript};
use super::probe::Probe;
use crate::support::fake_model::says;

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
    let state = setup.run_from(state.for_next_execution(), "again").await;
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
async fn a_changed_answer_is_kept_and_heard_as_changed_when_it_is_held_back() {
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
        let heard = setup.events.events().into_iter().filter_map(|event| match event {
            AgentEvent::MessageDelta { text, .. } => Some(text),
            _ => None,
        });
        let expected = if holds_back { "DONE" } else { "done" };
        assert_eq!(heard.collect::<String>(), expected, "holds back: {holds_back}");
    }
}

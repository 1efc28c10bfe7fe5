//! The state of an execution after its caller disconnects or its model fails.

use std::time::Duration;

use agent::AgentEvent;
use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::{AgentState, AgentStep, AgentStepType, ErrorKind, ExecutionStatus, FinishReason, StopReason};
use chrono::TimeDelta;
use test_support::fake_model::{Beat, asks_for, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::setup::{Setup, assert_ended, last_words, transcript};

/// Runs and cancels after so many milliseconds.
async fn run_and_cancel(setup: &Setup, after: u32) -> AgentState {
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(after.into())).await;
        setup.cancellation.cancel();
    };
    let (state, ()) = tokio::join!(setup.run(), cancel);
    assert_ended(&state, ExecutionStatus::Stopped, StopReason::UserRequested);
    assert_eq!(state.stop_signal().unwrap().source.as_deref(), Some("cancellation"));
    assert_eq!(setup.elapsed(&state), TimeDelta::milliseconds(after.into()));
    state
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_completion_retains_its_text_without_unfinished_calls() {
    let call = [
        Beat::Event(ModelEvent::ToolCallStarted {
            index: 0,
            id: "c1".to_owned(),
            name: "echo".to_owned(),
        }),
        Beat::Event(ModelEvent::ToolCallDelta {
            index: 0,
            arguments: "{\"no".to_owned(),
        }),
    ];
    let beats = [text("Let me "), text("look")]
        .into_iter()
        .chain(call)
        .chain([Beat::Hang]);
    let setup = Setup::new([beats.collect()]);
    let state = run_and_cancel(&setup, 120).await;
    assert_eq!(transcript(&state), ["user: go", "assistant: Let me look"]);
    let response = state.last_step().unwrap().response.clone().unwrap();
    assert_eq!(response.finish_reason, FinishReason::Interrupted);
    assert!(state.errors().is_empty());
}

/// The run is cancelled in the first attempt, in the pause after it, and in the second attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_counts_from_its_beginning_on() {
    let failed = Beat::Event(ModelEvent::AttemptFailed {
        usage: usage(10, 0),
        class: ModelErrorClass::Server,
    });
    let begun = Beat::Event(ModelEvent::AttemptBegun);
    for (beats, expected) in [
        (vec![Beat::Hang], 1),
        (vec![failed.clone(), Beat::Hang], 1),
        (vec![failed, begun, Beat::Hang], 2),
    ] {
        let setup = Setup::new([beats]);
        run_and_cancel(&setup, 50).await;
        let responded = setup.events.events().into_iter().filter_map(|event| match event {
            AgentEvent::ModelResponded { attempts, .. } => Some(attempts),
            _ => None,
        });
        assert_eq!(responded.collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_tool_gets_an_error_result_and_the_model_is_not_asked_again() {
    let hangs = FakeTool::new("hangs", Behaviour::Hang);
    let setup = Setup::new([asks_for(&[("c1", "hangs", "{}")])]).with_tool(&hangs);
    let state = run_and_cancel(&setup, 80).await;
    assert_eq!(transcript(&state), ["user: go", "assistant: call c1", "tool: error c1"]);
    assert_eq!(state.errors().last().unwrap().code, "tool_cancelled");
    assert_eq!((setup.model.requests().len(), hangs.working()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_model_error_retains_the_partial_completion_and_fails_the_execution() {
    for (class, kind, code) in [
        (ModelErrorClass::Overload, ErrorKind::Model, "model_overloaded"),
        (ModelErrorClass::RateLimit, ErrorKind::RateLimit, "model_rate_limited"),
        (ModelErrorClass::Timeout, ErrorKind::Timeout, "model_timeout"),
    ] {
        let beats = vec![
            text("The answer "),
            Beat::Event(ModelEvent::Usage(usage(10, 2))),
            text("is"),
            Beat::Fail(class, "busy"),
        ];
        let setup = Setup::new([beats]);
        let state = setup.run().await;
        assert_ended(&state, ExecutionStatus::Failed, StopReason::ErrorForbade);
        assert_eq!(state.stop_signal().unwrap().source.as_deref(), Some("error_policy"));
        assert_eq!(state.last_step().map(AgentStep::step_type), Some(AgentStepType::Error));
        assert_eq!(
            (last_words(&state).as_str(), state.usage()),
            // The provider has counted two tokens, and what came after that is estimated.
            ("The answer is", usage(10, 3))
        );
        let error = state.errors().last().cloned().unwrap();
        assert_eq!(
            (error.kind, error.code.as_str(), error.message.as_str()),
            (kind, code, "busy")
        );
        assert_eq!(error.source_name.as_deref(), Some("fake/one"));
        assert_eq!(
            setup.events.names(),
            [
                "execution.started",
                "step.started",
                "model.requested",
                "message.delta",
                "message.delta",
                "model.responded",
                "step.completed",
                "continuation.evaluated",
                "execution.ended"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_ends_is_a_truncated_completion() {
    let setup = Setup::new([vec![text("Half an ans")]]);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    assert_eq!(state.errors().last().unwrap().code, "model_answer_truncated");
    assert_eq!(last_words(&state), "Half an ans");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_before_a_word_leaves_no_message() {
    let setup = Setup::new([vec![Beat::Fail(ModelErrorClass::Auth, "bad key")]]);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Failed));
    assert_eq!(transcript(&state), ["user: go"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_can_not_be_rendered_fails_before_any_request() {
    // The second one would exhaust the stack; a session may hold it from before such prompts were
    // refused.
    let deep = format!("{{{{ {}1 }}}}", "not ".repeat(20_000));
    for prompt in ["You are {{ variables.who }}", &deep] {
        let setup = Setup::new([says("never")]);
        let state = setup.new_state().with_system_prompt(prompt);
        let state = setup.run_from(state, "go").await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed));
        let error = state.errors().last().cloned().unwrap();
        assert_eq!(
            (error.kind, error.code.as_str()),
            (ErrorKind::Validation, "prompt_not_rendered")
        );
        assert!(setup.model.requests().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn text_after_the_provider_s_last_count_is_estimated() {
    let counts = |output| Beat::Event(ModelEvent::Usage(usage(100, output)));
    let words = "four".repeat(25);
    for (beats, output) in [
        (vec![counts(1), text(&words), Beat::Hang], 26),
        (vec![text(&words), counts(30), Beat::Hang], 30),
        (vec![counts(1), text(&words), counts(30), text(&words), Beat::Hang], 55),
    ] {
        let setup = Setup::new([beats]);
        let state = run_and_cancel(&setup, 50).await;
        assert_eq!(state.usage(), usage(100, output));
        assert_eq!(setup.control().unwrap().spent(), usage(100, output));
    }
}

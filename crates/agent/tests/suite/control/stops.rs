//! Executions that the caller stops: they end with the work that is done.

use std::time::Duration;

use agent::HookPoint;
use agent::definition::ErrorPolicyPreset;
use agent::state::{AgentState, ExecutionStatus, FinishReason, StopReason};
use test_support::fake_model::{Beat, asks_for, says, text};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::provider_rules::assert_history_valid;
use values::clock::Clock as _;

use crate::hooks::probe::Probe;
use crate::setup::{Setup, last_words, transcript};

fn assert_stopped(state: &AgentState, case: &str) {
    assert_eq!(
        (state.status(), state.stop_reason()),
        (Some(ExecutionStatus::Stopped), Some(StopReason::UserRequested)),
        "{case}"
    );
    let signal = state.stop_signal().unwrap();
    assert_eq!(
        (signal.source.as_deref(), signal.message.as_str(), signal.is_binding),
        (Some("stop"), "the run was stopped", true),
        "{case}"
    );
}

/// Words, two calls that work at once, words again; something waits between each two of them.
fn setup() -> Setup {
    let calls = asks_for(&[("c1", "waits", "{}"), ("c2", "echo", "{}")]);
    let asks = [text("let me "), text("see")].into_iter().chain(calls);
    let slowly = |beats: Vec<Beat>| {
        let wait = Beat::Wait(Duration::from_millis(10));
        beats.into_iter().flat_map(|beat| [wait.clone(), beat]).collect()
    };
    Setup::new([slowly(asks.collect()), slowly(says("done"))])
        .with_tool(&FakeTool::new("waits", Behaviour::Wait(Duration::from_millis(25))))
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
}

#[tokio::test(start_paused = true)]
async fn a_run_stopped_at_any_event_retains_its_results() {
    let uncut = setup();
    uncut.run().await;
    for policy in [ErrorPolicyPreset::IgnoreToolErrors, ErrorPolicyPreset::StopOnAnyError] {
        for at in 1..uncut.events.names().len() {
            let case = format!("stopped at {at} with {policy:?}");
            let setup = setup().with_policy(policy);
            let stop = setup.stop.clone();
            setup.events.at(at, move || stop.cancel());
            let state = setup.run().await;
            let response = state.last_step().and_then(|step| step.response.as_ref());
            // Once the last answer is whole, the work is done.
            if response.is_some_and(|response| response.finish_reason == FinishReason::Stop) {
                assert_eq!(state.status(), Some(ExecutionStatus::Completed), "{case}");
            } else {
                assert_stopped(&state, &case);
            }
            let next = Setup::new([says("again")]);
            let state = next.run_from(state, "and?").await;
            assert_eq!(state.final_text(), "again", "{case}");
            assert_history_valid(&state.stored_messages().cloned().collect::<Vec<_>>());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_stopped_before_its_first_step_makes_none() {
    let setup = setup();
    setup.stop.cancel();
    let state = setup.run().await;
    assert_stopped(&state, "before the first step");
    assert_eq!(
        (state.step_count(), transcript(&state)),
        (0, vec!["user: go".to_owned()])
    );
    assert!(setup.model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_retains_the_text_and_cuts_the_tools() {
    let words = vec![text("Half an ans"), Beat::Hang];
    let stopped = async |setup: Setup| {
        let stop = setup.stop.clone();
        let later = async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            stop.cancel();
        };
        tokio::join!(setup.run(), later).0
    };
    let state = stopped(Setup::new([words])).await;
    assert_stopped(&state, "in the answer");
    assert_eq!(last_words(&state), "Half an ans");

    let hangs = FakeTool::new("hangs", Behaviour::Hang);
    let state = stopped(Setup::new([asks_for(&[("c1", "hangs", "{}")])]).with_tool(&hangs)).await;
    assert_stopped(&state, "in a tool");
    assert_eq!(transcript(&state), ["user: go", "assistant: call c1", "tool: error c1"]);
    assert_eq!(
        (state.errors().last().unwrap().code.as_str(), hangs.working()),
        ("tool_cancelled", 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_wins_over_a_stop() {
    for at in [1, 4, 9] {
        let setup = setup();
        let (stop, cancellation) = (setup.stop.clone(), setup.cancellation.clone());
        setup.events.at(at, move || {
            stop.cancel();
            cancellation.cancel();
        });
        let state = setup.run().await;
        assert_eq!(
            state.stop_signal().unwrap().source.as_deref(),
            Some("cancellation"),
            "at {at}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_to_continue_overrides_a_stop() {
    let setup = Setup::new([says("one"), says("two"), vec![Beat::Hang]]);
    let clock = setup.clock;
    // Asks for one more step after each.
    let setup = setup.with_hook(Probe::changing(HookPoint::AfterStep, move |mut context| {
        context.state = context.state.with_continuation_requested(clock.now());
        context
    }));
    let stop = setup.stop.clone();
    let later = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.cancel();
    };
    let (state, ()) = tokio::join!(setup.run(), later);
    assert_stopped(&state, "eager");
    assert_eq!(state.step_count(), 3);
}

//! An execution that is cut at each of its events in turn, in every way: it ends, and its history
//! is one that providers accept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::hooks::HookError;
use agent::ports::ModelErrorClass;
use agent::state::{AgentState, ExecutionStatus, FinishReason, StopReason};
use agent::{AgentEvent, HookPoint};
use test_support::fake_model::{Beat, asks_for, says, text, usage};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::provider_rules::assert_history_valid;
use tokio::sync::Notify;

use crate::hooks::probe::Probe;
use crate::setup::{Setup, budget};

/// The number of events of the story when nothing cuts it.
const EVENTS: usize = 23;

/// Words, two calls that work at once, words again; something waits between each two of them.
fn story() -> Vec<Vec<Beat>> {
    let calls = asks_for(&[("c1", "waits", "{}"), ("c2", "echo", "{}")]);
    let asks = [text("let me "), text("see")].into_iter().chain(calls);
    let slowly = |beats: Vec<Beat>| {
        let wait = Beat::Wait(Duration::from_millis(10));
        beats.into_iter().flat_map(|beat| [wait.clone(), beat]).collect()
    };
    vec![slowly(asks.collect()), slowly(says("done"))]
}

fn setup() -> Setup {
    Setup::new(story())
        .with_tool(&FakeTool::new("waits", Behaviour::Wait(Duration::from_millis(25))))
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
}

/// Checks what holds of every end, and that the next execution can go on from it.
async fn assert_ended_well(setup: &Setup, state: &AgentState, case: &str) {
    let events = setup.events.events();
    let ends = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::ExecutionEnded { .. }));
    assert_eq!(ends.count(), 1, "{case}");
    let Some(AgentEvent::ExecutionEnded { status, reason, .. }) = events.last() else {
        panic!("{case}: the end is not the last event: {:?}", events.last());
    };
    assert_eq!(
        (Some(*status), Some(*reason)),
        (state.status(), state.stop_reason()),
        "{case}"
    );
    let requested = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::ModelRequested { .. }));
    let responded = events
        .iter()
        .filter(|event| matches!(event, AgentEvent::ModelResponded { .. }));
    assert_eq!(requested.count(), responded.count(), "{case}");
    let restored: AgentState = serde_json::from_value(serde_json::to_value(state).unwrap()).unwrap();
    assert_history_valid(&restored.stored_messages().cloned().collect::<Vec<_>>());
    // The model of the next execution checks its request.
    let next = Setup::new([says("again")]);
    let state = next.run_from(restored, "and?").await;
    assert_eq!(state.final_text(), "again", "{case}");
}

/// Tells whether the last answer was there, whole.
fn is_done(state: &AgentState) -> bool {
    let response = state.last_step().and_then(|step| step.response.as_ref());
    response.is_some_and(|response| response.finish_reason == FinishReason::Stop)
}

#[tokio::test(start_paused = true)]
async fn the_story_has_so_many_events() {
    let setup = setup();
    let state = setup.run().await;
    assert_eq!(setup.events.names().len(), EVENTS, "{:?}", setup.events.names());
    assert_ended_well(&setup, &state, "uncut").await;
}

#[tokio::test(start_paused = true)]
async fn a_run_cancelled_at_any_event_is_stopped() {
    for at in 1..EVENTS {
        let setup = setup();
        let cancellation = setup.cancellation.clone();
        setup.events.at(at, move || cancellation.cancel());
        let state = setup.run().await;
        let case = format!("cancelled at {at}");
        assert_ended_well(&setup, &state, &case).await;
        // Once the last answer is whole, the work is done.
        let done = is_done(&state);
        let expected = if done {
            ExecutionStatus::Completed
        } else {
            ExecutionStatus::Stopped
        };
        assert_eq!(state.status(), Some(expected), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_money_is_spent_at_any_event_is_stopped() {
    for at in 1..EVENTS {
        let budget = budget(|budget| budget.max_tokens = Some(1_000));
        let setup = Arc::new(setup().with_budget(budget));
        let spender = Arc::downgrade(&setup);
        setup.events.at(at, move || {
            if let Some(control) = spender.upgrade().as_ref().and_then(|setup| setup.control()) {
                control.spend(usage(1_000, 0));
            }
        });
        let state = setup.run().await;
        let case = format!("spent at {at}");
        assert_ended_well(&setup, &state, &case).await;
        let done = is_done(&state);
        let expected = if done {
            StopReason::Completed
        } else {
            StopReason::TokenLimitReached
        };
        assert_eq!(state.stop_reason(), Some(expected), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_out_of_time_at_any_moment_is_stopped() {
    for millis in (0..130).step_by(5) {
        let budget = budget(|budget| budget.max_seconds = Some(f64::from(millis) / 1_000.0));
        let setup = setup().with_budget(budget);
        let state = setup.run().await;
        let case = format!("out of time after {millis} ms");
        assert_ended_well(&setup, &state, &case).await;
        let done = is_done(&state);
        let expected = if done {
            StopReason::Completed
        } else {
            StopReason::TimeLimitReached
        };
        assert_eq!(state.stop_reason(), Some(expected), "{case}");
        let time = setup.elapsed(&state).num_milliseconds();
        assert!(time <= i64::from(millis) + 2, "{case}: {time}");
    }
}

/// Fails from a moment on, at every point.
fn fuse(blown: Arc<AtomicBool>) -> Probe {
    Probe::at_each(HookPoint::ALL, move |context| {
        if blown.load(Ordering::SeqCst) {
            return Err(HookError::new("blown"));
        }
        Ok(context)
    })
    .named("fuse")
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_hook_fails_after_any_event_fails() {
    for at in 1..EVENTS {
        let blown = Arc::new(AtomicBool::new(false));
        let setup = setup().with_hook(fuse(Arc::clone(&blown)));
        setup.events.at(at, move || blown.store(true, Ordering::SeqCst));
        let state = setup.run().await;
        let case = format!("failed at {at}");
        assert_ended_well(&setup, &state, &case).await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{case}");
        assert_eq!(
            state.errors().last().unwrap().source_name.as_deref(),
            Some("fuse"),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_model_fails_at_any_beat_fails() {
    let answers = story();
    for (answer, beats) in answers.iter().enumerate() {
        for beat in 0..beats.len() {
            let mut answers = answers.clone();
            answers[answer].truncate(beat);
            answers[answer].push(Beat::Fail(ModelErrorClass::Server, "broken"));
            let setup = Setup::new(answers)
                .with_tool(&FakeTool::new("waits", Behaviour::Wait(Duration::from_millis(25))))
                .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments));
            let state = setup.run().await;
            let case = format!("answer {answer} fails at beat {beat}");
            assert_ended_well(&setup, &state, &case).await;
            assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_dropped_at_any_event_emits_its_end() {
    for at in 1..EVENTS {
        let setup = setup();
        let dropped = Arc::new(Notify::new());
        let drops = Arc::clone(&dropped);
        setup.events.at(at, move || drops.notify_one());
        let ended = tokio::select! {
            biased;
            () = dropped.notified() => false,
            _ = setup.run() => true,
        };
        let events = setup.events.events();
        let ends = events
            .iter()
            .filter(|event| matches!(event, AgentEvent::ExecutionEnded { .. }));
        assert_eq!(ends.count(), 1, "dropped at {at}");
        let Some(AgentEvent::ExecutionEnded { status, .. }) = events.last() else {
            panic!("dropped at {at}: {:?}", events.last());
        };
        let expected = if ended {
            ExecutionStatus::Completed
        } else {
            ExecutionStatus::Failed
        };
        assert_eq!(*status, expected, "dropped at {at}");
    }
}

//! Executions that are paused between two steps, so that another process resumes them. No end is
//! emitted.

use std::sync::Arc;

use agent::journal::Progress;
use agent::state::ExecutionStatus;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::provider_rules::assert_history_valid;

use crate::memory_journal::MemoryJournal;
use crate::setup::{Setup, transcript};

fn setup(answered: usize) -> (Setup, Arc<FakeTool>) {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = [
        asks_for(&[("c1", "echo", "{}")]),
        asks_for(&[("c2", "echo", "{}")]),
        says("done"),
    ];
    (Setup::new(answers.into_iter().skip(answered)).with_tool(&echo), echo)
}

#[tokio::test(start_paused = true)]
async fn an_execution_paused_at_any_event_is_left_between_two_steps_and_continues_elsewhere() {
    let (whole, _) = setup(0);
    let base = whole.with_journal(MemoryJournal::new());
    let expected = base.run().await;
    let events = base.events.names();
    for at in 1..=events.len() {
        let case = format!("paused at {at}");
        let ((setup, echo), journal) = (setup(0), MemoryJournal::new());
        let setup = setup.with_journal(Arc::clone(&journal) as _);
        let pause = setup.pause.clone();
        setup.events.at(at, move || pause.cancel());
        let begun = setup.new_state();
        let state = setup.run_from(begun.clone(), "go").await;
        let emitted = setup.events.names();
        if state.has_active_execution() {
            assert_eq!(emitted, events[..emitted.len()], "{case}");
            let last = emitted.last().unwrap();
            assert!(
                ["execution.started", "continuation.evaluated"].contains(&last.as_str()),
                "{case}: {last}"
            );
        } else {
            // The last step had begun.
            assert_eq!(
                (emitted, state.status()),
                (events.clone(), Some(ExecutionStatus::Completed)),
                "{case}"
            );
            continue;
        }
        assert_history_valid(&state.stored_messages().cloned().collect::<Vec<_>>());
        let progress = Progress::of(begun, journal.entries()).unwrap().unwrap();
        assert_eq!(
            (progress.state.to_json().unwrap(), &progress.pending),
            (state.to_json().unwrap(), &None),
            "{case}"
        );
        let (mut next, echo_of_next) = self::setup(progress.state.step_count());
        next.clock = setup.clock;
        let ended = next.with_journal(MemoryJournal::new()).go_on(progress).await;
        assert_eq!(transcript(&ended), transcript(&expected), "{case}");
        assert_eq!(echo.begun() + echo_of_next.begun(), 2, "{case}");
        assert_eq!(ended.usage(), expected.usage(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_is_not_recorded_is_not_paused() {
    let (setup, _) = setup(0);
    setup.pause.cancel();
    assert_eq!(setup.run().await.final_text(), "done");
}

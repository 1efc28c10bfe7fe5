//! Executions whose journal fails: they end at once, have no further effect, and are never
//! published.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::HookPoint;
use agent::state::{AgentState, ExecutionStatus, StopReason};
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::recorder::event_name;

use crate::hooks::probe::Probe;
use crate::memory_journal::{Break, MemoryJournal};
use crate::setup::Setup;

/// Counts how often hooks are called.
fn counting(calls: &Arc<AtomicUsize>) -> Probe {
    let calls = Arc::clone(calls);
    Probe::at_each(HookPoint::ALL, move |context| {
        calls.fetch_add(1, Ordering::SeqCst);
        Ok(context)
    })
}

fn setup(tools: &[Arc<FakeTool>; 2]) -> Setup {
    let asks = asks_for(&[("c1", "slow", "{}"), ("c2", "quick", "{}"), ("c3", "slow", "{}")]);
    Setup::new([asks, says("done")])
        .with_tool(&tools[0])
        .with_tool(&tools[1])
}

fn tools() -> [Arc<FakeTool>; 2] {
    [
        FakeTool::new("slow", Behaviour::Wait(Duration::from_millis(20))),
        FakeTool::new("quick", Behaviour::Wait(Duration::from_millis(5))),
    ]
}

fn assert_failed(state: &AgentState, case: &str) {
    assert_eq!(
        (state.status(), state.stop_reason()),
        (Some(ExecutionStatus::Failed), Some(StopReason::ErrorForbade)),
        "{case}"
    );
    let signal = state.stop_signal().unwrap();
    assert_eq!(
        (signal.source.as_deref(), signal.is_binding),
        (Some("journal"), true),
        "{case}"
    );
    let failures = state.errors();
    let failures = failures.iter().filter(|error| error.code == "journal_failed");
    assert_eq!(failures.count(), 1, "{case}: {:?}", state.errors());
}

#[tokio::test(start_paused = true)]
async fn an_execution_whose_journal_fails_at_any_entry_fails_and_does_nothing_more() {
    let (whole, made) = (MemoryJournal::new(), tools());
    setup(&made).with_journal(Arc::clone(&whole) as _).run().await;
    let appends = whole.appends().len();
    for at in 1..=appends {
        let case = format!("fails at {at} of {appends}");
        let (journal, tools, calls) = (
            MemoryJournal::broken(at, Break::Fails),
            tools(),
            Arc::new(AtomicUsize::default()),
        );
        let setup = setup(&tools)
            .with_journal(Arc::clone(&journal) as _)
            .with_hook(counting(&calls));
        let state = setup.run().await;
        assert_failed(&state, &case);
        assert_eq!(
            journal.attempts(),
            at,
            "{case}: something was to be kept after the failure"
        );
        assert_eq!(
            tools.iter().map(|tool| tool.working()).sum::<usize>(),
            0,
            "{case}: a call works on"
        );
        let retained = journal.entries();
        let begun = retained
            .iter()
            .filter(|entry| matches!(entry, agent::journal::JournalEntry::CallBegun { .. }));
        let made: usize = tools.iter().map(|tool| tool.begun()).sum();
        assert_eq!(
            made,
            begun.count(),
            "{case}: a call was made whose beginning is not kept"
        );
        let events = setup.events.events();
        let ends = events
            .iter()
            .filter(|event| event_name(event) == "execution.ended")
            .count();
        assert_eq!(ends, 1, "{case}");
        let before = calls.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            calls.load(Ordering::SeqCst),
            before,
            "{case}: a hook is called after the end"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_hook_is_called_after_a_journal_failure() {
    let journal = MemoryJournal::broken(1, Break::Fails);
    let calls = Arc::new(AtomicUsize::default());
    let setup = Setup::new([says("never")])
        .with_journal(journal)
        .with_hook(counting(&calls));
    let state = setup.run().await;
    assert_failed(&state, "at the first entry");
    assert_eq!(
        calls.load(Ordering::SeqCst),
        1,
        "only the hooks before the execution were called"
    );
    assert!(setup.model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_that_a_failing_journal_cuts_are_distinguished() {
    // The first append is that of the input and the answer, the second that of the first end.
    let (journal, tools) = (MemoryJournal::broken(2, Break::Fails), tools());
    let state = setup(&tools).with_journal(journal).run().await;
    let step = state.last_step().unwrap();
    let codes = step.tool_executions.iter();
    let codes: Vec<_> = codes
        .map(|execution| execution.error.as_ref().map(|error| error.code.as_str()))
        .collect();
    let uncertain = Some("tool_effect_uncertain");
    assert_eq!(codes, [uncertain, None, uncertain]);
}

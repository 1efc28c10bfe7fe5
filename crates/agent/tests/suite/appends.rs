//! When the entries of a journal are appended: as rarely as the promises about it allow.

use std::sync::Arc;
use std::time::Duration;

use agent::HookPoint;
use agent::journal::JournalEntry;
use agent::ports::ToolSpec;
use test_support::fake_model::{Beat, asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::hooks::probe::Probe;
use crate::memory_journal::MemoryJournal;
use crate::setup::Setup;

fn tool(name: &str, is_read_only: bool, milliseconds: u64) -> Arc<FakeTool> {
    let behaviour = Behaviour::Wait(Duration::from_millis(milliseconds));
    let spec = FakeTool::new(name, behaviour.clone()).spec.clone();
    let spec = ToolSpec {
        idempotent: is_read_only,
        read_only: is_read_only,
        ..spec
    };
    FakeTool::with_spec(spec, behaviour)
}

fn setup(completions: Vec<Vec<Beat>>) -> Setup {
    Setup::new(completions)
        .with_tool(&tool("writes", false, 20))
        .with_tool(&tool("writes_fast", false, 10))
        .with_tool(&tool("reads", true, 10))
}

/// Runs an execution. Returns the names of the entries of each append.
async fn appends(setup: Setup) -> Vec<Vec<&'static str>> {
    let journal = MemoryJournal::new();
    setup.with_journal(Arc::clone(&journal) as _).run().await;
    let appends = journal.appends();
    let names = |entries: &Vec<JournalEntry>| entries.iter().map(name).collect();
    appends.iter().map(names).collect()
}

fn name(entry: &JournalEntry) -> &'static str {
    match entry {
        JournalEntry::SubagentBegun { .. } => "subagent",
        JournalEntry::EnvironmentChanged { .. } => "environment",
        JournalEntry::Reached(_) => "reached",
        JournalEntry::CallsRequested { .. } => "requested",
        JournalEntry::CallDecided { .. } => "decided",
        JournalEntry::CallBegun { .. } => "begun",
        JournalEntry::CallEnded { .. } => "ended",
    }
}

#[tokio::test(start_paused = true)]
async fn an_execution_of_one_step_appends_nothing() {
    let appended = appends(setup(vec![says("done")])).await;
    assert_eq!(appended, Vec::<Vec<&str>>::new());
}

#[tokio::test(start_paused = true)]
async fn a_step_with_effects_appends_twice_and_the_last_step_never() {
    let asks = |call: &'static str| asks_for(&[(call, "writes", "{}")]);
    let appended = appends(setup(vec![asks("c1"), asks("c2"), says("done")])).await;
    let ends = ["ended", "reached"];
    let expected = [
        vec!["reached", "requested", "begun"],
        ends.to_vec(),
        vec!["requested", "begun"],
        ends.to_vec(),
    ];
    assert_eq!(appended, expected);
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_tools_only_read_appends_once() {
    let asks = asks_for(&[("c1", "reads", "{}"), ("c2", "reads", "{}")]);
    let appended = appends(setup(vec![asks, says("done")])).await;
    assert_eq!(
        appended,
        [["reached", "requested", "begun", "begun", "ended", "ended", "reached"]]
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_call_is_appended_while_another_one_with_effects_is_at_work() {
    let asks = asks_for(&[
        ("c1", "writes", "{}"),
        ("c2", "writes_fast", "{}"),
        ("c3", "reads", "{}"),
    ]);
    let appended = appends(setup(vec![asks, says("done")])).await;
    assert_eq!(appended.first().unwrap().len(), 2 + 3);
    let ends: Vec<_> = appended[1..].to_vec();
    assert_eq!(ends, [vec!["ended"], vec!["ended"], vec!["ended", "reached"]]);
}

#[tokio::test(start_paused = true)]
async fn what_happened_before_a_hook_with_effects_is_appended_before_it_is_called() {
    let run = async |points: &'static [HookPoint]| {
        let asks = asks_for(&[("c1", "reads", "{}")]);
        appends(setup(vec![asks, says("done")]).with_hook(Probe::at_each(points, Ok))).await
    };
    let rest = vec!["requested", "begun", "ended", "reached"];
    assert_eq!(run(&[HookPoint::BeforeExecution]).await, [vec!["reached"], rest]);
    assert_eq!(
        run(&[HookPoint::AfterStep]).await,
        [vec!["reached", "requested", "begun", "ended"], vec!["reached"]]
    );
    let with_last = [
        vec!["reached", "requested", "begun", "ended", "reached"],
        vec!["reached"],
        vec!["reached"],
    ];
    assert_eq!(run(&[HookPoint::OnStop]).await, with_last);
    assert_eq!(run(&[HookPoint::AfterExecution]).await, with_last);
    assert_eq!(
        run(&[HookPoint::AfterToolUse]).await,
        [vec!["reached", "requested", "begun"], vec!["ended", "reached"]],
        "a call that a hook with effects follows counts as one with effects"
    );
}

//! Tools that end the run: their results are stored, the other calls of the step end normally, and
//! no step follows.

use std::time::Duration;

use agent::definition::ErrorPolicyPreset;
use agent::hooks::HookContext;
use agent::journal::{JournalEntry, Progress};
use agent::state::{AgentState, ExecutionStatus, StopReason};
use agent::{AgentEvent, ContinuationDecision, HookPoint};
use serde_json::json;
use test_support::fake_model::{Beat, asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::hooks::probe::Probe;
use crate::memory_journal::MemoryJournal;
use crate::setup::{Setup, assert_ended, transcript};

fn asks() -> Vec<Beat> {
    asks_for(&[("c1", "slow", "{}"), ("c2", "finish", "{}"), ("c3", "slow", "{}")])
}

/// An agent whose model asks for the tool that ends the run between two others, and would go on.
fn setup(finish: Behaviour) -> Setup {
    Setup::new([asks(), says("gone on")])
        .with_tool(&FakeTool::new("slow", Behaviour::Wait(Duration::from_millis(100))))
        .with_tool(&FakeTool::new("finish", finish))
}

fn ends() -> Behaviour {
    Behaviour::End("handed over".to_owned())
}

#[track_caller]
fn assert_ended_by_the_tool(state: &AgentState) {
    assert_eq!(state.status(), Some(ExecutionStatus::Stopped));
    assert_eq!(state.step_count(), 1);
    let signal = state.stop_signal().unwrap();
    assert_eq!(
        (signal.reason, signal.source.as_deref(), signal.message.as_str()),
        (
            StopReason::StopRequested,
            Some("finish"),
            "the tool finish ended the run"
        )
    );
    assert_eq!(json!(signal.context), json!({"call": "c2"}));
    assert!(!signal.is_binding);
}

#[tokio::test(start_paused = true)]
async fn the_run_stops_after_all_calls_of_the_step() {
    for in_turn in [false, true] {
        let setup = setup(ends());
        let setup = if in_turn { setup.with_calls_in_turn() } else { setup };
        let state = setup.run().await;
        assert_ended_by_the_tool(&state);
        assert_eq!(
            transcript(&state),
            [
                "user: go",
                "assistant: call c1 call c2 call c3",
                "tool: result c1 result c2 result c3"
            ]
        );
        let step = state.last_step().unwrap();
        assert_eq!(step.tool_executions[1].content[0].as_text(), Some("handed over"));
        assert_eq!(setup.model.requests().len(), 1);
        let events = setup.events.events();
        let decisions: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::ContinuationEvaluated {
                    decision,
                    reason,
                    source,
                    ..
                } => Some((*decision, *reason, source.as_deref())),
                _ => None,
            })
            .collect();
        let stopped = (
            ContinuationDecision::Stop,
            Some(StopReason::StopRequested),
            Some("finish"),
        );
        assert_eq!(decisions, [stopped]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_may_end_the_run_and_the_error_policy_may_fail_it() {
    let fails = || Behaviour::FailAndEnd("no such account".to_owned());
    let state = setup(fails()).run().await;
    assert_ended_by_the_tool(&state);
    let execution = &state.last_step().unwrap().tool_executions[1];
    assert_eq!(execution.content[0].as_text(), Some("no such account"));
    assert!(execution.is_error_result());

    let strict = setup(fails()).with_policy(ErrorPolicyPreset::StopOnAnyError);
    let state = strict.run().await;
    assert_ended(&state, ExecutionStatus::Failed, StopReason::ErrorForbade);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_continue_overrides_the_tool() {
    let insisting = Probe::changing(HookPoint::AfterStep, |context| {
        let now = context.state.updated_at();
        let state = match context.state.step_count() {
            0 => context.state.with_continuation_requested(now),
            _ => context.state,
        };
        HookContext { state, ..context }
    });
    let state = setup(ends()).with_hook(insisting).run().await;
    assert_eq!(state.stop_reason(), Some(StopReason::Completed));
    assert_eq!(state.final_text(), "gone on");
}

#[tokio::test(start_paused = true)]
async fn the_next_worker_after_the_call_also_ends_the_run() {
    let journal = MemoryJournal::new();
    let first = setup(ends()).with_journal(journal.clone());
    let begun = first.new_state();
    first.run_from(begun.clone(), "go").await;
    let entries = journal.entries();
    let has_ended = |entry: &JournalEntry| matches!(entry, JournalEntry::CallEnded { index: 1, .. });
    let at = entries.iter().position(has_ended).unwrap();
    let progress = Progress::of(begun, entries[..=at].to_vec()).unwrap().unwrap();
    let next = setup(ends()).with_journal(MemoryJournal::new());
    let state = next.go_on(progress).await;
    assert_ended_by_the_tool(&state);
    assert!(next.model.requests().is_empty());
}

//! Hooks around tools: a call blocked, a result supplied, arguments changed, and a state that goes
//! from hook to hook.

use agent::HookPoint;
use agent::hooks::{HookContext, HookSubject};
use agent::ports::{ToolDecision, ToolUse};
use agent::state::{ExecutionStatus, StopReason, StopSignal, ToolVerdict};
use serde_json::json;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Object;
use values::message::{ContentPart, joined_text};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, transcript};

/// Changes the use of the call with the id.
fn deciding(id: &'static str, change: impl Fn(ToolUse) -> ToolUse + Send + Sync + 'static) -> Probe {
    Probe::changing(HookPoint::BeforeToolUse, move |context| {
        let subject = match context.subject {
            HookSubject::ToolUse(tool_use) if tool_use.call.id == id => HookSubject::ToolUse(change(tool_use)),
            subject => subject,
        };
        HookContext { subject, ..context }
    })
}

#[tokio::test(start_paused = true)]
async fn a_blocked_call_is_not_executed_the_model_reads_why_and_the_run_completes() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let calls = [("c1", "echo", "{}"), ("c2", "echo", "{}")];
    let setup = Setup::new([asks_for(&calls), says("done")])
        .with_tool(&echo)
        .with_hook(deciding("c1", |tool_use| ToolUse {
            decision: ToolDecision::block("not on Sundays"),
            ..tool_use
        }));
    let state = setup.run().await;
    assert_eq!((state.status(), echo.begun()), (Some(ExecutionStatus::Completed), 1));
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            "assistant: call c1 call c2",
            "tool: error c1 result c2",
            "assistant: done"
        ]
    );
    let read = &setup.model.requests()[1].messages[2];
    let results: Vec<_> = read.tool_results().map(|result| joined_text(&result.content)).collect();
    assert_eq!(results, ["not on Sundays", "{}"]);
    let step = state.steps().next().unwrap();
    let verdicts: Vec<_> = step.tool_executions.iter().map(|execution| execution.verdict).collect();
    assert_eq!(verdicts, [ToolVerdict::Blocked, ToolVerdict::Executed]);
    // A call that was forbidden has not failed.
    assert!(state.errors().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_supplied_result_stands_for_the_tool_s() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let setup = Setup::new([asks_for(&[("c1", "echo", "{}")]), says("done")])
        .with_tool(&echo)
        .with_hook(deciding("c1", |tool_use| ToolUse {
            decision: ToolDecision::Supply {
                content: vec![ContentPart::text("from the cache")],
                is_error: false,
            },
            ..tool_use
        }));
    let state = setup.run().await;
    assert_eq!(echo.begun(), 0);
    let execution = &state.steps().next().unwrap().tool_executions[0];
    assert_eq!(
        (
            execution.verdict,
            joined_text(&execution.content).as_str(),
            execution.is_error_result()
        ),
        (ToolVerdict::Supplied, "from the cache", false)
    );
    assert_eq!(transcript(&state)[2], "tool: result c1");
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_reach_the_tool_and_the_history_has_the_original() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let setup = Setup::new([asks_for(&[("c1", "echo", r#"{"note": "model"}"#)]), says("done")])
        .with_tool(&echo)
        .with_hook(deciding("c1", |mut tool_use| {
            tool_use.call.arguments = r#"{"note":"hook"}"#.to_owned();
            tool_use
        }));
    let state = setup.run().await;
    let execution = &state.steps().next().unwrap().tool_executions[0];
    assert_eq!(joined_text(&execution.content), r#"{"note":"hook"}"#);
    assert_eq!(execution.call.arguments, r#"{"note": "model"}"#);
    let asked = state.stored_messages().nth(1).unwrap().tool_calls().next().unwrap();
    assert_eq!(asked.arguments, r#"{"note": "model"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_changed_result_is_what_the_model_reads() {
    let broken = FakeTool::new("broken", Behaviour::Fail("line 7: panic".to_owned()));
    let mended = Probe::changing(HookPoint::AfterToolUse, |mut context| {
        if let HookSubject::ToolExecution(execution) = &mut context.subject {
            execution.error = None;
            execution.content = vec![ContentPart::text("nothing found")];
        }
        context
    });
    let setup = Setup::new([asks_for(&[("c1", "broken", "{}")]), says("done")])
        .with_tool(&broken)
        .with_hook(mended);
    let state = setup.run().await;
    assert_eq!(state.status(), Some(ExecutionStatus::Completed));
    assert!(state.errors().is_empty());
    assert_eq!(transcript(&state)[2], "tool: result c1");
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_at_a_tool_does_to_the_state_reaches_the_next_tool_and_the_step() {
    /// Appends the point's letter to the metadata `seen`.
    fn noting(point: HookPoint, letter: char) -> Probe {
        Probe::changing(point, move |context| {
            let seen = context
                .state
                .metadata()
                .get("seen")
                .and_then(|seen| seen.as_str())
                .unwrap_or_default();
            let seen = json!(format!("{seen}{letter}"));
            let state = context
                .state
                .clone()
                .with_metadata(Object::from_iter([("seen".to_owned(), seen)]));
            HookContext { state, ..context }
        })
    }
    let calls = [("c1", "echo", "{}"), ("c2", "echo", "{}")];
    // The hooks before both calls come first when the calls work at the same time.
    for (in_turn, seen) in [(false, "rbbaa"), (true, "rbaba")] {
        let setup = Setup::new([asks_for(&calls)])
            .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
            .with_hook(noting(HookPoint::BeforeModelRequest, 'r'))
            .with_hook(noting(HookPoint::BeforeToolUse, 'b'))
            .with_hook(noting(HookPoint::AfterToolUse, 'a'))
            .with_hook(noting(HookPoint::AfterStep, 's'))
            .with_hook(Probe::changing(HookPoint::AfterStep, |context| {
                let (signal, now) = (
                    StopSignal::new(StopReason::StopRequested, "probe", "enough"),
                    context.state.updated_at(),
                );
                let state = context.state.clone().with_stop_signal(signal, now);
                HookContext { state, ..context }
            }));
        let setup = if in_turn { setup.with_calls_in_turn() } else { setup };
        let state = setup.run().await;
        assert_eq!(state.metadata()["seen"], json!(format!("{seen}s")), "{in_turn}");
    }
}

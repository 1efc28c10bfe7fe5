//! A hook that fails or panics, at every point: the run fails with the hook's name, and no output
//! is lost.

use agent::HookPoint;
use agent::hooks::{HookError, HookSubject};
use agent::state::{ErrorKind, ExecutionStatus, StopReason, ToolVerdict};
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::hooks::probe::Probe;
use crate::setup::{Setup, transcript};

const NOT_CALLED: &str = "The run ended before this tool was called.";

/// An execution with a call that works, one that fails and a final answer: it passes every point.
fn setup() -> Setup {
    Setup::new([asks_for(&[("c1", "echo", "{}"), ("c2", "broken", "{}")]), says("done")])
        .with_tool(&FakeTool::new("echo", Behaviour::EchoArguments))
        .with_tool(&FakeTool::new("broken", Behaviour::Fail("broke".to_owned())))
}

#[tokio::test(start_paused = true)]
async fn a_failure_at_any_point_fails_the_run_by_name_and_loses_no_state() {
    use HookPoint as P;
    let (asked, refused) = ("assistant: call c1 call c2", "tool: error c1 error c2");
    let (worked, done) = ("tool: result c1 error c2", "assistant: done");
    for (point, requests, said) in [
        (P::BeforeExecution, 0, vec![]),
        (P::BeforeStep, 0, vec![]),
        (P::BeforeModelRequest, 0, vec![]),
        (P::AfterModelRequest, 1, vec![asked, refused]),
        (P::BeforeToolUse, 1, vec![asked, refused]),
        (P::AfterToolUse, 1, vec![asked, worked]),
        (P::OnError, 1, vec![asked, worked]),
        (P::AfterStep, 1, vec![asked, worked]),
        (P::OnStop, 2, vec![asked, worked, done]),
        (P::AfterExecution, 2, vec![asked, worked, done]),
    ] {
        for panics in [false, true] {
            let probe = Probe::at(point, move |_| {
                assert!(!panics, "secret of the hook");
                Err(HookError::new("out of ink"))
            });
            let setup = setup().with_hook(probe.named("fragile"));
            let state = setup.run().await;
            let case = format!("{point:?}, panics: {panics}");

            assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{case}");
            assert_eq!(state.stop_reason(), Some(StopReason::ErrorForbade), "{case}");
            let error = state.errors().last().cloned().expect("the failure is recorded");
            let why = if panics {
                "it met an internal error"
            } else {
                "out of ink"
            };
            assert_eq!(error.kind, ErrorKind::Hook, "{case}");
            assert_eq!(error.message, format!("the hook fragile failed: {why}"), "{case}");
            assert_eq!(error.source_name.as_deref(), Some("fragile"), "{case}");
            assert_eq!(setup.model.requests().len(), requests, "{case}");
            let said: Vec<_> = [vec!["user: go"], said.clone()].concat();
            assert_eq!(transcript(&state), said, "{case}");
            assert_eq!(setup.events.names().last().unwrap(), "execution.ended", "{case}");
            assert_eq!(state.usage().total_tokens, 15 * requests as u64, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_a_failed_hook_blocked_are_marked() {
    for point in [HookPoint::AfterModelRequest, HookPoint::BeforeToolUse] {
        let echo = FakeTool::new("echo", Behaviour::EchoArguments);
        let setup = Setup::new([asks_for(&[("c1", "echo", "{}")])])
            .with_tool(&echo)
            .with_hook(Probe::at(point, |_| Err(HookError::new("no"))));
        let state = setup.run().await;
        let execution = &state.last_step().unwrap().tool_executions[0];
        assert_eq!(execution.verdict, ToolVerdict::Blocked, "{point:?}");
        assert_eq!(execution.content[0].as_text(), Some(NOT_CALLED), "{point:?}");
        assert_eq!(echo.begun(), 0, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_should_have_seen_first_is_withheld_when_another_fails_before_it() {
    let withheld = "The result is withheld, because a hook failed before it could be checked.";
    for (point, said) in [
        (HookPoint::AfterModelRequest, vec!["user: go"]),
        (
            HookPoint::AfterToolUse,
            vec!["user: go", "assistant: call c1", "tool: error c1"],
        ),
    ] {
        let secret = Behaviour::Fail("top-secret".to_owned());
        let answer = match point {
            HookPoint::AfterModelRequest => says("top-secret"),
            _ => asks_for(&[("c1", "leaky", "{}")]),
        };
        let guard = Probe::changing(point, |context| context).named("guard").holding_back();
        let setup = Setup::new([answer])
            .with_tool(&FakeTool::new("leaky", secret))
            .with_hook_at(1, Probe::at(point, |_| Err(HookError::new("no"))))
            .with_hook(guard);
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{point:?}");
        assert_eq!(transcript(&state), said, "{point:?}");
        let everything = format!("{}{:?}", serde_json::to_string(&state).unwrap(), setup.events.events());
        assert!(!everything.contains("top-secret"), "{everything}");
        assert_eq!(everything.contains(withheld), point == HookPoint::AfterToolUse);
        assert_eq!(state.usage().total_tokens, 15, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_begins_once_a_hook_has_failed() {
    let ids: Vec<_> = (0..10).map(|number| format!("c{number}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "echo", "{}")).collect();
    // After the calls the first failure comes while as many as work at the same time are under way.
    for (point, failing, begun) in [(HookPoint::BeforeToolUse, "c1", 0), (HookPoint::AfterToolUse, "c0", 8)] {
        let echo = FakeTool::new("echo", Behaviour::EchoArguments);
        let probe = Probe::at(point, move |context| {
            let call = match &context.subject {
                HookSubject::ToolUse(tool_use) => &tool_use.call,
                HookSubject::ToolExecution(execution) => &execution.call,
                other => panic!("{other:?}"),
            };
            if call.id == failing {
                return Err(HookError::new("no"));
            }
            Ok(context)
        });
        let setup = Setup::new([asks_for(&calls)]).with_tool(&echo).with_hook(probe);
        let state = setup.run().await;
        assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{point:?}");
        assert_eq!(echo.begun(), begun, "{point:?}");
        let executions = &state.last_step().unwrap().tool_executions;
        let retained = executions
            .iter()
            .filter(|execution| execution.verdict == ToolVerdict::Blocked);
        assert_eq!(retained.count(), ids.len() - begun, "{point:?}");
    }
}

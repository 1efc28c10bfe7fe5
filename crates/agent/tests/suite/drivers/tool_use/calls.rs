//! Steps that call tools: at once, with one result for each call, and under each error policy.

use agent::AgentEvent;
use agent::definition::ErrorPolicyPreset;
use agent::state::{AgentStep, AgentStepType};
use chrono::TimeDelta;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use tools::CallLimits;

use crate::setup::{Setup, shown, transcript};

#[tokio::test(start_paused = true)]
async fn two_calls_of_a_step_run_at_once_and_report_their_own_times() {
    let wait = FakeTool::new("wait", Behaviour::WaitAsAsked);
    let calls = [("c1", "wait", r#"{"ms": 150}"#), ("c2", "wait", r#"{"ms": 100}"#)];
    let setup = Setup::new([asks_for(&calls), says("done")]).with_tool(&wait);
    let state = setup.run().await;
    assert_eq!(wait.peak(), 2);
    let step = &state.execution().unwrap().step_executions[0];
    let times: Vec<_> = step
        .step
        .tool_executions
        .iter()
        .map(|e| e.duration().num_milliseconds())
        .collect();
    assert_eq!(
        (times.as_slice(), step.duration()),
        ([150, 100].as_slice(), TimeDelta::milliseconds(150))
    );
    assert_eq!(
        transcript(&state),
        [
            "user: go",
            "assistant: call c1 call c2",
            "tool: result c1 result c2",
            "assistant: done"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_work_at_once_than_allowed_and_events_come_as_calls_end() {
    let wait = FakeTool::new("wait", Behaviour::WaitAsAsked);
    let ids: Vec<String> = (0..17).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "wait", r#"{"ms": 100}"#)).collect();
    let setup = Setup::new([asks_for(&calls), says("done")]).with_tool(&wait);
    let state = setup.run().await;
    let step = &state.execution().unwrap().step_executions[0];
    assert_eq!((wait.begun(), wait.peak()), (17, CallLimits::default().concurrency));
    // Three rounds of eight: waiting for a free place is not the tool's time.
    assert_eq!(step.duration(), TimeDelta::milliseconds(300));
    let answered = step.step.tool_executions.iter();
    assert_eq!(
        answered.map(|e| (e.call.id.clone(), e.duration())).collect::<Vec<_>>(),
        ids.into_iter()
            .map(|id| (id, TimeDelta::milliseconds(100)))
            .collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn calls_in_turn_end_before_the_next_begins() {
    let calls = [("c1", "wait", r#"{"ms": 150}"#), ("c2", "wait", r#"{"ms": 50}"#)];
    for (parallel, peak, ended, millis) in [(true, 2, ["c2", "c1"], 150), (false, 1, ["c1", "c2"], 200)] {
        let wait = FakeTool::new("wait", Behaviour::WaitAsAsked);
        let setup = Setup::new([asks_for(&calls), says("done")]).with_tool(&wait);
        let setup = if parallel { setup } else { setup.with_calls_in_turn() };
        let state = setup.run().await;
        let reported = setup.events.events().into_iter().filter_map(|event| match event {
            AgentEvent::ToolCallCompleted { call_id, .. } => Some(call_id),
            _ => None,
        });
        assert_eq!(reported.collect::<Vec<_>>(), ended);
        assert_eq!(wait.peak(), peak);
        let step = &state.execution().unwrap().step_executions[0];
        assert_eq!(step.duration(), TimeDelta::milliseconds(millis));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_has_the_trace_of_its_own_execution_only() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = [
        asks_for(&[("c1", "echo", "{}")]),
        says("one"),
        asks_for(&[("c1", "echo", "{}"), ("c2", "nothing", "")]),
        says("two"),
    ];
    let setup = Setup::new(answers).with_tool(&echo);
    let state = setup.run().await;
    let state = setup.run_from(state, "again").await;
    let requests = setup.model.requests();
    let shown: Vec<_> = requests.iter().map(|request| shown(request.messages.iter())).collect();
    let first = ["user: go", "assistant: call c1", "tool: result c1"];
    let second = [
        "user: go",
        "assistant: one",
        "user: again",
        "assistant: call c1 call c2",
        "tool: result c1 error c2",
    ];
    assert_eq!(shown, [&first[..1], &first[..], &second[..3], &second[..]]);
    assert_eq!((state.execution_count(), state.stored_messages().count()), (2, 8));
    // Each request of an execution begins with the one before it.
    assert_eq!(requests[1].messages.to_vec()[..1], requests[0].messages.to_vec()[..]);
    assert_eq!(requests[3].messages.to_vec()[..3], requests[2].messages.to_vec()[..]);
}

#[tokio::test(start_paused = true)]
async fn messages_are_tagged_with_where_they_came_from() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let setup = Setup::new([asks_for(&[("c1", "echo", "{}")]), says("done")]).with_tool(&echo);
    let state = setup.run().await;
    let execution = state.execution().unwrap();
    let steps: Vec<_> = state.steps().map(|step| Some(step.id)).collect();
    let tags: Vec<_> = state.stored_messages().map(|message| message.tags.clone()).collect();
    let positions: Vec<_> = tags.iter().map(|tags| (tags.step_id, tags.is_trace)).collect();
    assert_eq!(
        positions,
        [(None, false), (steps[0], true), (steps[0], true), (steps[1], false)]
    );
    assert!(
        tags.iter()
            .all(|tags| tags.execution_id == Some(execution.execution_id))
    );
    assert!(tags.iter().all(|tags| tags.agent_id == Some(state.agent_id())));
}

#[tokio::test(start_paused = true)]
async fn the_error_policy_decides_what_failing_tools_do() {
    use agent::state::{ExecutionStatus as Status, StopReason as Reason};
    // The tools of five steps fail or work; the sixth answer is final.
    for (policy, steps, executed, status, reason) in [
        (
            ErrorPolicyPreset::IgnoreToolErrors,
            "fffff",
            6,
            Status::Completed,
            Reason::Completed,
        ),
        (
            ErrorPolicyPreset::StopOnAnyError,
            "wwfff",
            3,
            Status::Failed,
            Reason::ErrorForbade,
        ),
        (
            ErrorPolicyPreset::StopOnAnyError,
            "wwwww",
            6,
            Status::Completed,
            Reason::Completed,
        ),
        (
            ErrorPolicyPreset::RetryToolErrors,
            "fffff",
            3,
            Status::Stopped,
            Reason::RetryLimitReached,
        ),
        (
            ErrorPolicyPreset::RetryToolErrors,
            "wffff",
            4,
            Status::Stopped,
            Reason::RetryLimitReached,
        ),
        (
            ErrorPolicyPreset::RetryToolErrors,
            "ffwff",
            6,
            Status::Completed,
            Reason::Completed,
        ),
    ] {
        let fails = FakeTool::new("fails", Behaviour::Fail("no luck".to_owned()));
        let works = FakeTool::new("works", Behaviour::Answer("luck".to_owned()));
        let step = |c: char| asks_for(&[("c1", if c == 'f' { "fails" } else { "works" }, "")]);
        let setup = Setup::new(steps.chars().map(step).chain([says("done")]))
            .with_tool(&fails)
            .with_tool(&works)
            .with_policy(policy);
        let state = setup.run().await;
        assert_eq!(state.step_count(), executed, "{policy:?} {steps}");
        assert_eq!(
            (state.status(), state.stop_reason()),
            (Some(status), Some(reason)),
            "{policy:?} {steps}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_type_of_a_step_follows_from_its_contents() {
    let fails = FakeTool::new("fails", Behaviour::Fail("no luck".to_owned()));
    let works = FakeTool::new("works", Behaviour::Answer("luck".to_owned()));
    let answers = [
        asks_for(&[("c1", "works", "")]),
        asks_for(&[("c1", "works", ""), ("c2", "fails", "")]),
        says("done"),
    ];
    let setup = Setup::new(answers).with_tool(&fails).with_tool(&works);
    let state = setup.run().await;
    let types: Vec<_> = state.steps().map(AgentStep::step_type).collect();
    assert_eq!(
        types,
        [
            AgentStepType::ToolExecution,
            AgentStepType::Error,
            AgentStepType::FinalResponse
        ]
    );
}

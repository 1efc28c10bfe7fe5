//! In which order things happen, and what a hook that fails does.

use std::sync::{Arc, Mutex};

use agent::hooks::HookError;
use agent::state::{ErrorKind, ExecutionStatus, StopReason, StopSignal};
use agent::{AgentEvent, ContinuationDecision, HookPoint};
use test_support::clock::TestClock;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;

use crate::hooks::probe::Probe;
use crate::setup::{Setup, assert_ended, transcript};

#[tokio::test(start_paused = true)]
async fn events_and_hooks_come_in_the_order_of_the_loop() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let setup = Setup::new([asks_for(&[("c1", "echo", "{}")]), says("done")]).with_tool(&echo);
    let (events, noted) = (Arc::clone(&setup.events), Arc::clone(&notes));
    // Notes each point at which it is called, between the events.
    let setup = setup.with_hook(Probe::at_each(HookPoint::ALL, move |context| {
        noted.lock().unwrap().push((events.events().len(), context.point));
        Ok(context)
    }));
    let state = setup.run().await;

    let mut story: Vec<String> = setup.events.names();
    for (at, point) in notes.lock().unwrap().iter().rev() {
        story.insert(*at, format!("{point:?}"));
    }
    assert_eq!(
        story,
        [
            "execution.started",
            "BeforeExecution",
            "step.started",
            "BeforeStep",
            "BeforeModelRequest",
            "model.requested",
            "tool_call.started",
            "tool_call.delta",
            "model.responded",
            "AfterModelRequest",
            "BeforeToolUse",
            "tool_call.requested",
            "AfterToolUse",
            "tool_call.completed",
            "AfterStep",
            "step.completed",
            "continuation.evaluated",
            "step.started",
            "BeforeStep",
            "BeforeModelRequest",
            "model.requested",
            "message.delta",
            "model.responded",
            "AfterModelRequest",
            "AfterStep",
            "step.completed",
            "continuation.evaluated",
            "OnStop",
            "AfterExecution",
            "execution.ended",
        ]
    );
    assert_eq!(
        transcript(&state),
        ["user: go", "assistant: call c1", "tool: result c1", "assistant: done"]
    );
    assert_ended(&state, ExecutionStatus::Completed, StopReason::Completed);
    assert_eq!(
        (
            state.final_text().as_str(),
            state.step_count(),
            state.usage().total_tokens
        ),
        ("done", 2, 30)
    );
}

#[tokio::test(start_paused = true)]
async fn each_step_ends_with_a_decision() {
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let setup = Setup::new([asks_for(&[("c1", "echo", "{}")]), says("done")]).with_tool(&echo);
    setup.run().await;
    let decisions = setup.events.events().into_iter().filter_map(|event| match event {
        AgentEvent::ContinuationEvaluated {
            step_number,
            decision,
            reason,
            ..
        } => Some((step_number, decision, reason)),
        _ => None,
    });
    assert_eq!(
        decisions.collect::<Vec<_>>(),
        [
            (1, ContinuationDecision::Continue, None),
            (2, ContinuationDecision::Stop, Some(StopReason::Completed)),
        ]
    );
}

/// Asks for one more step after each.
fn insisting(clock: TestClock) -> Probe {
    Probe::at_each(&[HookPoint::BeforeStep, HookPoint::AfterStep], move |mut context| {
        context.state = context.state.with_continuation_requested(clock.now());
        Ok(context)
    })
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_fails_the_execution_and_retains_the_state() {
    for (fails_at, requests, conversation) in [
        (HookPoint::BeforeExecution, 0, vec!["user: go"]),
        (HookPoint::BeforeStep, 0, vec!["user: go"]),
        (HookPoint::AfterStep, 1, vec!["user: go", "assistant: hello"]),
        (HookPoint::OnStop, 1, vec!["user: go", "assistant: hello"]),
        (HookPoint::AfterExecution, 1, vec!["user: go", "assistant: hello"]),
    ] {
        for insists in [false, true] {
            let mut setup = Setup::new([says("hello")]);
            let ends_otherwise = matches!(fails_at, HookPoint::OnStop | HookPoint::AfterExecution);
            if insists && !ends_otherwise {
                let clock = setup.clock;
                setup = setup.with_hook(insisting(clock));
            }
            let fragile = Probe::at(fails_at, |_| Err(HookError::new("out of ink"))).named("fragile");
            let setup = setup.with_hook(fragile);
            let state = setup.run().await;
            let case = format!("{fails_at:?}, insists: {insists}");

            assert_eq!(state.status(), Some(ExecutionStatus::Failed), "{case}");
            assert_eq!(state.stop_reason(), Some(StopReason::ErrorForbade), "{case}");
            let error = state.errors().last().cloned().expect("the failure is recorded");
            assert_eq!(
                (error.kind, error.code.as_str()),
                (ErrorKind::Hook, "hook_failed"),
                "{case}"
            );
            assert_eq!(error.source_name.as_deref(), Some("fragile"), "{case}");
            assert_eq!(error.message, "the hook fragile failed: out of ink", "{case}");
            assert_eq!(setup.model.requests().len(), requests, "{case}");
            assert_eq!(transcript(&state), conversation, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_a_step_makes_none_and_a_stop_after_it_retains_it() {
    for (point, steps, requests) in [
        (HookPoint::BeforeExecution, 0, 0),
        (HookPoint::BeforeStep, 0, 0),
        (HookPoint::AfterStep, 1, 1),
    ] {
        let echo = FakeTool::new("echo", Behaviour::EchoArguments);
        let setup = Setup::new([asks_for(&[("c1", "echo", "{}")])]).with_tool(&echo);
        let clock = setup.clock;
        let setup = setup.with_hook(Probe::changing(point, move |mut context| {
            let signal = StopSignal::new(StopReason::StopRequested, "stops", "enough");
            context.state = context.state.with_stop_signal(signal, clock.now());
            context
        }));
        let state = setup.run().await;
        assert_eq!(
            (state.step_count(), setup.model.requests().len()),
            (steps, requests),
            "{point:?}"
        );
        assert_eq!(state.status(), Some(ExecutionStatus::Stopped), "{point:?}");
        assert_eq!(state.stop_reason(), Some(StopReason::StopRequested), "{point:?}");
    }
}

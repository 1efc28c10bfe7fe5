//! `should_stop`: signals, requests to continue and tool calls against each other.

use std::sync::Arc;

use agent_runtime::agent::state::{AgentState, AgentStep, StopReason, StopSignal};
use agent_runtime::clock::Clock as _;
use agent_runtime::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use agent_runtime::message::{ContentPart, Message, Role, ToolCall};

use crate::support::clock::TestClock;

/// A state in an execution whose step in progress asks for a tool, or does not.
fn state_in_step(clock: &TestClock, has_tool_calls: bool) -> AgentState {
    let call = ContentPart::ToolCall(ToolCall {
        id: "c1".to_owned(),
        name: "echo".to_owned(),
        arguments: "{}".to_owned(),
        signature: None,
    });
    let part = if has_tool_calls {
        call
    } else {
        ContentPart::text("done")
    };
    let message = Message::new(
        MessageId::generate(&UuidV7Source),
        Role::Assistant,
        vec![part],
        clock.now(),
    );
    let mut step = AgentStep::new(StepId::generate(&UuidV7Source), Arc::from([]));
    step.output_messages.push(Arc::new(message));
    AgentState::new(AgentId::generate(&UuidV7Source), clock.now())
        .start_execution(ExecutionId::generate(&UuidV7Source), clock.now())
        .with_step_started(clock.now())
        .with_current_step(step, clock.now())
}

#[test]
fn signals_stop_unless_continuation_is_requested_and_tool_calls_go_on() {
    let clock = TestClock::new();
    for (signal, requested, tool_calls, stops) in [
        (false, false, false, true),
        (false, false, true, false),
        (false, true, false, false),
        (false, true, true, false),
        (true, false, false, true),
        (true, false, true, true),
        (true, true, false, false),
        (true, true, true, false),
    ] {
        let mut state = state_in_step(&clock, tool_calls);
        if signal {
            let signal = StopSignal::new(StopReason::StopRequested, "test", "enough");
            state = state.with_stop_signal(signal, clock.now());
        }
        if requested {
            state = state.with_continuation_requested(clock.now());
        }
        assert_eq!(state.should_stop(), stops, "{signal} {requested} {tool_calls}");
        // Archiving the step changes nothing.
        let state = state.with_step_recorded(clock.now());
        assert_eq!(
            state.should_stop(),
            stops,
            "{signal} {requested} {tool_calls}, archived"
        );
    }
}

#[test]
fn without_an_execution_there_is_nothing_to_go_on_with() {
    let clock = TestClock::new();
    let state = AgentState::new(AgentId::generate(&UuidV7Source), clock.now());
    assert!(state.should_stop());
    assert!(state_in_step(&clock, true).for_next_execution().should_stop());
}

#[test]
fn a_new_step_forgets_what_was_wanted_of_the_last_one() {
    let clock = TestClock::new();
    let signal = StopSignal::new(StopReason::StopRequested, "test", "enough");
    let state = state_in_step(&clock, true).with_stop_signal(signal, clock.now());
    let state = state
        .with_continuation_requested(clock.now())
        .with_step_recorded(clock.now());
    let state = state.with_step_started(clock.now());
    assert_eq!((state.stop_reason(), state.stop_signal()), (None, None));
}

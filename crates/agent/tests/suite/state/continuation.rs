//! `should_stop`: signals, requests to continue and tool calls against each other.

use std::sync::Arc;

use agent::state::{AgentState, AgentStep, ExecutionContinuation, Messages, StopReason, StopSignal};
use test_support::clock::TestClock;
use test_support::fake_model::tool_call;
use values::clock::Clock as _;
use values::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use values::message::{ContentPart, Message, Role};

use crate::comparison::without_execution;

/// A state in an execution whose step in progress asks for a tool, or does not.
fn state_in_step(clock: &TestClock, has_tool_calls: bool) -> AgentState {
    let call = ContentPart::ToolCall(tool_call("c1", "echo", "{}"));
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
    let mut step = AgentStep::new(StepId::generate(&UuidV7Source), Messages::default());
    step.output_messages.push(Arc::new(message));
    AgentState::new(AgentId::generate(&UuidV7Source), clock.now())
        .start_execution(ExecutionId::generate(&UuidV7Source), clock.now())
        .with_step_started(clock.now())
        .with_current_step(step, clock.now())
}

/// The wishes at the end of a step: a stop and whether it is binding, another step, another try.
type Wanted = (Option<bool>, bool, bool);

fn with_wanted(state: AgentState, (signal, requested, retry): Wanted, clock: &TestClock) -> AgentState {
    let mut state = state;
    if let Some(is_binding) = signal {
        let signal = StopSignal::new(StopReason::StopRequested, "test", "enough");
        let signal = if is_binding { signal.binding() } else { signal };
        state = state.with_stop_signal(signal, clock.now());
    }
    if requested {
        state = state.with_continuation_requested(clock.now());
    }
    if retry {
        state = state.with_retry_wanted(clock.now());
    }
    state
}

#[test]
fn signals_stop_unless_continuation_is_requested_and_tool_calls_and_retries_continue() {
    let clock = TestClock::new();
    let (none, plain, binding) = (None, Some(false), Some(true));
    for (signal, requested, retry, tool_calls, stops) in [
        (none, false, false, false, true),
        (none, false, false, true, false),
        (none, false, true, false, false),
        (none, false, true, true, false),
        (none, true, false, false, false),
        (none, true, false, true, false),
        (none, true, true, false, false),
        (none, true, true, true, false),
        (plain, false, false, false, true),
        (plain, false, false, true, true),
        (plain, false, true, false, true),
        (plain, false, true, true, true),
        (plain, true, false, false, false),
        (plain, true, false, true, false),
        (plain, true, true, false, false),
        (plain, true, true, true, false),
        (binding, false, false, false, true),
        (binding, false, false, true, true),
        (binding, false, true, false, true),
        (binding, false, true, true, true),
        (binding, true, false, false, true),
        (binding, true, false, true, true),
        (binding, true, true, false, true),
        (binding, true, true, true, true),
    ] {
        let wanted = (signal, requested, retry);
        let state = with_wanted(state_in_step(&clock, tool_calls), wanted, &clock);
        let case = format!("{wanted:?} {tool_calls}");
        assert_eq!(state.should_stop(), stops, "{case}");
        // Archiving the step changes nothing, nor does the order in which things were wanted.
        let archived = state.with_step_recorded(clock.now());
        assert_eq!(archived.should_stop(), stops, "{case}, archived");
        let late = with_wanted(state_in_step(&clock, tool_calls), (none, requested, retry), &clock);
        let late = with_wanted(late, (signal, false, false), &clock);
        assert_eq!(late.should_stop(), stops, "{case}, signalled last");
    }
}

#[test]
fn only_the_request_to_continue_holds_until_the_next_step() {
    let clock = TestClock::new();
    for (signal, requested, retry) in [
        (Some(true), true, true),
        (Some(false), false, true),
        (None, true, false),
    ] {
        let state = with_wanted(state_in_step(&clock, true), (signal, requested, retry), &clock);
        let state = state.with_step_recorded(clock.now()).with_step_started(clock.now());
        let continuation = &state.execution().unwrap().continuation;
        assert!(continuation.stop_signals.is_empty());
        assert_eq!(
            (continuation.is_continuation_requested, continuation.is_retry_wanted),
            (requested, false)
        );
        let objected = with_wanted(state.clone(), (Some(false), false, false), &clock);
        assert_eq!(objected.execution().unwrap().continuation.should_stop(), !requested);
        // The driver's step settles it.
        let granted = state.with_step_granted(clock.now());
        assert_eq!(
            granted.execution().unwrap().continuation,
            ExecutionContinuation::default()
        );
    }
}

#[test]
fn without_an_execution_there_is_nothing_to_continue() {
    let clock = TestClock::new();
    let state = AgentState::new(AgentId::generate(&UuidV7Source), clock.now());
    assert!(state.should_stop());
    assert!(without_execution(&state_in_step(&clock, true)).should_stop());
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

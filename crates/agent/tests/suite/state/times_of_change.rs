//! Which transitions move the time of the last change: all but settings, whose time others note.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::state::{AgentError, AgentState, AgentStep, ErrorKind, StopReason, StopSignal};
use chrono::TimeDelta;
use serde_json::json;
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, StepId, UuidV7Source};
use values::message::{Coverage, Message, Role};
use values::model_ref::ResponseFormat;
use values::session::{Overrides, RememberedApproval, ToolPins, WaitingStep, hash_arguments};
use values::usage::Usage;

const BEGUN: Timestamp = Timestamp::UNIX_EPOCH;

/// Where transitions stand.
const SOURCES: [&str; 3] = [
    include_str!("../../../src/state/agent_state.rs"),
    include_str!("../../../src/state/conversation.rs"),
    include_str!("../../../src/state/transitions.rs"),
];

/// Returns the public transitions, each with whether it is told the time.
fn transitions() -> BTreeMap<String, bool> {
    let functions = SOURCES.iter().flat_map(|source| source.split("    pub fn ").skip(1));
    let signatures = functions.filter_map(|function| function.split(" {\n").next());
    let transitions = signatures.filter(|signature| signature.ends_with("-> Self") && signature.contains("self"));
    let reported = transitions.map(|signature| {
        let name = signature.split('(').next().unwrap().to_owned();
        (name, signature.contains("now: Timestamp"))
    });
    // This one is given the time that was noted before.
    reported.filter(|(name, _)| name != "restored").collect()
}

fn message() -> Message {
    Message::text(MessageId::generate(&UuidV7Source), Role::User, "hi", BEGUN)
}

fn in_step() -> AgentState {
    AgentState::new(AgentId::generate(&UuidV7Source), BEGUN)
        .start_execution(ExecutionId::generate(&UuidV7Source), BEGUN)
        .with_step_started(BEGUN)
}

fn waiting() -> WaitingStep {
    serde_json::from_value(json!({"message_count": 0, "open_calls": [], "step": {}})).unwrap()
}

/// Makes the change of this name.
fn changed(name: &str, state: AgentState, now: Timestamp) -> AgentState {
    let step = || AgentStep::new(StepId::generate(&UuidV7Source), [Arc::new(message())].into());
    let error = || AgentError {
        kind: ErrorKind::Model,
        code: "broken".to_owned(),
        message: "it broke".to_owned(),
        source_name: None,
    };
    match name {
        "start_execution" => state.start_execution(ExecutionId::generate(&UuidV7Source), now),
        "with_execution_ended" => state.with_execution_ended(now),
        "with_step_started" => state.with_step_started(now),
        "with_step_resumed" => state.with_step_resumed(now, now),
        "with_current_step" => state.with_current_step(step(), now),
        "with_step_recorded" => state.with_current_step(step(), BEGUN).with_step_recorded(now),
        "with_stop_signal" => state.with_stop_signal(StopSignal::new(StopReason::StopRequested, "test", "enough"), now),
        "with_continuation_requested" => state.with_continuation_requested(now),
        "with_step_left_open" => {
            let signal = StopSignal::new(StopReason::AnswerRequired, "test", "calls are open");
            state.with_step_left_open(step(), waiting(), signal, now)
        }
        "with_held_input" => state.with_held_input(vec![message()], now),
        "with_held_input_added" => state.with_held_input(vec![message()], BEGUN).with_held_input_added(now),
        "with_remembered_approvals" => state.with_remembered_approvals(vec![RememberedApproval {
            tool: "shell".to_owned(),
            rule: hash_arguments(&json!({})),
        }]),
        "with_retry_wanted" => state.with_retry_wanted(now),
        "with_step_granted" => state.with_retry_wanted(BEGUN).with_step_granted(now),
        "with_hook_usage" => state.with_hook_usage(Usage::default(), now),
        "with_error" => state.with_error(error(), now),
        "with_input" => state.with_input([message()], now),
        "with_trace" => state.with_trace([message()], now),
        "with_summary" => state.with_summary(message(), Coverage { from: 0, to: 0 }, now),
        "with_parent_agent_id" => state.with_parent_agent_id(Some(AgentId::generate(&UuidV7Source))),
        "with_model" => state.with_model(Some("a/b".parse().unwrap())),
        "with_system_prompt" => state.with_system_prompt("Be brief."),
        "with_instructions" => state.with_instructions(Some("Be brief.".into())),
        "with_response_format" => state.with_response_format(ResponseFormat::JsonObject),
        "with_overrides" => state.with_overrides(
            Overrides {
                system_prompt: Some("Be brief.".to_owned()),
                ..Overrides::default()
            }
            .into_shared(),
        ),
        "with_tool_pins" => {
            let mut pins = ToolPins::default();
            pins.begin("weather");
            state.with_tool_pins(pins)
        }
        "with_metadata" => state.with_metadata([("k".to_owned(), json!(1))].into_iter().collect()),
        other => panic!("the change {other} is not tried"),
    }
}

/// Changes that take no time. The hook stack sets the time of changes by hooks
/// (`hooks/permissions.rs`), and an execution begins after the others.
const SETTINGS: [&str; 9] = [
    "with_instructions",
    "with_metadata",
    "with_model",
    "with_overrides",
    "with_parent_agent_id",
    "with_remembered_approvals",
    "with_response_format",
    "with_system_prompt",
    "with_tool_pins",
];

#[test]
fn every_change_but_a_setting_moves_the_time_of_the_last_change() {
    let later = BEGUN + TimeDelta::seconds(7);
    let transitions = transitions();
    let timeless: Vec<_> = transitions.iter().filter(|(_, takes_time)| !**takes_time).collect();
    let timeless: Vec<_> = timeless.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(timeless, SETTINGS, "a change that takes no time");
    assert!(transitions.len() > 20, "{transitions:?}");
    for (name, takes_time) in transitions {
        let before = in_step();
        let state = changed(&name, before.clone(), later);
        assert_ne!(state, before, "{name} changes nothing");
        assert_eq!(state.updated_at(), if takes_time { later } else { BEGUN }, "{name}");
        assert_eq!(state.created_at(), BEGUN, "{name}");
        let next = state.start_execution(ExecutionId::generate(&UuidV7Source), later);
        assert_eq!(next.updated_at(), later, "{name}");
    }
}

#[test]
fn what_changes_nothing_moves_no_time() {
    let later = BEGUN + TimeDelta::seconds(7);
    let idle = AgentState::new(AgentId::generate(&UuidV7Source), BEGUN);
    let of_sessions = ["start_execution", "with_input", "with_summary", "with_trace"];
    for (name, _) in transitions().into_iter().filter(|(_, takes_time)| *takes_time) {
        let state = changed(&name, idle.clone(), later);
        assert_eq!(state != idle, of_sessions.contains(&name.as_str()), "{name}");
    }
}

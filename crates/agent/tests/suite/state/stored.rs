//! States that are stored and read again, also those that later versions wrote: whole states and
//! additions.

use std::sync::Arc;

use agent::state::{AgentState, ExecutionState, Messages, StateAddition, StepExecution};
use proptest::prelude::*;
use serde_json::json;
use values::json::Value;

use crate::arbitrary_state::states;
use crate::comparison::without_execution;

const TRANSIENT: [&str; 3] = ["current_step", "current_step_started_at", "input_messages"];

fn read_again(state: &AgentState) -> AgentState {
    AgentState::from_json(state.to_json().unwrap()).unwrap()
}

/// The step without what is transient, in the steps of other agents as well.
fn lasting_step(done: &StepExecution) -> Arc<StepExecution> {
    let mut done = done.clone();
    done.step.input_messages = Messages::default();
    for execution in &mut done.step.tool_executions {
        if let Some(subagent) = &mut execution.trace.subagent {
            let subagent = Arc::make_mut(subagent);
            subagent.steps = subagent.steps.iter().map(|step| lasting_step(step)).collect();
        }
    }
    Arc::new(done)
}

/// The execution without what is transient.
fn lasting(execution: &ExecutionState) -> ExecutionState {
    let steps = execution.step_executions.iter().map(|done| lasting_step(done));
    ExecutionState {
        step_executions: steps.collect(),
        current_step: None,
        current_step_started_at: None,
        ..execution.clone()
    }
}

/// Adds a field that nobody knows to every object.
fn grow(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(grow);
            fields.insert("zz_new".to_owned(), json!({"by": [1, null]}));
        }
        Value::Array(items) => items.iter_mut().for_each(grow),
        _ => {}
    }
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == key || has_key(value, key)),
        Value::Array(items) => items.iter().any(|value| has_key(value, key)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_the_state_without_what_is_transient(states in states()) {
        for state in states {
            let read = read_again(&state);
            prop_assert_eq!(read.to_json().unwrap(), state.to_json().unwrap());
            prop_assert_eq!(read.execution().cloned(), state.execution().map(lasting));
            prop_assert_eq!(without_execution(&read), without_execution(&state));
            let json = state.to_json().unwrap();
            prop_assert!(!TRANSIENT.iter().any(|name| has_key(&json, name)), "{}", json);
        }
    }

    #[test]
    fn a_state_between_executions_has_none(states in states()) {
        for state in states {
            let idle = without_execution(&state);
            prop_assert_eq!(&read_again(&idle), &idle);
            prop_assert!(idle.to_json().unwrap().get("execution").is_none());
        }
    }

    #[test]
    fn additions_lead_from_each_state_to_the_next(states in states()) {
        let mut sum = read_again(&states[0]);
        for pair in states.windows(2) {
            let addition = serde_json::to_value(pair[1].since(&pair[0])).unwrap();
            let addition: StateAddition = serde_json::from_value(addition).unwrap();
            sum = addition.onto(sum).unwrap();
            prop_assert_eq!(sum.to_json().unwrap(), pair[1].to_json().unwrap());
        }
    }

    /// An addition is written by its struct, unless a single part of it retains unknown fields.
    #[test]
    fn an_unknown_field_of_one_part_survives_in_an_addition(states in states()) {
        let messages = ["/state/context/store/0", "/state/context/store/messages/0"];
        let others = ["/state", "/state/execution", "/state/execution/step_executions/0"];
        for pair in states.windows(2) {
            let stored = serde_json::to_value(pair[1].since(&pair[0])).unwrap();
            for part in messages.iter().chain(&others) {
                let mut stored = stored.clone();
                let Some(owner) = stored.pointer_mut(part) else { continue };
                owner["zz_new"] = json!({"a": 1});
                let read: StateAddition = serde_json::from_value(stored.clone()).unwrap();
                prop_assert_eq!(serde_json::to_value(read).unwrap(), stored);
            }
        }
    }

    #[test]
    fn unknown_fields_survive_in_every_object(states in states()) {
        for state in states {
            let mut json = state.to_json().unwrap();
            grow(&mut json);
            let read = AgentState::from_json(json.clone()).unwrap();
            prop_assert_eq!(read.to_json().unwrap(), json.clone());
            prop_assert_eq!(AgentState::from_json(json).unwrap(), read.clone());
            let mut session = read.to_json().unwrap();
            session.as_object_mut().unwrap().remove("execution");
            prop_assert_eq!(without_execution(&read).to_json().unwrap(), session);
        }
    }
}

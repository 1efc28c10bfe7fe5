//! Compares states of executions that did the same at other times and under other ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use agent::state::AgentState;
use values::json::Value;

/// The code of a call whose effect nobody knows.
const UNCERTAIN: &str = "tool_effect_uncertain";

/// Returns where the execution stands, in a few figures.
pub(super) fn summary(state: &AgentState) -> impl PartialEq + Debug {
    let execution = state.execution();
    (
        execution.map(|execution| (execution.execution_id, execution.status)),
        execution.map(|execution| execution.continuation.clone()),
        (state.execution_count(), state.step_count()),
        (state.errors(), state.usage()),
    )
}

/// Returns the state between executions, as a session has it.
pub(super) fn without_execution(state: &AgentState) -> AgentState {
    let mut json = state.to_json().unwrap();
    json.as_object_mut().unwrap().remove("execution");
    AgentState::from_json(json).unwrap()
}

/// Replaces ids by their order and leaves out times.
pub(super) fn normal(state: &AgentState) -> Value {
    fn walk(value: &mut Value, ids: &mut BTreeMap<String, usize>) {
        match value {
            Value::String(text) => {
                let bare: String = text.chars().filter(char::is_ascii_hexdigit).collect();
                let is_id =
                    text.len() == 36 && text.matches('-').count() == 4 || text.starts_with("call_") && bare.len() > 32;
                if is_id {
                    let next = ids.len();
                    *text = format!("id {}", ids.entry(text.clone()).or_insert(next));
                } else if text.parse::<values::clock::Timestamp>().is_ok() {
                    "time".clone_into(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, ids)),
            Value::Object(fields) => fields.values_mut().for_each(|field| walk(field, ids)),
            _ => (),
        }
    }
    let mut json = state.to_json().unwrap();
    walk(&mut json, &mut BTreeMap::new());
    json
}

/// Returns where two values differ first, and how.
pub(super) fn difference(position: &str, left: &Value, right: &Value) -> Option<String> {
    let child = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    match (left, right) {
        (Value::Object(left_fields), Value::Object(right_fields)) => {
            let keys: BTreeSet<_> = left_fields.keys().chain(right_fields.keys()).collect();
            let mut keys = keys.into_iter();
            keys.find_map(|key| difference(&format!("{position}/{key}"), &child(left, key), &child(right, key)))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.find_map(|(at, (left, right))| difference(&format!("{position}/{at}"), left, right))
        }
        _ => (left != right).then(|| format!("{position}: {left} and {right}")),
    }
}

/// Leaves out how the calls of the ids ended, and that a hook was told of an error.
pub(super) fn without_ends(mut state: Value, calls: &BTreeSet<String>) -> Value {
    fn walk(value: &mut Value, calls: &BTreeSet<String>) {
        if let Value::Object(fields) = value {
            let id = fields.get("call_id").or_else(|| fields.get("call")?.get("id"));
            if id.and_then(Value::as_str).is_some_and(|id| calls.contains(id)) {
                for field in ["content", "is_error", "error"] {
                    fields.remove(field);
                }
            }
            // The policy has the model go on after an error.
            fields.remove("is_retry_wanted");
        }
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, calls)),
            Value::Object(fields) => fields.values_mut().for_each(|field| walk(field, calls)),
            _ => (),
        }
    }
    if calls.is_empty() {
        return state;
    }
    walk(&mut state, calls);
    if let Some(metadata) = state["context"].get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("on_error");
    }
    state
}

/// Returns the ids of the calls whose effect is uncertain.
pub(super) fn uncertain(state: &Value) -> BTreeSet<String> {
    let steps = state["execution"]["step_executions"].as_array().into_iter().flatten();
    let calls = steps.flat_map(|step| step["step"]["tool_executions"].as_array().into_iter().flatten());
    let calls = calls.filter(|call| call["error"]["code"] == UNCERTAIN);
    calls
        .map(|call| call["call"]["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks that all steps are retained but the last one, which is persisted with the session.
pub(super) fn assert_retained(retained: &AgentState, ended: &AgentState, case: &str) {
    let steps = |state: &AgentState| {
        let json = state.to_json().unwrap();
        json["execution"]["step_executions"].as_array().unwrap().clone()
    };
    let (retained, all) = (steps(retained), steps(ended));
    assert!(
        retained.len() + 1 >= all.len(),
        "{case}: {} of {}",
        retained.len(),
        all.len()
    );
    assert_eq!(retained, all[..retained.len()], "{case}");
}

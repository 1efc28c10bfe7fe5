//! Compares the tables of the documents that the code can't write: values, events, headers, tools
//! and their errors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::AgentEvent;
use agent::record::RunEvent;
use agent_runtime::http::openapi;
use agent_runtime::run::read::DROP_REASONS;
use serde_json::json;
use tools::builtin_tools;
use values::clock::{Clock, SystemClock};
use values::json::Value;

use super::blocks::{Table, read, spans_of, tables};

const PAGE: &str = "docs/api.md";
const AGENTS_PAGE: &str = "docs/agents.md";
const TOOLS_PAGE: &str = "docs/tools.md";
const EVENTS_PAGE: &str = "docs/events.md";

/// The names between backticks in a column.
fn column(table: &Table, index: usize) -> BTreeSet<String> {
    table
        .iter()
        .flat_map(|row| spans_of(&row[index]).collect::<Vec<_>>())
        .collect()
}

fn marked(page: &str, kind: &str) -> Vec<(String, Table)> {
    let found: Vec<_> = tables(&read(page))
        .into_iter()
        .filter_map(|(mark, table)| Some((mark.strip_prefix(kind)?.trim().to_owned(), table)))
        .collect();
    assert!(!found.is_empty(), "{page} has no table marked {kind}");
    found
}

#[test]
fn the_tables_of_values_are_complete() {
    let description = serde_json::to_value(openapi()).unwrap();
    for (name, table) in marked(PAGE, "values") {
        let known = description["components"]["schemas"][&name]["enum"].as_array();
        let known = known.unwrap_or_else(|| panic!("there are no values of {name}"));
        let known = known.iter().map(|value| value.as_str().unwrap().to_owned());
        assert_eq!(column(&table, 0), known.collect(), "{name}");
    }
}

/// One event of each type, as it stands on the wire.
#[expect(clippy::too_many_lines, reason = "it is a list of one event of each type")]
fn sample_events() -> Vec<RunEvent> {
    let (id, time) = ("01a1fd8f-1377-7581-847a-0e0a2f37f5f2", "2026-01-01T00:00:00Z");
    let (usage, step) = (json!({}), json!({"step_number": 1, "step_id": id}));
    let with = |more: Value| merged(&step, more);
    let call = json!({"call_id": "c", "name": "n", "index": 0, "arguments": "{}", "content": [], "is_error": false, "duration_ms": 1, "verdict": "blocked", "is_foreign": true});
    let model = json!({"request_id": id, "model": "p/m"});
    let error = json!({"kind": "model", "code": "c", "message": "m"});
    let subagent = json!({"call_id": "c", "agent": "a", "agent_id": id, "session_id": id});
    let model = |more: Value| with(merged(&model, more));
    let subagent = |more: Value| with(merged(&subagent, more));
    let samples = [
        (
            "execution.started",
            json!({"execution_id": id, "agent_id": id, "parent_agent_id": id, "execution_count": 1}),
        ),
        (
            "execution.ended",
            json!({"execution_id": id, "status": "stopped", "reason": "stop_requested", "was_force_stopped": true,
                "source": "s", "message": "m", "context": {"a": 1}, "step_count": 1, "usage": usage, "duration_ms": 1}),
        ),
        (
            "model.requested",
            model(json!({"message_count": 1, "tool_count": 1, "max_output_tokens": 1})),
        ),
        (
            "model.responded",
            model(
                json!({"finish_reason": "stop", "usage": usage, "error": error, "left_out": ["pictures"],
                "attempts": 2, "retries": [{"reason": "overload", "began_at": time}], "duration_ms": 1}),
            ),
        ),
        ("subagent.started", subagent(json!({}))),
        (
            "subagent.event",
            json!({"step_number": 1, "call_id": "c", "agent_id": id, "depth": 1,
                "event": {"type": "message.delta", "data": {"step_number": 1, "text": "t"}}}),
        ),
        (
            "state.changed",
            json!({"step_number": 1, "hook": "h", "point": "after_step", "changes": ["metadata"], "metadata": {"a": 1},
                "variables": {"a": 1}}),
        ),
        (
            "subagent.completed",
            subagent(json!({"status": "completed", "stop_reason": "completed", "step_count": 1, "usage": usage})),
        ),
        (
            "history.compacted",
            with(json!({"message_id": id, "from": 0, "to": 9, "usage": usage})),
        ),
        (
            "hook.warned",
            json!({"step_number": 1, "hook": "self_critique", "message": "m"}),
        ),
        ("server.warned", json!({"server": "s", "problems": ["p"]})),
        ("run.resumed", json!({"attempts": 2, "step_count": 1})),
        ("step.started", with(json!({"started_at": time, "left_open_by": id}))),
        ("message.applied", with(json!({"message_id": id}))),
        ("message.delta", with(json!({"text": "t", "refusal": true}))),
        ("reasoning.delta", with(json!({"text": "t"}))),
        ("tool_call.started", with(call.clone())),
        ("tool_call.delta", with(call.clone())),
        (
            "tool_call.requested",
            with(json!({"call_id": "c", "name": "n", "arguments": "{}"})),
        ),
        ("tool_call.output", with(json!({"call_id": "c", "text": "t"}))),
        ("tool_call.completed", with(call)),
        (
            "step.completed",
            with(json!({"step_type": "final_response", "finish_reason": "stop", "usage": usage, "duration_ms": 1})),
        ),
        (
            "continuation.evaluated",
            with(
                json!({"decision": "stop", "reason": "completed", "source": "s", "message": "m", "context": {"a": 1}}),
            ),
        ),
        (
            "session.committed",
            json!({"session_id": id, "parent_session_id": id, "root_hash": "0".repeat(64)}),
        ),
    ];
    samples
        .into_iter()
        .map(|(name, data)| {
            let event = json!({"sequence": 1, "run_id": id, "time": time, "type": name, "data": data});
            serde_json::from_value(event).unwrap_or_else(|error| panic!("{name}: {error}"))
        })
        .collect()
}

/// Returns the members of both objects.
fn merged(left: &Value, right: Value) -> Value {
    let (Value::Object(left), Value::Object(right)) = (left.clone(), right) else {
        panic!("no objects")
    };
    left.into_iter().chain(right).collect()
}

/// The names of all events, from the attributes that give them.
fn event_names() -> BTreeSet<String> {
    let source = read("crates/agent/src/record/event.rs") + &read("crates/agent/src/events.rs");
    let names = source
        .split("rename = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    names.filter(|name| name.contains('.')).map(str::to_owned).collect()
}

#[test]
fn the_table_of_events_names_every_type_with_its_data() {
    let (_, table) = marked(EVENTS_PAGE, "events").remove(0);
    assert_eq!(column(&table, 0), event_names());
    let shown: BTreeMap<String, BTreeSet<String>> = table
        .iter()
        .flat_map(|row| {
            spans_of(&row[0])
                .map(|name| (name, spans_of(&row[1]).collect()))
                .collect::<Vec<_>>()
        })
        .collect();
    let description = serde_json::to_value(openapi()).unwrap();
    let schema = json!({"$ref": "#/components/schemas/Event", "components": description["components"]});
    let described = jsonschema::validator_for(&schema).unwrap();
    let mut compared = 0;
    for event in sample_events() {
        let wire = serde_json::to_value(&event).unwrap();
        assert!(
            described.is_valid(&wire),
            "the description knows no such event: {wire:#}"
        );
        let fields: BTreeSet<String> = wire["data"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(shown[event.payload.name()], fields, "{}", event.payload.name());
        compared += 1;
    }
    // The others carry a run, whose fields have a table of their own.
    assert_eq!(compared + 6, event_names().len());
    // A new event of an agent must come into the samples above.
    let _: fn(&AgentEvent) = |event| match event {
        AgentEvent::ExecutionStarted { .. }
        | AgentEvent::StepStarted { .. }
        | AgentEvent::ModelRequested { .. }
        | AgentEvent::ModelResponded { .. }
        | AgentEvent::MessageDelta { .. }
        | AgentEvent::ReasoningDelta { .. }
        | AgentEvent::ToolCallStarted { .. }
        | AgentEvent::ToolCallDelta { .. }
        | AgentEvent::ToolCallRequested { .. }
        | AgentEvent::ToolCallOutput { .. }
        | AgentEvent::ToolCallCompleted { .. }
        | AgentEvent::MessageApplied { .. }
        | AgentEvent::StepCompleted { .. }
        | AgentEvent::SubagentStarted { .. }
        | AgentEvent::SubagentCompleted { .. }
        | AgentEvent::SubagentEvent { .. }
        | AgentEvent::StateChanged { .. }
        | AgentEvent::HistoryCompacted { .. }
        | AgentEvent::HookWarned { .. }
        | AgentEvent::ServerWarned { .. }
        | AgentEvent::ContinuationEvaluated { .. }
        | AgentEvent::ExecutionEnded { .. } => (),
    };
}

#[test]
fn every_header_that_the_description_names_is_in_the_table() {
    let description = serde_json::to_value(openapi()).unwrap();
    let mut named = BTreeSet::new();
    let operations = description["paths"].as_object().unwrap().values();
    for operation in operations.flat_map(|item| item.as_object().unwrap().values()) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let headers = parameters.filter(|parameter| parameter["in"] == "header");
        named.extend(headers.map(|header| header["name"].as_str().unwrap().to_owned()));
        let responses = operation["responses"].as_object().unwrap().values();
        let headers = responses.filter_map(|response| response["headers"].as_object());
        named.extend(headers.flat_map(|headers| headers.keys().cloned()));
    }
    let (_, table) = marked(PAGE, "headers").remove(0);
    let shown = column(&table, 0);
    assert!(named.len() > 8 && named.is_subset(&shown), "{named:?}");
    // These belong to every request or response, and are in no route.
    let others: BTreeSet<_> = shown.difference(&named).map(String::as_str).collect();
    assert_eq!(others, BTreeSet::from(["Authorization", "X-Api-Key", "x-request-id"]));
}

#[test]
fn the_reasons_for_dropping_readers_are_those_of_the_code() {
    let (_, table) = marked(EVENTS_PAGE, "reasons").remove(0);
    assert_eq!(column(&table, 0), DROP_REASONS.map(str::to_owned).into());
}

#[test]
fn the_table_of_errors_of_tools_is_that_of_the_code() {
    let source = read("crates/tools/src/executor.rs") + &read("crates/agent/src/drivers/call_ends.rs");
    let made = source
        .split("\"tool_")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let made: BTreeSet<String> = made.map(|code| format!("tool_{code}")).collect();
    let (_, table) = marked(AGENTS_PAGE, "tool errors").remove(0);
    assert_eq!(column(&table, 0), made);
}

#[test]
fn the_table_of_tools_has_each_built_in_tool_with_its_arguments() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (_, table) = marked(TOOLS_PAGE, "tools").remove(0);
    for tool in builtin_tools(&clock) {
        let spec = tool.spec();
        let row = table.iter().find(|row| spans_of(&row[0]).any(|name| name == spec.name));
        let row = row.unwrap_or_else(|| panic!("{TOOLS_PAGE} lacks {}", spec.name));
        let shown: BTreeSet<String> = spans_of(&row[1]).collect();
        for (argument, _) in spec.parameters["properties"].as_object().into_iter().flatten() {
            assert!(
                shown.contains(argument),
                "{TOOLS_PAGE} lacks {argument} of {}",
                spec.name
            );
        }
    }
}

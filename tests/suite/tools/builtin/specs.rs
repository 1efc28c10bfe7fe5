//! What the specs of the tools promise.

use std::sync::Arc;

use agent::ports::{Tool, ToolSpec};
use net::outgoing::{HttpMethod, SystemResolver};
use serde_json::json;
use test_support::clock::TestClock;
use tools::{HttpFetchSettings, builtin_tools, shell, shell_job};
use values::clock::Clock;
use values::json::Value;

use super::super::http_fetch;
use super::shell::Host;

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It changes nothing.
    Reads,
    /// It adds, and overwrites nothing.
    Adds,
    /// It may overwrite or remove something.
    Overwrites,
}

/// The specs of all built-in tools. `http_fetch` comes first with safe methods and then with all.
fn specs() -> Vec<ToolSpec> {
    let host = Host::new();
    let commands = &host.commands;
    let clock: Arc<dyn Clock> = Arc::new(TestClock::new());
    let fetch = |methods: &[HttpMethod]| {
        let settings = HttpFetchSettings {
            methods: methods.iter().copied().collect(),
            ..http_fetch::settings()
        };
        http_fetch::tool_with(settings, Arc::new(SystemResolver))
    };
    let mut tools: Vec<Arc<dyn Tool>> = builtin_tools(&clock);
    tools.extend([
        shell(commands.settings(), Arc::clone(commands) as _, clock),
        shell_job(commands.settings()),
        fetch(&[HttpMethod::Get, HttpMethod::Head]),
        fetch(&[HttpMethod::Get, HttpMethod::Post]),
    ]);
    tools.iter().map(|tool| tool.spec().clone()).collect()
}

#[test]
fn each_tool_describes_truthfully_what_it_changes_and_whether_it_may_be_repeated() {
    let marks = specs().into_iter().map(|spec| {
        let effect = match (spec.read_only, spec.destructive) {
            (true, false) => Effect::Reads,
            (false, false) => Effect::Adds,
            (false, true) => Effect::Overwrites,
            (true, true) => panic!("{} reads only and overwrites", spec.name),
        };
        (spec.name, effect, spec.idempotent)
    });
    let mut marks: Vec<_> = marks.collect();
    marks.sort_by(|left, right| left.0.cmp(&right.0));
    let expected = [
        ("apply_patch", Effect::Overwrites, true),
        ("calculator", Effect::Reads, true),
        ("current_time", Effect::Reads, true),
        ("edit_file", Effect::Overwrites, true),
        ("glob", Effect::Reads, true),
        ("grep", Effect::Reads, true),
        ("http_fetch", Effect::Reads, true),
        ("http_fetch", Effect::Overwrites, false),
        ("list_files", Effect::Reads, true),
        ("read_file", Effect::Reads, true),
        // It adds the tools that it finds to the environment.
        ("search_tools", Effect::Adds, true),
        ("shell", Effect::Overwrites, false),
        // A job runs in its process only, so a call that a takeover repeats finds it lost.
        ("shell_job", Effect::Adds, true),
        ("todo", Effect::Adds, true),
        ("variables_get", Effect::Reads, true),
        ("variables_set", Effect::Overwrites, true),
        ("write_file", Effect::Overwrites, true),
    ];
    assert_eq!(
        marks,
        expected.map(|(name, effect, idempotent)| (name.to_owned(), effect, idempotent))
    );
}

#[test]
fn schemas_are_strict_bounded_and_described() {
    fn check(name: &str, schema: &Value) {
        let bound = match schema["type"].as_str().unwrap() {
            "object" if schema.get("properties").is_none() => "maxProperties",
            "object" => "additionalProperties",
            "array" => "maxItems",
            "string" if schema.get("enum").is_some() => "enum",
            "string" => "maxLength",
            "integer" => "maximum",
            _ => "type",
        };
        assert!(schema.get(bound).is_some(), "{name}: {bound} is missing in {schema}");
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{name}.{key}"), property);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(schema) = schema.get(inner).filter(|schema| schema.is_object()) {
                check(&format!("{name}.{inner}"), schema);
            }
        }
    }
    for spec in specs() {
        assert_eq!(spec.parameters["additionalProperties"], json!(false), "{}", spec.name);
        check(&spec.name, &spec.parameters);
        for (key, property) in spec.parameters["properties"].as_object().unwrap() {
            let described = property["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty(), "{}.{key} has no description", spec.name);
        }
    }
}

//! The promises of the specs of the tools.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::documents::blocks::{read, spans_of, tables};

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

/// Returns what a call may do, in the words of `docs/tools.md`.
fn effect_of(spec: &ToolSpec) -> &'static str {
    match (spec.read_only, spec.destructive) {
        (true, false) => "reads",
        (false, false) => "adds",
        (false, true) => "overwrites",
        (true, true) => panic!("{} reads only and overwrites", spec.name),
    }
}

/// Adds the names of all properties of a schema.
fn add_names(schema: &Value, names: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        add_names(property, names);
    }
    if let Some(items) = schema.get("items") {
        add_names(items, names);
    }
}

#[test]
fn the_table_of_tools_says_what_each_one_takes_and_changes() {
    let marked = tables(&read("docs/tools.md"));
    let (_, table) = marked.into_iter().find(|(mark, _)| mark == "tools").unwrap();
    let rows = table.iter().map(|row| {
        let name = spans_of(&row[0]).next().unwrap();
        (name, (spans_of(&row[1]).collect(), row[2].clone()))
    });
    let shown: BTreeMap<String, (BTreeSet<String>, String)> = rows.collect();
    let specs = specs().into_iter().filter(|spec| spec.name != "http_fetch");
    let made = specs.map(|spec| {
        let mut arguments = BTreeSet::new();
        add_names(&spec.parameters, &mut arguments);
        let effect = effect_of(&spec).to_owned();
        (spec.name, (arguments, effect))
    });
    assert_eq!(shown, made.collect());
}

#[test]
fn every_tool_may_be_repeated_but_commands_and_unsafe_requests() {
    let specs = specs();
    let once = specs.iter().filter(|spec| !spec.idempotent);
    let once: Vec<_> = once.map(|spec| (spec.name.as_str(), effect_of(spec))).collect();
    assert_eq!(once, [("shell", "overwrites"), ("http_fetch", "overwrites")]);
    let fetches = specs.iter().filter(|spec| spec.name == "http_fetch").map(effect_of);
    assert_eq!(fetches.collect::<Vec<_>>(), ["reads", "overwrites"]);
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

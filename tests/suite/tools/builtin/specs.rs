//! What the specs of the tools promise.

use agent_runtime::json::Value;
use serde_json::json;

use super::Desk;

#[test]
fn tools_for_the_environment_are_idempotent_and_describe_truthfully_what_they_change() {
    let desk = Desk::new();
    let specs = desk.executor.specs();
    let list = |chosen: fn(bool, bool) -> bool| {
        let chosen = specs.iter().filter(|spec| chosen(spec.read_only, spec.destructive));
        chosen.map(|spec| spec.name.as_str()).collect::<Vec<_>>()
    };
    assert!(specs.iter().all(|spec| spec.idempotent));
    assert_eq!(
        list(|read_only, _| read_only),
        [
            "calculator",
            "current_time",
            "variables_get",
            "read_file",
            "list_files",
            "glob",
            "grep"
        ]
    );
    assert_eq!(
        list(|_, destructive| destructive),
        ["variables_set", "write_file", "edit_file", "apply_patch"]
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
        if let Some(items) = schema.get("items") {
            check(name, items);
        }
    }
    for spec in Desk::new()
        .executor
        .specs()
        .iter()
        .filter(|spec| spec.name != "calculator")
    {
        assert_eq!(spec.parameters["additionalProperties"], json!(false), "{}", spec.name);
        check(&spec.name, &spec.parameters);
        for (key, property) in spec.parameters["properties"].as_object().unwrap() {
            let described = property["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty(), "{}.{key} has no description", spec.name);
        }
    }
}

//! Which tools can be registered, and which an agent gets.

use std::sync::Arc;

use agent::ports::{Tool, ToolCatalog as _, ToolSetError, ToolSpec, UnknownTool};
use serde_json::json;
use test_support::fake_tool::{Behaviour, FakeTool};
use tools::{CallLimits, ToolRegistry, ToolRegistryError, builtin_tools};
use values::clock::{Clock, SystemClock};
use values::ids::UuidV7Source;
use values::json::SchemaError;
use values::json::Value;

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn registry(tools: Vec<Arc<dyn Tool>>) -> Result<ToolRegistry, ToolRegistryError> {
    ToolRegistry::new(tools, CallLimits::default(), clock(), Arc::new(UuidV7Source))
}

fn tool(name: &str, parameters: Value) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters,
        idempotent: true,
        read_only: false,
        destructive: false,
        timeout: None,
    };
    FakeTool::with_spec(spec, Behaviour::EchoArguments)
}

#[test]
fn an_executor_has_the_named_tools_in_the_order_of_the_names_and_each_once() {
    let object = json!({"type": "object"});
    let registry = registry(["a", "b", "c"].map(|name| tool(name, object.clone())).to_vec()).unwrap();
    let executor = registry.executor(&["c", "a", "c"].map(str::to_owned)).unwrap();
    let names: Vec<_> = executor.specs().iter().map(|spec| spec.name.clone()).collect();
    assert_eq!(names, ["c", "a"]);
    assert!(registry.executor(&[]).unwrap().specs().is_empty());
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
    let object = json!({"type": "object"});
    let registry = registry(["b", "a"].map(|name| tool(name, object.clone())).to_vec()).unwrap();
    let error = registry.executor(&["c".to_owned()]).unwrap_err();
    assert_eq!(error.to_string(), "no tool is named \"c\"; known are a, b");
}

#[test]
fn tools_that_models_could_not_call_are_refused() {
    let object = json!({"type": "object"});
    let twice = registry(vec![tool("a", object.clone()), tool("a", object.clone())]).unwrap_err();
    assert!(matches!(twice, ToolRegistryError::DuplicateName { name } if name == "a"));
    let long = "x".repeat(65);
    for name in ["", "two words", "naïve", "a.b", long.as_str()] {
        let error = registry(vec![tool(name, object.clone())]).unwrap_err();
        assert!(matches!(error, ToolRegistryError::InvalidName { .. }), "{name}");
    }
    for schema in [json!({"type": "string"}), json!({}), json!(true)] {
        let error = registry(vec![tool("a", schema)]).unwrap_err();
        let ToolRegistryError::InvalidSchema { name, source } = error else {
            panic!("{error:?}")
        };
        assert_eq!((name.as_str(), source), ("a", SchemaError::NotOfObject));
    }
    let malformed = json!({"type": "object", "properties": {"a": {"type": "strnig"}}});
    let error = registry(vec![tool("a", malformed)]).unwrap_err();
    assert!(matches!(
        error,
        ToolRegistryError::InvalidSchema {
            source: SchemaError::Invalid { .. },
            ..
        }
    ));
}

#[test]
fn tools_of_an_execution_s_own_come_last_and_hide_those_of_their_name() {
    let object = json!({"type": "object"});
    let registry = registry(["a", "b"].map(|name| tool(name, object.clone())).to_vec()).unwrap();
    let taller = json!({"type": "object", "required": ["x"]});
    let own = vec![tool("z", object.clone()), tool("a", taller.clone())];
    let executor = registry
        .executor_with(&["a", "b"].map(str::to_owned), &[], own)
        .unwrap();
    let specs = executor.specs();
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!((names, &specs[2].parameters), (vec!["b", "z", "a"], &taller));
    let names = registry.specs().map(|spec| spec.name.clone());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"], "the catalog stays as it is");
}

#[test]
fn a_tool_of_an_execution_s_own_is_checked_as_any_other() {
    let registry = registry(builtin_tools(&clock())).unwrap();
    let nobody = registry.executor_with(&["x".to_owned()], &[], Vec::new()).unwrap_err();
    assert!(matches!(nobody, ToolSetError::Unknown(UnknownTool { name, .. }) if name == "x"));
    for (name, parameters) in [("a.b", json!({"type": "object"})), ("a", json!({"type": "string"}))] {
        let error = registry
            .executor_with(&[], &[], vec![tool(name, parameters)])
            .unwrap_err();
        assert!(
            matches!(&error, ToolSetError::Unusable { name: wrong, .. } if wrong == name),
            "{error:?}"
        );
    }
}

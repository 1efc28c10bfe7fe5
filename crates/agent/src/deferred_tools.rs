//! Deferred tools: tools that the model is not shown before it has found them with `search_tools`.
//!
//! What was found is a resource of the environment: the names, in the order found. So it lasts as
//! long as the session, is forked with it, and survives a takeover.

use serde_json::json;

use values::json::Value;
use values::limits::Pattern;
use workspace::environment::{Environment, EnvironmentError};

/// The name of the tool that finds deferred tools, and the key of the resource with their names.
pub const SEARCH_TOOLS: &str = "search_tools";

/// Returns whether the patterns defer a tool. The tool that finds the others is never deferred.
pub fn is_deferred(patterns: &[Pattern], name: &str) -> bool {
    name != SEARCH_TOOLS && patterns.iter().any(|pattern| pattern.matches(name))
}

/// Returns the names of the tools that were found, in the order found. A resource that another
/// version has written in another form contains none.
pub fn found_tools(environment: &Environment) -> Vec<String> {
    let resources = environment.values().resources;
    names_in(resources.get(SEARCH_TOOLS))
}

/// Adds names to those that were found. Those that were found before stay where they are.
pub fn add_found_tools(environment: &Environment, names: &[&str]) -> Result<(), EnvironmentError> {
    environment.change_resource(SEARCH_TOOLS, |stored| {
        let mut found = names_in(stored);
        for name in names {
            if !found.iter().any(|known| known == name) {
                found.push((*name).to_owned());
            }
        }
        json!(found)
    })
}

fn names_in(resource: Option<&Value>) -> Vec<String> {
    let names = resource.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::AgentDefinition;
    use values::session::EnvironmentState;

    fn check(tools: &Value, deferred: &Value) -> Result<(), String> {
        let definition = json!({"name": "a", "model": "m/m", "tools": tools, "deferred_tools": deferred});
        let definition: AgentDefinition = serde_json::from_value(definition).unwrap();
        definition.check_deferred_tools()
    }

    #[test]
    fn patterns_that_defer_nothing_and_tools_that_nothing_finds_are_refused() {
        let tools = json!(["search_tools", "git_push", "git_pull", "todo"]);
        for good in [json!([]), json!(["git_*"]), json!(["todo", "*_pull"]), json!(["*"])] {
            check(&tools, &good).unwrap_or_else(|fault| panic!("{good}: {fault}"));
        }
        for (bad, words) in [
            (json!(["git_*", "svn_*"]), "\"svn_*\" matches none"),
            (json!(["search_tools"]), "\"search_tools\" matches none"),
            (json!(vec!["todo"; 257]), "the most are 256"),
        ] {
            let fault = check(&tools, &bad).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
        let fault = check(&json!(["todo"]), &json!(["todo"])).unwrap_err();
        assert!(fault.contains("without \"search_tools\""), "{fault}");
    }

    #[test]
    fn found_tools_stay_in_the_order_found() {
        let environment = Environment::in_memory(EnvironmentState::default());
        assert_eq!(found_tools(&environment), [""; 0]);
        for (names, expected) in [(&["b", "a"][..], &["b", "a"][..]), (&["c", "b"], &["b", "a", "c"])] {
            add_found_tools(&environment, names).unwrap();
            assert_eq!(found_tools(&environment), expected);
        }
        let revision = environment.revision();
        add_found_tools(&environment, &["a"]).unwrap();
        assert_eq!(environment.revision(), revision);
        let other = BTreeMap::from([(SEARCH_TOOLS.to_owned(), json!({"form": 2}))]);
        environment.change_resources(other).unwrap();
        assert_eq!(found_tools(&environment), [""; 0]);
    }
}

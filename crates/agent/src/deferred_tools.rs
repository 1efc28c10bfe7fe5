//! Deferred tools: tools that the model is not shown before it has found them with `search_tools`.
//!
//! The found names are a resource of the environment, in the order found. So the list lasts as
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

/// Adds names to the found ones. Names that were found before keep their positions.
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
    use values::session::EnvironmentState;

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

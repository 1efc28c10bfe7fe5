//! Makes tools of chosen operations of an OpenAPI document, versions 3.0 and 3.1. No IO.
//!
//! Only references within the document are followed, and their number and depth are bounded. The
//! document names no host: the definition has the base URL, since secrets are sent there.

mod found;
mod operation;
mod parameters;
mod references;
mod schema;

use self::found::{Found, all};
use self::operation::operation;
use self::references::Document;
use super::definition::ChosenOperations;
use super::operation::Operation;
use crate::fault::DefinitionFault;
use agent::ports::ToolSpec;
use values::json::Value;

/// An operation, or why no tool can be made of it.
pub(super) type Made = Result<Operation, DefinitionFault>;

/// Makes the chosen operations, each for itself.
pub(super) fn operations(document: &Value, chosen: &ChosenOperations) -> Result<Vec<Made>, DefinitionFault> {
    let fault = |problem: String| DefinitionFault::new("openapi", problem);
    let version = document.get("openapi").and_then(Value::as_str).unwrap_or_default();
    if !version.starts_with("3.0") && !version.starts_with("3.1") {
        return Err(fault(
            "it is no OpenAPI document of version 3.0 or 3.1, as JSON".to_owned(),
        ));
    }
    let base_url = chosen.base_url.trim_end_matches('/');
    if base_url.contains(['?', '#', '{', '}']) {
        let problem = "it has a query, a fragment or a parameter";
        return Err(DefinitionFault::new("base_url", problem));
    }
    let found = all(&Document::new(document));
    let made = chosen.operations.iter().map(|id| {
        let wanted = found.iter().find(|found| found.is_named(id)).ok_or_else(|| {
            let known: Vec<_> = found.iter().take(20).map(Found::id).collect();
            let problem = format!("the document has no operation {id:?}; it has {}", known.join(", "));
            DefinitionFault::new("operations", problem)
        })?;
        let name = tool_name(&chosen.prefix, id);
        let made = operation(name, base_url, wanted, &Document::new(document));
        Ok(made.map_err(|problem| fault(format!("{id}: {problem}"))))
    });
    made.collect()
}

/// Makes the name of a tool: `GET /pets/{id}` gives `get_pets_id`.
fn tool_name(prefix: &str, id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let words = id.split(|c| !is_allowed(c)).filter(|word| !word.is_empty());
    let words: Vec<_> = words.collect();
    let mut name = words.join("_");
    if id.contains(' ') {
        name.make_ascii_lowercase();
    }
    let mut name = format!("{prefix}{name}");
    name.truncate(name.floor_char_boundary(ToolSpec::MAX_NAME_LENGTH));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_provider() {
        for (prefix, id, expected) in [
            ("", "getPet", "getPet"),
            ("shop_", "getPet", "shop_getPet"),
            ("", "pets.list/all", "pets_list_all"),
            ("", "GET /pets/{id}", "get_pets_id"),
        ] {
            assert_eq!(tool_name(prefix, id), expected);
        }
        assert!(ToolSpec::is_valid_name(&tool_name("p_", &"x".repeat(100))));
    }
}

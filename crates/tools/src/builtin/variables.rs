//! `variables_get` and `variables_set`: the variables of the environment, which prompts, hooks and
//! other tools read, too.

use std::collections::BTreeMap;
use std::future::ready;

use serde::Deserialize;
use serde_json::json;

use super::environment_tool::{Effect, FunctionTool, and_more, environment_tool, read_arguments, refused};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use values::json::Value;
use values::spelling::nearest;

/// The most variables that one call names.
const MAX_NAMES: usize = 100;
/// The longest name, in characters.
const MAX_NAME_LENGTH: usize = 128;
/// The most names that an error lists.
const MAX_LISTED: usize = 20;

#[derive(Debug, Deserialize)]
struct GetArguments {
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct SetArguments {
    variables: BTreeMap<String, Value>,
}

/// Makes the tool.
pub(super) fn variables_get() -> FunctionTool {
    let properties = json!({
        "names": {
            "type": "array",
            "items": {"type": "string", "maxLength": MAX_NAME_LENGTH},
            "maxItems": MAX_NAMES,
            "description": "The names of the variables. Leave it out to read all of them.",
        },
    });
    let description = "Reads variables of the session: named JSON values that last for the whole conversation. \
                       Returns a JSON object. Use it to find facts that the caller or an earlier step has stored.";
    let spec = environment_tool("variables_get", Effect::Reads, description, properties, &[]);
    FunctionTool::new(spec, |arguments, context| Box::pin(ready(get(arguments, context))))
}

/// Makes the tool.
pub(super) fn variables_set() -> FunctionTool {
    let properties = json!({
        "variables": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_NAMES,
            "propertyNames": {"minLength": 1, "maxLength": MAX_NAME_LENGTH},
            "description": "The values by name, such as {\"city\": \"Bergen\", \"draft\": null}. A value is \
                            any JSON. null removes the variable. Other variables stay as they are.",
        },
    });
    let description = "Sets or removes variables of the session: named JSON values that last for the whole \
                       conversation. Use it for small facts that later steps need. Use files for long texts.";
    let spec = environment_tool(
        "variables_set",
        Effect::Overwrites,
        description,
        properties,
        &["variables"],
    );
    FunctionTool::new(spec, |arguments, context| Box::pin(ready(set(arguments, context))))
}

fn get(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let GetArguments { names } = read_arguments(arguments)?;
    let variables = context.environment.variables();
    if names.is_empty() {
        return Ok(ToolOutput::text(json!(*variables).to_string()));
    }
    let mut found = BTreeMap::new();
    for name in &names {
        let value = variables.get(name).ok_or_else(|| unknown(name, &variables))?;
        found.insert(name, value);
    }
    Ok(ToolOutput::text(json!(found).to_string()))
}

fn set(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let SetArguments { variables } = read_arguments(arguments)?;
    let (removed, set): (Vec<_>, Vec<_>) = variables.iter().partition(|(_, value)| value.is_null());
    let names = |list: &[(&String, &Value)]| {
        let names: Vec<_> = list.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let mut done = Vec::new();
    if !set.is_empty() {
        done.push(format!("Set: {}.", names(&set)));
    }
    if !removed.is_empty() {
        done.push(format!("Removed: {}.", names(&removed)));
    }
    let changed = context.environment.change_variables(variables);
    changed.map_err(|error| refused("the variables", &error))?;
    Ok(ToolOutput::text(done.join(" ")))
}

fn unknown(name: &str, variables: &BTreeMap<String, Value>) -> ToolError {
    let known = || variables.keys().map(String::as_str);
    let hint = match nearest(name, known()) {
        Some(similar) => format!("did you mean {similar:?}?"),
        None if variables.is_empty() => "there are no variables".to_owned(),
        None => {
            let listed: Vec<_> = known().take(MAX_LISTED).collect();
            let more = variables.len() - listed.len();
            format!("the variables are {}{}", listed.join(", "), and_more(more))
        }
    };
    ToolError::new(format!("no variable is named {name:?}; {hint}"))
}

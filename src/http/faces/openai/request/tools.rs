//! The tools of a request, which the caller executes, and the choice among them.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use crate::http::faces::fields::{decode, missing, type_of, unsupported, wrong_type};
use crate::http::openai_settings::UnsupportedTools;
use crate::http::problem::Problem;
use agent::answers::ClientTool;
use values::json::Value;
use values::model_parameters::ToolChoice;

/// A function as clients describe it: in Responses in the tool itself, in Chat Completions below
/// `function`.
#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// The tools that a choice allows.
#[derive(Debug, Deserialize)]
struct Allowed {
    mode: Option<String>,
    tools: Vec<Value>,
}

/// The choice of a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Choice {
    /// Which tools the model may or must call.
    pub(super) tool_choice: Option<ToolChoice>,
    /// The only tools that the model gets, if the request narrows them.
    pub(super) allowed: Option<BTreeSet<String>>,
}

/// Reads the tools. Drops those that are no functions, or refuses them.
pub(super) fn read_tools(tools: Vec<Value>, unsupported_tools: UnsupportedTools) -> Result<Vec<ClientTool>, Problem> {
    let mut functions = Vec::with_capacity(tools.len());
    for (index, mut tool) in tools.into_iter().enumerate() {
        let pointer = format!("/tools/{index}");
        let kind = type_of(&tool, &pointer)?;
        if kind != "function" {
            if unsupported_tools == UnsupportedTools::Drop {
                continue;
            }
            let words = format!("tools of the type {kind:?} are not supported: the agent has tools of its own");
            return Err(unsupported(format!("{pointer}/type"), words));
        }
        let function = match tool.get_mut("function") {
            Some(function) => decode(function.take(), &format!("{pointer}/function"))?,
            None => decode(tool, &pointer)?,
        };
        functions.push(client_tool(function));
    }
    Ok(functions)
}

/// Reads the choice of tools: a word, or an object that names tools.
pub(super) fn read_choice(choice: &Value) -> Result<Choice, Problem> {
    let pointer = "/tool_choice";
    let chosen = |tool_choice| {
        Ok(Choice {
            tool_choice: Some(tool_choice),
            allowed: None,
        })
    };
    if let Some(word) = choice.as_str() {
        return chosen(read_mode(word, pointer)?);
    }
    if !choice.is_object() {
        return Err(wrong_type(pointer, "neither a string nor an object"));
    }
    match type_of(choice, pointer)? {
        "function" => chosen(ToolChoice::Tool(named(choice, pointer)?.to_owned())),
        "allowed_tools" => match choice.get("allowed_tools") {
            // Chat Completions has the fields one level below.
            Some(allowed) => read_allowed(allowed, "/tool_choice/allowed_tools"),
            None => read_allowed(choice, pointer),
        },
        kind => {
            let words = format!("a choice of the type {kind:?} is not supported");
            Err(unsupported("/tool_choice/type", words))
        }
    }
}

/// Reads the tools that a choice allows, and whether the model must call one of them.
fn read_allowed(choice: &Value, pointer: &str) -> Result<Choice, Problem> {
    let allowed: Allowed = decode(choice.clone(), pointer)?;
    let mode = allowed.mode.as_deref().unwrap_or("auto");
    let tools = allowed.tools.iter().enumerate();
    let names = tools.map(|(index, tool)| named(tool, &format!("{pointer}/tools/{index}")).map(str::to_owned));
    Ok(Choice {
        tool_choice: Some(read_mode(mode, &format!("{pointer}/mode"))?),
        allowed: Some(names.collect::<Result<_, Problem>>()?),
    })
}

fn read_mode(word: &str, pointer: &str) -> Result<ToolChoice, Problem> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(Problem::invalid_field(
            pointer,
            "not one of `auto`, `none` and `required`",
        )),
    }
}

/// Returns the name of a function that a choice names: in the choice itself, or in Chat Completions
/// below `function`.
fn named<'v>(choice: &'v Value, pointer: &str) -> Result<&'v str, Problem> {
    let (function, pointer) = match choice.get("function") {
        Some(function) => (function, format!("{pointer}/function")),
        None => (choice, pointer.to_owned()),
    };
    let name = function.get("name").ok_or_else(|| missing(&pointer, "name"))?;
    name.as_str()
        .ok_or_else(|| wrong_type(format!("{pointer}/name"), "not a string"))
}

fn client_tool(function: Function) -> ClientTool {
    let nothing = || json!({"type": "object", "properties": {}, "additionalProperties": false});
    ClientTool {
        name: function.name,
        description: function.description.unwrap_or_default(),
        parameters: function.parameters.unwrap_or_else(nothing),
        response_schema: None,
        expires_after_seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::codes::ProblemCode;

    #[test]
    fn functions_of_both_protocols_become_tools_of_the_caller() {
        let schema = json!({"type": "object"});
        let flat = json!({"type": "function", "name": "f", "description": null, "parameters": schema, "strict": true});
        let nested = json!({"type": "function", "function": {"name": "f", "parameters": schema}});
        let read = |tool: &Value| read_tools(vec![tool.clone()], UnsupportedTools::Refuse);
        assert_eq!(read(&flat).unwrap(), read(&nested).unwrap());
        let bare = read(&json!({"type": "function", "name": "f", "parameters": null})).unwrap();
        assert_eq!(bare[0].parameters["additionalProperties"], json!(false));
    }

    #[test]
    fn other_tools_are_refused_by_name_or_dropped() {
        let tools = || vec![json!({"type": "web_search"}), json!({"type": "function", "name": "f"})];
        let problem = read_tools(tools(), UnsupportedTools::Refuse).unwrap_err();
        assert_eq!(problem.code(), ProblemCode::UnsupportedParameter);
        let error = problem.first_error().unwrap();
        assert_eq!(error.pointer, "/tools/0/type");
        assert!(error.message.contains("web_search"), "{}", error.message);
        assert_eq!(read_tools(tools(), UnsupportedTools::Drop).unwrap().len(), 1);
    }

    #[test]
    fn a_choice_forces_a_call_or_narrows_the_tools() {
        let tool = ToolChoice::Tool("f".to_owned());
        for (choice, tool_choice, allowed) in [
            (json!("none"), ToolChoice::None, None),
            (json!({"type": "function", "name": "f"}), tool.clone(), None),
            (json!({"type": "function", "function": {"name": "f"}}), tool, None),
            (
                json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}),
                ToolChoice::Required,
                Some(BTreeSet::from(["f".to_owned()])),
            ),
        ] {
            let read = read_choice(&choice).unwrap();
            assert_eq!((read.tool_choice, read.allowed), (Some(tool_choice), allowed));
        }
        for (choice, code, pointer) in [
            (json!("maybe"), ProblemCode::InvalidField, "/tool_choice"),
            (
                json!({"type": "file_search"}),
                ProblemCode::UnsupportedParameter,
                "/tool_choice/type",
            ),
            (json!(1), ProblemCode::InvalidType, "/tool_choice"),
            (json!({"type": 1}), ProblemCode::InvalidType, "/tool_choice/type"),
            (
                json!({"type": "function"}),
                ProblemCode::MissingField,
                "/tool_choice/name",
            ),
            (
                json!({"type": "function", "function": {"name": 1}}),
                ProblemCode::InvalidType,
                "/tool_choice/function/name",
            ),
            (
                json!({"type": "allowed_tools", "tools": [{"name": "f"}, {}]}),
                ProblemCode::MissingField,
                "/tool_choice/tools/1/name",
            ),
            (
                json!({"type": "allowed_tools", "mode": 1, "tools": []}),
                ProblemCode::InvalidType,
                "/tool_choice/mode",
            ),
        ] {
            let problem = read_choice(&choice).unwrap_err();
            assert_eq!(problem.code(), code, "{choice}");
            assert_eq!(problem.first_error().unwrap().pointer, pointer, "{choice}");
        }
    }
}

//! `search_tools`: finds the deferred tools of the agent, which requests offer from then on.

mod ranking;

use std::fmt::Write as _;
use std::future::ready;

use serde::Deserialize;
use serde_json::json;

use self::ranking::ranked;
use super::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments, refused};
use agent::deferred_tools::{SEARCH_TOOLS, add_found_tools};
use agent::ports::{ToolContext, ToolError, ToolOutput, ToolSpec};
use values::json::Value;

/// The number of tools of one call, if the model does not choose it.
const DEFAULT_RESULTS: usize = 5;
/// The most tools of one call.
const MAX_RESULTS: usize = 20;
/// The longest query, in characters.
const MAX_QUERY_LENGTH: usize = 500;
/// The most bytes of the descriptions and parameters of one result.
const MAX_BYTES: usize = 32_000;

#[derive(Debug, Deserialize)]
struct Arguments {
    query: String,
    max_results: Option<usize>,
}

/// Makes the tool.
pub(super) fn search_tools() -> FunctionTool {
    let properties = json!({
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_QUERY_LENGTH,
            "description": "Words for what you want to do, such as `create issue`, or the name of a tool. A \
                            tool with more of the words, and rarer ones, comes first.",
        },
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RESULTS,
            "description": "The most tools to return; 5 by default.",
        },
    });
    let description = "Finds more tools. You have more tools than you are shown. This one searches their names, \
                       descriptions and parameters, and returns the best matches. You can call the tools that it \
                       returned from your next message on. Search before you say that something is impossible.";
    let spec = environment_tool(SEARCH_TOOLS, Effect::Notes, description, properties, &["query"]);
    FunctionTool::new(spec, |arguments, context| Box::pin(ready(answer(arguments, context))))
}

fn answer(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Arguments { query, max_results } = read_arguments(arguments)?;
    let tools = &context.deferred_tools;
    let ranked = ranked(&query, tools);
    let found = &ranked[..ranked.len().min(max_results.unwrap_or(DEFAULT_RESULTS))];
    let names: Vec<_> = found.iter().map(|tool| tool.name.as_str()).collect();
    if names.is_empty() {
        return Ok(ToolOutput::text(nothing(tools.len())));
    }
    add_found_tools(&context.environment, &names).map_err(|error| refused("the tools that were found", &error))?;
    Ok(ToolOutput::text(written(found, ranked.len())))
}

fn nothing(searched: usize) -> String {
    match searched {
        0 => "There are no other tools than those that you are shown.".to_owned(),
        1 => "No tool matches. There is 1 tool to find; try other words.".to_owned(),
        searched => format!("No tool matches. There are {searched} tools to find; try other words."),
    }
}

fn written(found: &[&ToolSpec], matches: usize) -> String {
    let mut text = match found.len() {
        1 => "You can call this tool from your next message on.".to_owned(),
        count => format!("You can call these {count} tools from your next message on."),
    };
    let mut left = MAX_BYTES;
    for ToolSpec {
        name,
        description,
        parameters,
        ..
    } in found
    {
        let parameters = parameters.to_string();
        let size = description.len() + parameters.len();
        // Writing to a string does not fail.
        let _ = if size <= left {
            left -= size;
            write!(text, "\n\n{name}: {description}\nParameters: {parameters}")
        } else {
            write!(text, "\n\n{name}: its description is too long for this result.")
        };
    }
    if matches > found.len() {
        let _ = write!(text, "\n\n[{} of {matches} matching tools]", found.len());
    }
    text
}

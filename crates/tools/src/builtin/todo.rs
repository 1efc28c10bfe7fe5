//! `todo`: the agent's list of tasks. It is a resource of the environment, so it lasts as long as
//! the session and is forked with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::ready;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::environment_tool::{Effect, FunctionTool, environment_tool, read_arguments, refused};
use agent::ports::{ToolContext, ToolError, ToolOutput};
use values::json::Value;

/// The key of the list among the resources.
const TODO: &str = "todo";
/// The most items of the list.
const MAX_ITEMS: usize = 100;
/// The longest text of an item, in characters.
const MAX_TEXT_LENGTH: usize = 500;

#[derive(Debug, Deserialize)]
struct Arguments {
    items: Option<Vec<Item>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    text: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
}

/// Makes the tool.
pub(super) fn todo() -> FunctionTool {
    let properties = json!({
        "items": {
            "type": "array",
            "maxItems": MAX_ITEMS,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
                },
                "required": ["text", "status"],
                "additionalProperties": false,
            },
            "description": "The whole new list, in order. It replaces the old one. Leave it out to read the \
                            list. An empty list removes it.",
        },
    });
    let description = "Replaces your list of tasks and returns it. Use it for work of three or more steps: write \
                       the list first, have one task in progress at a time, and update the list as soon as a task \
                       is done. Send the whole list each time. Without arguments, returns the list.";
    let spec = environment_tool("todo", Effect::Notes, description, properties, &[]);
    FunctionTool::new(spec, |arguments, context| Box::pin(ready(answer(arguments, context))))
}

fn answer(arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let Arguments { items } = read_arguments(arguments)?;
    let items = match items {
        Some(items) => {
            let list = if items.is_empty() { Value::Null } else { json!(items) };
            let changed = context
                .environment
                .change_resources(BTreeMap::from([(TODO.to_owned(), list)]));
            changed.map_err(|error| refused("the list", &error))?;
            items
        }
        None => stored(context),
    };
    Ok(ToolOutput::text(written(&items)))
}

/// Returns the stored list. A resource that another version has written in another form is no list.
fn stored(context: &ToolContext) -> Vec<Item> {
    let resources = context.environment.values().resources;
    let list = resources.get(TODO).map(Vec::<Item>::deserialize);
    list.and_then(Result::ok).unwrap_or_default()
}

fn written(items: &[Item]) -> String {
    if items.is_empty() {
        return "The list is empty.".to_owned();
    }
    let done = items.iter().filter(|item| item.status == Status::Done).count();
    let mut text = format!("{done} of {} done:", items.len());
    for item in items {
        let mark = match item.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Done => 'x',
        };
        // Writing to a string does not fail.
        let _ = write!(text, "\n[{mark}] {}", item.text);
    }
    text
}

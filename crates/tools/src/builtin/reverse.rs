//! `reverse`: a text backwards.

use std::future::ready;

use serde_json::json;

use super::environment_tool::{Effect, FunctionTool, environment_tool};
use agent::ports::ToolOutput;
use values::json::Value;

/// The longest text, in characters.
const MAX_LENGTH: usize = 10_000;

/// Makes the tool.
pub(super) fn reverse() -> FunctionTool {
    let properties = json!({
        "text": {"type": "string", "maxLength": MAX_LENGTH, "description": "The text to reverse."},
    });
    let description = "Returns a text with its characters in reverse order. Use it instead of spelling a text \
                       backwards yourself.";
    let spec = environment_tool("reverse", Effect::Reads, description, properties, &["text"]);
    FunctionTool::new(spec, |arguments, _| Box::pin(ready(Ok(answer(&arguments)))))
}

fn answer(arguments: &Value) -> ToolOutput {
    let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default();
    ToolOutput::text(text.chars().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_characters_of_a_text_are_reversed() {
        for (text, reversed) in [("", ""), ("stressed", "desserts"), ("aß→😀", "😀→ßa")] {
            assert_eq!(answer(&json!({"text": text})), ToolOutput::text(reversed));
        }
    }
}

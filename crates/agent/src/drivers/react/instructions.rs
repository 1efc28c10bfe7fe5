//! The instructions for a model without tool support: which tools exist, and how to state a
//! decision.
//!
//! Equal tools give equal bytes.

use std::fmt::Write as _;

use crate::drivers::structured::schema_words;
use crate::ports::ToolSpec;
use values::model_ref::ResponseFormat;

const DECISION: &str = "Work step by step. Answer each time with exactly one JSON object and nothing around it.";
const ACTION: &str = "To call a tool: \
    {\"thought\": \"why\", \"action\": {\"tool\": \"its name\", \"arguments\": {}}}\n\
    What the tool answers follows as \"Observation: …\"; never write an observation yourself.";
const ANSWER: &str = "When you know the answer: {\"thought\": \"why\", \"answer\": \"the answer\"}";
const ANSWER_OBJECT: &str =
    "When you know the answer: {\"thought\": \"why\", \"answer\": {}}\nThe answer is a JSON object.";

/// Describes decisions and tools.
pub(super) fn instructions(tools: &[ToolSpec], format: &ResponseFormat) -> String {
    let mut words = DECISION.to_owned();
    if !tools.is_empty() {
        words.push('\n');
        words.push_str(ACTION);
    }
    words.push('\n');
    match format {
        ResponseFormat::Text => words.push_str(ANSWER),
        ResponseFormat::JsonObject => words.push_str(ANSWER_OBJECT),
        ResponseFormat::JsonSchema { schema, .. } => {
            words.push_str(ANSWER_OBJECT);
            words.push_str(&schema_words(Some(schema)));
        }
    }
    if !tools.is_empty() {
        words.push_str("\n\nThe tools, each with the JSON Schema of its arguments:");
    }
    for tool in tools {
        // Writing to a string can't fail.
        let _ = write!(words, "\n\n{}: {}\n{}", tool.name, tool.description, tool.parameters);
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_and_the_response_format_are_described() {
        let tool = ToolSpec {
            name: "weather".to_owned(),
            description: "Tells the weather.".to_owned(),
            parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
            idempotent: true,
            read_only: true,
            destructive: false,
            timeout: None,
        };
        let format = ResponseFormat::JsonSchema {
            name: "report".to_owned(),
            schema: json!({"type": "object", "required": ["celsius"]}),
            strict: true,
        };
        let expected = r#"Work step by step. Answer each time with exactly one JSON object and nothing around it.
To call a tool: {"thought": "why", "action": {"tool": "its name", "arguments": {}}}
What the tool answers follows as "Observation: …"; never write an observation yourself.
When you know the answer: {"thought": "why", "answer": {}}
The answer is a JSON object. It fits this JSON Schema:
{"required":["celsius"],"type":"object"}

The tools, each with the JSON Schema of its arguments:

weather: Tells the weather.
{"properties":{"city":{"type":"string"}},"type":"object"}"#;
        assert_eq!(instructions(&[tool], &format), expected);
        let plain = instructions(&[], &ResponseFormat::Text);
        assert!(plain.ends_with(ANSWER) && !plain.contains("tool"), "{plain}");
    }
}

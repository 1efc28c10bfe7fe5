//! `calculator`: exact arithmetic for models.

mod error;
mod expression;
mod functions;
mod number;

use std::future::ready;

use serde_json::json;

use self::error::MAX_LENGTH;
use self::expression::evaluate;
use super::environment_tool::{Effect, FunctionTool, environment_tool};
use agent::ports::{ToolError, ToolOutput};
use values::json::Value;

/// Makes the tool.
pub(super) fn calculator() -> FunctionTool {
    let properties = json!({
        "expression": {
            "type": "string",
            "maxLength": MAX_LENGTH,
            "description": "The expression, such as (1299 * 3 - 45.5) * 1.077 or sqrt(2) ^ 10.",
        },
    });
    let description = "Evaluates an arithmetic expression and returns the number. Use it for every calculation, \
                       however small. It knows + - * / % ^, parentheses, the functions sqrt, abs, round, floor, \
                       ceil, min, max, sin, cos, tan, ln, log10, exp and pow (angles in radians), and the \
                       constants pi and e.";
    let spec = environment_tool("calculator", Effect::Reads, description, properties, &["expression"]);
    FunctionTool::new(spec, |arguments, _| Box::pin(ready(answer(&arguments))))
}

fn answer(arguments: &Value) -> Result<ToolOutput, ToolError> {
    let expression = arguments.get("expression").and_then(Value::as_str).unwrap_or_default();
    let number = evaluate(expression).map_err(|error| ToolError::new(error.to_string()))?;
    Ok(ToolOutput::text(number.to_string()))
}

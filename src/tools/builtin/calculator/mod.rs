//! `calculator`: exact arithmetic for models.

mod error;
mod expression;
mod functions;
mod number;

use std::future::ready;

use futures_util::future::BoxFuture;
use serde_json::json;

use self::error::MAX_LENGTH;
use self::expression::evaluate;
use crate::agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use crate::json::Value;

/// Evaluates expressions.
#[derive(Debug)]
pub(super) struct Calculator {
    spec: ToolSpec,
}

impl Calculator {
    /// Makes the tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "calculator".to_owned(),
            description: "Evaluates an arithmetic expression and returns the number. Use it for every calculation, \
                          however small. It knows + - * / % ^, parentheses, the functions sqrt, abs, round, floor, \
                          ceil, min, max, sin, cos, tan, ln, log10, exp and pow (angles in radians), and the \
                          constants pi and e."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "expression": {
                        "type": "string",
                        "maxLength": MAX_LENGTH,
                        "description": "The expression, such as (1299 * 3 - 45.5) * 1.077 or sqrt(2) ^ 10.",
                    },
                },
                "required": ["expression"],
                "additionalProperties": false,
            }),
            idempotent: true,
            read_only: true,
            destructive: false,
            timeout: None,
        };
        Self { spec }
    }
}

impl Tool for Calculator {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let expression = arguments.get("expression").and_then(Value::as_str).unwrap_or_default();
        let answer = evaluate(expression)
            .map(|number| ToolOutput::text(number.to_string()))
            .map_err(|error| ToolError::new(error.to_string()));
        Box::pin(ready(answer))
    }
}

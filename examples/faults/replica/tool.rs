//! A tool that has an effect on the world: it posts to the ledger, and returns the key of the
//! call.

use std::time::Duration;

use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ledger::Effect;

/// A mishap may come before the effect, or between it and the result.
const BEFORE: Duration = Duration::from_millis(30);
const AFTER: Duration = Duration::from_millis(50);

/// A tool of a name.
#[derive(Debug)]
pub(super) struct EffectTool {
    spec: ToolSpec,
    ledger: String,
    http: reqwest::Client,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    note: String,
    part: i64,
}

impl EffectTool {
    /// Makes the tool.
    pub(super) fn new(name: &str, idempotent: bool, ledger: &str, http: reqwest::Client) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: "Has an effect.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"note": {"type": "string"}, "part": {"type": "integer"}},
                "required": ["note", "part"],
            }),
            idempotent,
            read_only: false,
            destructive: false,
            timeout: None,
        };
        Self {
            spec,
            ledger: ledger.to_owned(),
            http,
        }
    }

    async fn have_effect(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments =
            serde_json::from_value(arguments).map_err(|error| ToolError::new(error.to_string()))?;
        let effect = Effect {
            call_key: context.idempotency_key.clone(),
            tool: self.spec.name.clone(),
            note: arguments.note,
            part: arguments.part,
        };
        tokio::time::sleep(BEFORE).await;
        let body = serde_json::to_string(&effect).map_err(|error| ToolError::new(error.to_string()))?;
        let request = self.http.post(&self.ledger).header("content-type", "application/json");
        let answer = request
            .body(body)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        answer.map_err(|error| ToolError::new(error.to_string()))?;
        tokio::time::sleep(AFTER).await;
        Ok(ToolOutput::text(format!("{}{}", super::DONE, effect.call_key)))
    }
}

impl Tool for EffectTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.have_effect(arguments, context))
    }
}

//! Encodes requests.
//!
//! Everything that can change between steps follows the items, and an item always encodes to the
//! same bytes. So the next step's request begins with the bytes of this one.

use serde::Serialize;
use serde_json::json;

use super::input::Input;
use crate::encode::Body;
use crate::parameters::{accepted_limit, allows_one_call, tool_choice, with_extra};
use crate::protocol::Dialect;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;

/// The fewest tokens that a request may ask for. The reader of the completion enforces smaller
/// limits.
const LEAST_OUTPUT_TOKENS: u64 = 16;
/// Prefixes of models that do not reason. They reject a request for encrypted reasoning.
const NOT_REASONING: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];

/// Encodes a request. Omits stop sequences, which the protocol does not have.
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect, stream: bool) -> Vec<u8> {
    let parameters = &request.parameters;
    let tools = request.tools.iter().map(WireTool::of);
    let provider_tools = request.tools_of_provider(&dialect.provider).into_iter();
    let limit = accepted_limit(request, dialect.max_output_tokens);
    let asks_for_encrypted = reasons(&request.model) && !parameters.extra.contains_key("include");
    let effort = parameters.reasoning_effort.as_deref();
    let before = BeforeInput {
        model: &request.model,
        instructions: &request.system,
        tools: tools.chain(provider_tools.map(WireTool::OfProvider)).collect(),
        store: false,
        include: asks_for_encrypted.then_some(&["reasoning.encrypted_content"]),
    };
    let input = request.messages.fold(Input::new(dialect.target(request)));
    let after = AfterInput {
        stream,
        tool_choice: tool_choice(request, |name| json!({"type": "function", "name": name})),
        parallel_tool_calls: allows_one_call(request).then_some(false),
        text: text(&request.response_format),
        reasoning: effort.map(|effort| json!({"effort": effort})),
        temperature: parameters.temperature,
        top_p: parameters.top_p,
        max_output_tokens: limit.map(|limit| limit.max(LEAST_OUTPUT_TOKENS)),
    };
    let body = Body::new(&before, ("input", vec![input.items()]), &after);
    with_extra(body, &parameters.extra).into_bytes()
}

/// Returns whether the model may reason, by its name without a vendor prefix.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !NOT_REASONING.iter().any(|start| name.starts_with(start))
}

#[derive(Serialize)]
struct BeforeInput<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<&'static [&'static str; 1]>,
}

#[derive(Serialize)]
struct AfterInput {
    stream: bool,
    /// Changes from step to step.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    /// By default several calls are allowed. Some models reject the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    OfAgent {
        r#type: &'static str,
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        /// Always sent, since the protocol's default rewrites schemas into strict ones.
        strict: bool,
    },
    OfProvider(&'a Object),
}

impl<'a> WireTool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self::OfAgent {
            r#type: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
            strict: false,
        }
    }
}

fn text(format: &ResponseFormat) -> Option<Value> {
    let format = match format {
        ResponseFormat::Text => return None,
        ResponseFormat::JsonObject => json!({"type": "json_object"}),
        ResponseFormat::JsonSchema { name, schema, strict } => {
            json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict})
        }
    };
    Some(json!({"format": format}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_not_reason_are_known_by_name() {
        for (model, may_reason) in [
            ("gpt-5", true),
            ("gpt-5.1-codex", true),
            ("o3-mini", true),
            ("openai/o4-mini", true),
            ("my-deployment", true),
            ("gpt-4o", false),
            ("gpt-4.1-mini", false),
            ("openai/gpt-4o-2024-08-06", false),
            ("gpt-5-chat-latest", false),
            ("chatgpt-4o-latest", false),
        ] {
            assert_eq!(reasons(model), may_reason, "{model}");
        }
    }
}

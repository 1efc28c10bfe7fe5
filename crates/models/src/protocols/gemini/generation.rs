//! Encodes `generationConfig`, and adds instructions for settings that a model does not accept
//! there.

use serde_json::json;

use crate::parameters::{accepted_limit, sampling};
use crate::protocol::Dialect;
use crate::schema::format_prompt;
use agent::ports::ModelRequest;
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;

/// Thinking budgets by effort. Google translates the efforts of other protocols in the same way
/// (<https://ai.google.dev/gemini-api/docs/openai>, "Thinking").
const BUDGETS: [(&str, u64); 5] = [
    ("none", 0),
    ("minimal", 1_024),
    ("low", 1_024),
    ("medium", 8_192),
    ("high", 24_576),
];

/// Returns whether the model is older than Gemini 3. Such models have thinking budgets instead of
/// levels, can't follow a response format while they may call tools, and require no signatures.
pub(super) fn is_older(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    ["gemini-1", "gemini-2", "gemma"]
        .iter()
        .any(|older| name.starts_with(older))
}

/// Returns the fields of `generationConfig`.
pub(super) fn config(request: &ModelRequest, dialect: &Dialect) -> Object {
    let parameters = &request.parameters;
    let mut config = sampling(parameters, ["temperature", "topP", "stopSequences"]);
    if let Some(limit) = accepted_limit(request, dialect.max_output_tokens) {
        config.insert("maxOutputTokens".to_owned(), Value::from(limit));
    }
    if let Some(effort) = &parameters.reasoning_effort {
        config.insert("thinkingConfig".to_owned(), thinking(&request.model, effort));
    }
    if !is_shape_in_prompt(request, dialect) {
        match &request.response_format {
            ResponseFormat::Text => return config,
            ResponseFormat::JsonObject => {}
            ResponseFormat::JsonSchema { schema, .. } => {
                config.insert("responseJsonSchema".to_owned(), schema.clone());
            }
        }
        config.insert("responseMimeType".to_owned(), Value::from("application/json"));
    }
    config
}

/// Returns the prompt that describes the response format.
pub(super) fn shape_prompt(request: &ModelRequest, dialect: &Dialect) -> Option<String> {
    if !is_shape_in_prompt(request, dialect) {
        return None;
    }
    format_prompt(&request.response_format)
}

/// Returns whether the prompt describes the response format. Older models reject a request with
/// both tools, including the provider's own, and a response format.
fn is_shape_in_prompt(request: &ModelRequest, dialect: &Dialect) -> bool {
    let has_tools = || !request.tools.is_empty() || !request.tools_of_provider(&dialect.provider).is_empty();
    is_older(&request.model) && has_tools()
}

/// Returns the thinking settings. Requested thoughts are also returned.
fn thinking(model: &str, effort: &str) -> Value {
    let budget = BUDGETS.iter().find(|(name, _)| *name == effort);
    match budget {
        Some((_, 0)) if is_older(model) => json!({"thinkingBudget": 0}),
        Some((_, budget)) if is_older(model) => json!({"includeThoughts": true, "thinkingBudget": budget}),
        _ => json!({"includeThoughts": true, "thinkingLevel": effort}),
    }
}

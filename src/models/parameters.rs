//! Encodes an agent's parameters for the requests of several protocols.

use serde_json::json;
use serde_json::value::RawValue;

use super::wire::{Fields, object_text};
use crate::agent::ports::ModelRequest;
use crate::json::{Object, Value};
use crate::model_parameters::{ModelParameters, ToolChoice, names_other_models};

/// The most tokens that are requested if the server's limit is unknown. Servers reject a limit
/// beyond what a model can write, and the rest of a budget may be any number. Current models can
/// write at least this many.
const SAFE_OUTPUT_TOKENS: u64 = 4_096;

/// The smallest thinking budget that models of Anthropic accept.
const LEAST_THINKING_TOKENS: u64 = 1_024;

/// Returns a limit of output tokens that the server accepts. Without a limit in the request, the
/// reader of the stream cuts the completion.
///
/// `most` is the configured limit of the server. An agent's own limit is trusted, since the agent
/// knows its model.
pub(super) fn accepted_limit(request: &ModelRequest, most: Option<u64>) -> Option<u64> {
    let left = request.max_output_tokens?;
    match most {
        Some(most) => Some(left.min(most)),
        None => Some(left).filter(|left| *left <= SAFE_OUTPUT_TOKENS.max(known(request))),
    }
}

/// Encodes which tools the model may or must call, in the form of OpenAI. `one_tool` encodes the
/// choice of one tool. Servers reject a choice without tools.
pub(super) fn tool_choice(request: &ModelRequest, one_tool: fn(&str) -> Value) -> Option<Value> {
    match &request.tool_choice {
        _ if request.tools.is_empty() => None,
        // This is the default, so the agent's own choice in `extra` applies.
        ToolChoice::Auto if request.parameters.extra.contains_key("tool_choice") => None,
        ToolChoice::Auto => Some("auto".into()),
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(one_tool(name)),
    }
}

/// Returns the sampling fields, with the protocol's names for the temperature, `top_p` and the stop
/// sequences.
pub(super) fn sampling(parameters: &ModelParameters, [temperature, top_p, stop]: [&str; 3]) -> Object {
    let stops = (!parameters.stop.is_empty()).then(|| json!(parameters.stop));
    let fields = [
        (temperature, parameters.temperature.map(Value::from)),
        (top_p, parameters.top_p.map(Value::from)),
        (stop, stops),
    ];
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Reduces an Anthropic thinking budget to fit into the limit of output tokens, since the model
/// rejects a larger one. If even the smallest budget does not fit, disables thinking.
pub(super) fn bound_thinking(fields: &mut Object, max_tokens: u64) {
    let Some(thinking) = fields.get_mut("thinking") else {
        return;
    };
    if thinking_budget(thinking).is_none_or(|budget| budget < max_tokens) {
        return;
    }
    if max_tokens > LEAST_THINKING_TOKENS {
        thinking["budget_tokens"] = Value::from(max_tokens - 1);
    } else {
        *thinking = json!({"type": "disabled"});
    }
}

/// Returns the budget of a field `thinking`.
pub(super) fn thinking_budget(thinking: &Value) -> Option<u64> {
    thinking.get("budget_tokens")?.as_u64()
}

fn known(request: &ModelRequest) -> u64 {
    request.parameters.max_output_tokens.unwrap_or_default()
}

/// Adds further fields at the end of a request's body, sorted by name. Existing fields of the body
/// stay, and objects are merged in the same way. Omits fields that name other models, which
/// definitions of older versions may contain.
pub(super) fn with_extra(body: Vec<u8>, extra: &Object) -> Vec<u8> {
    if extra.is_empty() {
        return body;
    }
    let Some(fields) = std::str::from_utf8(&body).ok().and_then(Fields::parse) else {
        return body;
    };
    let known = fields.iter().map(|(name, raw)| (name, merged(raw, extra.get(name))));
    let new = extra
        .iter()
        .filter(|(name, _)| !fields.has(name) && !names_other_models(name));
    let new = new.map(|(name, value)| (name.as_str(), value.to_string()));
    object_text(known.chain(new)).into_bytes()
}

fn merged(own: &RawValue, extra: Option<&Value>) -> String {
    let Some(extra @ Value::Object(_)) = extra else {
        return own.get().to_owned();
    };
    let Ok(mut own_value @ Value::Object(_)) = serde_json::from_str(own.get()) else {
        return own.get().to_owned();
    };
    fill(&mut own_value, extra);
    own_value.to_string()
}

/// Adds fields to an object, and to the objects in it. Existing fields stay.
pub(super) fn fill(own: &mut Value, extra: &Value) {
    let (Value::Object(own), Value::Object(extra)) = (own, extra) else {
        return;
    };
    for (name, value) in extra {
        match own.get_mut(name) {
            Some(known) => fill(known, value),
            None => {
                own.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::agent::state::Messages;
    use crate::model_ref::ResponseFormat;

    #[test]
    fn an_unverified_limit_is_not_sent() {
        for (left, own, most, sent) in [
            (None, None, Some(10), None),
            (Some(5), None, Some(10), Some(5)),
            (Some(50), None, Some(10), Some(10)),
            (Some(4_096), None, None, Some(4_096)),
            (Some(4_097), None, None, None),
            (Some(20_000), Some(32_000), None, Some(20_000)),
            (Some(32_000), Some(32_000), None, Some(32_000)),
            (Some(32_000), Some(32_000), Some(16_000), Some(16_000)),
            (Some(100), Some(100), None, Some(100)),
        ] {
            let request = ModelRequest {
                model: "m".to_owned(),
                system: "".into(),
                messages: Messages::default(),
                tools: Arc::new([]),
                provider_tools: Arc::default(),
                tool_choice: ToolChoice::Auto,
                response_format: ResponseFormat::Text,
                max_output_tokens: left,
                parameters: Arc::new(ModelParameters {
                    max_output_tokens: own,
                    ..ModelParameters::default()
                }),
            };
            assert_eq!(accepted_limit(&request, most), sent, "{left:?} {own:?} {most:?}");
        }
    }

    #[test]
    fn further_fields_replace_nothing() {
        let body = r#"{"b":1e2,"a":{"z": 1},"l":[1]}"#;
        for (extra, expected) in [
            (json!({}), body),
            (json!({"b": 2, "a": 3, "l": [2]}), r#"{"b":1e2,"a":{"z": 1},"l":[1]}"#),
            (
                json!({"y": null, "c": "d"}),
                r#"{"b":1e2,"a":{"z": 1},"l":[1],"c":"d","y":null}"#,
            ),
            (
                json!({"a": {"z": 2, "k": {"l": 3}}}),
                r#"{"b":1e2,"a":{"k":{"l":3},"z":1},"l":[1]}"#,
            ),
            (
                json!({"models": ["dear"], "route": "fallback", "fallbacks": [], "c": "d"}),
                r#"{"b":1e2,"a":{"z": 1},"l":[1],"c":"d"}"#,
            ),
        ] {
            let extra = extra.as_object().unwrap();
            let merged = with_extra(body.as_bytes().to_vec(), extra);
            assert_eq!(String::from_utf8(merged).unwrap(), expected);
        }
    }
}

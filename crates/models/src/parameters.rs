//! Encodes an agent's parameters for the requests of several protocols.

use serde_json::json;
use serde_json::value::RawValue;

use super::encode::Body;
use super::fields::{Fields, object_text};
use agent::ports::ModelRequest;
use values::json::{Object, Value};
use values::model_parameters::{ModelParameters, ToolChoice};

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

/// Returns whether a request must ask for one tool call at most. Servers reject that without tools.
pub(super) fn allows_one_call(request: &ModelRequest) -> bool {
    request.parameters.single_tool_call == Some(true) && !request.tools.is_empty()
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
/// stay, and objects are merged in the same way.
pub(super) fn with_extra<'a>(body: Body<'a>, extra: &Object) -> Body<'a> {
    if extra.is_empty() {
        return body;
    }
    let (Some(before), Some(after)) = (Fields::parse(&body.before), Fields::parse(&body.after)) else {
        return body;
    };
    let known = |fields: &Fields<'_>| {
        let known = fields.iter();
        let known = known.map(|(name, raw)| (name.to_owned(), merged(raw, extra.get(name))));
        known.collect::<Vec<_>>()
    };
    let is_new = |name: &str| name != body.list && !before.has(name) && !after.has(name);
    let new = extra.iter().filter(|(name, _)| is_new(name));
    let new = new.map(|(name, value)| (name.clone(), value.to_string()));
    let text = |fields: Vec<(String, String)>| object_text(fields.iter().map(|(name, value)| (name.as_str(), value)));
    let (before, after) = (
        text(known(&before)),
        text(known(&after).into_iter().chain(new).collect()),
    );
    Body { before, after, ..body }
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
    use crate::encode::Items;
    use agent::state::Messages;
    use values::model_ref::ResponseFormat;

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
                trace: None,
            };
            assert_eq!(accepted_limit(&request, most), sent, "{left:?} {own:?} {most:?}");
        }
    }

    #[test]
    fn further_fields_replace_nothing() {
        let whole = |before: &str, after: &str, extra: &Value| {
            let mut items = Items::default();
            items.push(&1);
            let body = Body {
                before: before.to_owned(),
                list: "l",
                items: vec![&items],
                after: after.to_owned(),
            };
            let merged = with_extra(body, extra.as_object().unwrap());
            String::from_utf8(merged.into_bytes()).unwrap()
        };
        for (extra, expected) in [
            (json!({}), r#"{"b":1e2,"a":{"z": 1},"l":[1]}"#),
            (json!({"b": 2, "a": 3, "l": [2]}), r#"{"b":1e2,"a":{"z": 1},"l":[1]}"#),
            (
                json!({"y": null, "c": "d"}),
                r#"{"b":1e2,"a":{"z": 1},"l":[1],"c":"d","y":null}"#,
            ),
            (
                json!({"a": {"z": 2, "k": {"l": 3}}}),
                r#"{"b":1e2,"a":{"k":{"l":3},"z":1},"l":[1]}"#,
            ),
        ] {
            assert_eq!(whole(r#"{"b":1e2,"a":{"z": 1}}"#, "{}", &extra), expected);
        }
        let extra = json!({"a": {"z": 2, "k": 3}, "b": 2, "c": "d"});
        for (before, after, expected) in [
            ("{}", "{}", r#"{"l":[1],"a":{"k":3,"z":2},"b":2,"c":"d"}"#),
            (
                "{}",
                r#"{"a":{"z":1},"b":1e2}"#,
                r#"{"l":[1],"a":{"k":3,"z":1},"b":1e2,"c":"d"}"#,
            ),
            (
                r#"{"b":1e2}"#,
                r#"{"a":{"z":1}}"#,
                r#"{"b":1e2,"l":[1],"a":{"k":3,"z":1},"c":"d"}"#,
            ),
        ] {
            assert_eq!(whole(before, after, &extra), expected);
        }
    }
}

//! Encodes requests.
//!
//! The tools come first, and a message always encodes to the same bytes. So the next step's request
//! begins with the bytes of this one, unless the tools or the tool choice change: the protocol has
//! both in one object.

use std::mem::take;

use rpds::RedBlackTreeSetSync;
use serde::Serialize;
use serde_json::json;

use super::blocks::BlockEncoder;
use crate::conversation::{Conversation, MessageEncoder as _};
use crate::encode::{Body, Part, raw};
use crate::parameters::{accepted_limit, bound_thinking, fill, sampling, with_extra};
use crate::protocol::Dialect;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::model_parameters::{ModelParameters, ToolChoice};
use values::model_ref::ResponseFormat;

/// Fields of a request that the encoder does not set itself. All other fields of an agent's `extra`
/// are the model's own and go to `additionalModelRequestFields`.
const FIELDS: [&str; 10] = [
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "toolConfig",
];

/// The field of `extra` that configures the marks for the prompt cache.
const CACHE_POINT: &str = "cachePoint";

/// Encodes a request, without the model and the mode, which are in the address.
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect) -> Vec<u8> {
    let encoder = BlockEncoder::new(dialect.target(request));
    let mut conversation = request.messages.fold(Conversation::new(encoder));
    let mark = mark(request);
    let max_tokens = accepted_limit(request, dialect.max_output_tokens);
    let mut system: Vec<Part> = Vec::new();
    if !request.system.trim().is_empty() {
        system.extend(BlockEncoder::text(&request.system));
        system.extend(mark.as_ref().and_then(raw));
    }
    system.extend(take(&mut conversation.system));
    let before = BeforeMessages {
        tool_config: tool_config(request, dialect, &conversation.encoder.called, mark),
        system,
    };
    let after = AfterMessages {
        inference_config: inference_config(&request.parameters, max_tokens),
    };
    let mut more = Object::new();
    let mut model_fields = effort_fields(&request.model, &request.parameters);
    for (name, value) in request.parameters.extra.iter().filter(|(name, _)| *name != CACHE_POINT) {
        if FIELDS.contains(&name.as_str()) {
            more.insert(name.clone(), value.clone());
        } else {
            model_fields.insert(name.clone(), value.clone());
        }
    }
    let mut model_fields = Value::Object(model_fields);
    if let Some(named) = more.remove("additionalModelRequestFields") {
        fill(&mut model_fields, &named);
    }
    if let (Some(max_tokens), Value::Object(model_fields)) = (max_tokens, &mut model_fields) {
        bound_thinking(model_fields, max_tokens);
    }
    if request.tool_choice.forces_a_call() && !request.tools.is_empty() {
        // A choice is a union, so the agent's own choice replaces it as a whole.
        if let Some(config) = more.get_mut("toolConfig").and_then(Value::as_object_mut) {
            config.remove("toolChoice");
        }
        // Models of Anthropic reject a forced call while they think.
        if let Some(thinking) = model_fields.get_mut("thinking") {
            *thinking = json!({"type": "disabled"});
        }
    }
    let mut body = Body::new(&before, ("messages", vec![conversation.end(true)]), &after);
    if let ResponseFormat::JsonSchema { name, schema, .. } = &request.response_format {
        body = with_extra(body, &output_config(name, schema));
    }
    if model_fields != json!({}) {
        more.insert("additionalModelRequestFields".to_owned(), model_fields);
    }
    with_extra(body, &more).into_bytes()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BeforeMessages {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AfterMessages {
    inference_config: Object,
}

/// Returns the block that marks the end of the cached prefix. Only some models accept one. An
/// agent's own `cachePoint` sets the mark for any model; null removes it.
fn mark(request: &ModelRequest) -> Option<Value> {
    let own = request.parameters.extra.get(CACHE_POINT);
    let takes_marks = request.model.contains("anthropic.claude")
        && ![
            "claude-3-haiku",
            "claude-3-sonnet",
            "claude-3-opus",
            "claude-v2",
            "claude-instant",
        ]
        .iter()
        .any(|older| request.model.contains(older));
    let default = || takes_marks.then(|| json!({"type": "default"}));
    let mark = own.cloned().or_else(default).filter(|mark| !mark.is_null())?;
    Some(json!({CACHE_POINT: mark}))
}

/// Encodes the tools. The protocol rejects calls and results in a request without tools, so called
/// tools that no longer exist are included.
fn tool_config(
    request: &ModelRequest,
    dialect: &Dialect,
    called: &RedBlackTreeSetSync<String>,
    mark: Option<Value>,
) -> Option<Value> {
    let choice = match &request.tool_choice {
        ToolChoice::Required if !request.tools.is_empty() => Some(json!({"any": {}})),
        ToolChoice::Tool(name) if !request.tools.is_empty() => Some(json!({"tool": {"name": name}})),
        _ => None,
    };
    let provider_tools = request.provider_tools.get(&dialect.provider).into_iter().flatten();
    let provider_tools = provider_tools.map(|tool| Value::Object(tool.clone()));
    let offered = request.tools.iter().map(tool).chain(provider_tools);
    // The protocol can't forbid calls, so no tools are offered instead.
    let is_forbidden = request.tool_choice == ToolChoice::None;
    let mut tools: Vec<Value> = offered.filter(|_| !is_forbidden).collect();
    if tools.is_empty() {
        let gone = called.iter().map(|name| {
            let description = "This tool can't be called any more.";
            json!({"toolSpec": {"name": name, "description": description, "inputSchema": {"json": {"type": "object"}}}})
        });
        tools.extend(gone);
    } else {
        tools.extend(mark);
    }
    if tools.is_empty() {
        return None;
    }
    let mut config = json!({"tools": tools});
    if let Some(choice) = choice {
        config["toolChoice"] = choice;
    }
    Some(config)
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({"name": spec.name, "inputSchema": {"json": spec.parameters}});
    if !spec.description.trim().is_empty() {
        tool["description"] = Value::from(spec.description.as_str());
    }
    json!({"toolSpec": tool})
}

fn inference_config(parameters: &ModelParameters, max_tokens: Option<u64>) -> Object {
    let mut config = sampling(parameters, ["temperature", "topP", "stopSequences"]);
    config.extend(max_tokens.map(|max_tokens| ("maxTokens".to_owned(), Value::from(max_tokens))));
    config
}

/// Returns the fields for the reasoning effort, whose names depend on the vendor. Unknown vendors
/// get none.
fn effort_fields(model: &str, parameters: &ModelParameters) -> Object {
    let Some(effort) = &parameters.reasoning_effort else {
        return Object::new();
    };
    let fields = if model.contains("anthropic.claude") {
        json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}})
    } else if model.contains("openai.") {
        json!({"reasoning_effort": effort})
    } else if model.contains("amazon.nova-2") {
        json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}})
    } else {
        Value::Null
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

/// Encodes the response format. The protocol requires the schema as a string.
fn output_config(name: &str, schema: &Value) -> Object {
    let structure = json!({"jsonSchema": {"name": name, "schema": schema.to_string()}});
    let config = json!({"textFormat": {"type": "json_schema", "structure": structure}});
    Object::from_iter([("outputConfig".to_owned(), config)])
}

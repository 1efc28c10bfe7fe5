//! Encodes requests.
//!
//! Everything that can change between steps follows the messages, and a message always encodes to
//! the same bytes. So the next step's request begins with the bytes of this one.

use std::mem::take;

use serde::Serialize;
use serde_json::json;

use super::blocks::BlockEncoder;
use crate::conversation::{Conversation, MessageEncoder as _};
use crate::encode::{Body, Part};
use crate::parameters::{allows_one_call, bound_thinking, sampling, thinking_budget};
use crate::protocol::Dialect;
use crate::target::Target;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::message::{ContentPart, Message};
use values::model_parameters::{ModelParameters, ToolChoice};
use values::model_ref::ResponseFormat;

/// The default limit of output tokens. The protocol requires a number, and every current model can
/// write this many.
const DEFAULT_OUTPUT_TOKENS: u64 = 16_384;

/// The instruction to write JSON of any shape, for which the protocol has no field.
const JSON_ONLY: &str = "Answer with one JSON object and nothing else: no words around it and no Markdown.";

/// Encodes a request.
///
/// Three positions are marked for the provider's cache: the end of the tools, the end of the
/// instructions, and, by a field of the whole request, the last message. A mark on the last message
/// itself would move with each request, so no request would begin with the bytes of the previous
/// one (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>, "Automatic
/// caching").
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect, stream: bool) -> Vec<u8> {
    let encoder = BlockEncoder::new(dialect.target(request));
    let mut conversation = request.messages.fold(Conversation::new(encoder));
    let mark = mark(&request.parameters);
    let max_tokens = max_tokens(request, dialect.max_output_tokens);
    let before = BeforeMessages {
        model: &request.model,
        tools: tools(request, &dialect.provider, mark.as_ref()),
        system: system(request, mark.as_ref(), take(&mut conversation.system)),
    };
    let after = AfterMessages {
        stream,
        max_tokens,
        settings: settings(request, mark, max_tokens),
    };
    // Models refuse to continue a complete message. A paused message is sent back unchanged.
    let last = request.messages.last();
    let ends_with_caller = last.is_some_and(|last| is_over(last, &conversation.encoder.target));
    let turns = conversation.end(ends_with_caller);
    Body::new(&before, ("messages", vec![turns]), &after).into_bytes()
}

/// Returns whether a completion was the final one. Only its own model can continue a paused one.
fn is_over(completion: &Message, target: &Target) -> bool {
    let ends_open = || matches!(completion.content.last(), Some(ContentPart::Opaque(_)));
    !target.made(completion) || (!completion.tags.is_trace && !ends_open())
}

#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<SystemBlock>,
}

#[derive(Serialize)]
struct AfterMessages {
    stream: bool,
    max_tokens: u64,
    #[serde(flatten)]
    settings: Object,
}

/// The fields that the encoder always sets. Nothing may replace them.
const OWN_FIELDS: [&str; 6] = ["model", "tools", "system", "messages", "stream", "max_tokens"];

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    OfAgent {
        name: &'a str,
        description: &'a str,
        input_schema: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    OfProvider(&'a Object),
}

#[derive(Serialize)]
#[serde(untagged)]
enum SystemBlock {
    OfAgent {
        r#type: &'static str,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    Plain(Part),
}

/// Returns the mark for all positions, since the protocol rejects some mixtures of lifetimes. An
/// agent's own `cache_control` replaces the mark; null removes it.
fn mark(parameters: &ModelParameters) -> Option<Value> {
    let own = parameters.extra.get("cache_control").cloned();
    let mark = own.unwrap_or_else(|| json!({"type": "ephemeral"}));
    Some(mark).filter(|mark| !mark.is_null())
}

fn tools<'a>(request: &'a ModelRequest, provider: &str, mark: Option<&Value>) -> Vec<WireTool<'a>> {
    let specs: &[ToolSpec] = &request.tools;
    let last = specs.len().saturating_sub(1);
    let tools = specs.iter().enumerate().map(|(position, spec)| WireTool::OfAgent {
        name: &spec.name,
        description: &spec.description,
        input_schema: &spec.parameters,
        cache_control: mark.filter(|_| position == last).cloned(),
    });
    let provider_tools = request.tools_of_provider(provider).into_iter();
    tools.chain(provider_tools.map(WireTool::OfProvider)).collect()
}

/// Encodes the instructions. The agent's instructions are marked. System messages of the
/// conversation follow, since they change more often.
fn system(request: &ModelRequest, mark: Option<&Value>, conversation: Vec<Part>) -> Vec<SystemBlock> {
    let mut blocks = Vec::new();
    if !request.system.trim().is_empty() {
        blocks.push(SystemBlock::OfAgent {
            r#type: "text",
            text: request.system.to_string(),
            cache_control: mark.cloned(),
        });
    }
    blocks.extend(conversation.into_iter().map(SystemBlock::Plain));
    if matches!(request.response_format, ResponseFormat::JsonObject) {
        blocks.extend(BlockEncoder::text(JSON_ONLY).map(SystemBlock::Plain));
    }
    blocks
}

/// Returns the limit of output tokens, which the protocol requires in each request: the rest of the
/// budget, up to the limit of the server or of the agent.
fn max_tokens(request: &ModelRequest, most: Option<u64>) -> u64 {
    let asked = request.parameters.max_output_tokens;
    let thinking = request.parameters.extra.get("thinking").and_then(thinking_budget);
    let enough = DEFAULT_OUTPUT_TOKENS.saturating_add(thinking.unwrap_or_default());
    let most = most.or(asked).unwrap_or(enough);
    request.max_output_tokens.map_or(most, |left| left.min(most)).max(1)
}

/// Returns the fields after the messages. An agent's own fields may add to them; its own `thinking`
/// replaces the encoder's. Null fields are omitted.
fn settings(request: &ModelRequest, mark: Option<Value>, max_tokens: u64) -> Object {
    let parameters = &request.parameters;
    let mut fields: Object = parameters
        .extra
        .iter()
        .filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    fields.extend(mark.map(|mark| ("cache_control".to_owned(), mark)));
    bound_thinking(&mut fields, max_tokens);
    if let Some(effort) = &parameters.reasoning_effort {
        // Effort and thinking are two settings. Both together are the documented way to make a
        // model use the requested effort
        // (<https://platform.claude.com/docs/en/build-with-claude/effort>). Models before Claude
        // 4.6 require a budget of tokens instead, which an agent sets in `extra`.
        fields.entry("thinking").or_insert_with(|| json!({"type": "adaptive"}));
        configure_output(&mut fields, "effort", Value::from(effort.as_str()));
    }
    choose_tools(&mut fields, request);
    if let ResponseFormat::JsonSchema { schema, .. } = &request.response_format {
        let format = json!({"type": "json_schema", "schema": schema});
        configure_output(&mut fields, "format", format);
    }
    fields.extend(sampling(parameters, ["temperature", "top_p", "stop_sequences"]));
    fields.retain(|_, value| !value.is_null());
    fields
}

/// Encodes the tool choice, if there are tools. The protocol rejects a forced call if the model
/// thinks.
fn choose_tools(fields: &mut Object, request: &ModelRequest) {
    let is_single = allows_one_call(request);
    let mut choice = match &request.tool_choice {
        _ if request.tools.is_empty() => return,
        ToolChoice::Auto if !is_single => return,
        // The agent's own choice in `extra` applies.
        ToolChoice::Auto => fields.remove("tool_choice").unwrap_or_else(|| json!({"type": "auto"})),
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
    };
    if is_single && choice.get("type").is_some_and(|kind| kind != "none") {
        choice["disable_parallel_tool_use"] = Value::Bool(true);
    }
    fields.insert("tool_choice".to_owned(), choice);
    if request.tool_choice.forces_a_call()
        && let Some(thinking) = fields.get_mut("thinking")
    {
        *thinking = json!({"type": "disabled"});
    }
}

/// Sets a field of the object `output_config`, in addition to the agent's own fields.
fn configure_output(fields: &mut Object, name: &str, value: Value) {
    let mut config = match fields.remove("output_config") {
        Some(Value::Object(config)) => config,
        _ => Object::new(),
    };
    config.insert(name.to_owned(), value);
    fields.insert("output_config".to_owned(), Value::Object(config));
}

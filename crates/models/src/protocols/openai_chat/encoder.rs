//! Encodes requests.
//!
//! Everything that can change between steps follows the messages, and a message always encodes to
//! the same bytes. So the next step's request begins with the bytes of this one.

use serde::Serialize;
use serde_json::json;

use super::messages::Conversation;
use super::server::Server;
use crate::encode::Body;
use crate::parameters::{accepted_limit, allows_one_call, tool_choice, with_extra};
use crate::protocol::Dialect;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;

/// Encodes a request.
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect, server: Server, stream: bool) -> Vec<u8> {
    let mut conversation = request
        .messages
        .fold(Conversation::new(server, dialect.target(request)));
    let tools = request.tools.iter().map(WireTool::of);
    let provider_tools = request.tools_of_provider(&dialect.provider).into_iter();
    let parameters = &request.parameters;
    let limit = accepted_limit(request, dialect.max_output_tokens);
    let (max_tokens, max_completion_tokens) = if server.has_completion_limit() {
        (None, limit)
    } else {
        (limit, None)
    };
    let before = BeforeMessages {
        model: &request.model,
        tools: tools.chain(provider_tools.map(WireTool::OfProvider)).collect(),
        response_format: response_format(&request.response_format),
    };
    let after = AfterMessages {
        stream,
        tool_choice: tool_choice(request, |name| json!({"type": "function", "function": {"name": name}})),
        parallel_tool_calls: allows_one_call(request).then_some(false),
        stream_options: (stream && server.has_stream_options()).then_some(StreamOptions { include_usage: true }),
        temperature: parameters.temperature,
        top_p: parameters.top_p,
        stop: &parameters.stop,
        reasoning_effort: parameters.reasoning_effort.as_deref(),
        max_tokens,
        max_completion_tokens,
    };
    let (system, messages) = conversation.end(&request.system);
    let body = Body::new(&before, ("messages", vec![&system, messages]), &after);
    with_extra(body, &parameters.extra).into_bytes()
}

#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
struct AfterMessages<'a> {
    stream: bool,
    /// Changes from step to step.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    /// By default several calls are allowed. Some models reject the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireTool<'a> {
    OfAgent {
        r#type: &'static str,
        function: WireFunction<'a>,
    },
    OfProvider(&'a Object),
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> WireTool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self::OfAgent {
            r#type: "function",
            function: WireFunction {
                name: &spec.name,
                description: &spec.description,
                parameters: &spec.parameters,
            },
        }
    }
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(json!({"type": "json_object"})),
        ResponseFormat::JsonSchema { name, schema, strict } => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": strict},
        })),
    }
}

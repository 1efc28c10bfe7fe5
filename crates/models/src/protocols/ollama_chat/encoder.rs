//! Encodes requests.
//!
//! Everything that can change between steps follows the messages, and a message always encodes to
//! the same bytes. So the next step's request begins with the bytes of this one.

use serde::Serialize;

use super::messages::{Conversation, WireMessage};
use crate::encode::{Body, Items};
use crate::parameters::{accepted_limit, sampling, with_extra};
use crate::protocol::Dialect;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

/// Encodes a request.
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect, stream: bool) -> Vec<u8> {
    let conversation = request.messages.fold(Conversation::new(dialect.target(request)));
    let mut system = Items::default();
    if !request.system.is_empty() {
        system.push(&WireMessage::system(&request.system));
    }
    let before = BeforeMessages {
        model: &request.model,
        tools: tools(request, dialect),
    };
    let after = AfterMessages {
        stream,
        format: format(&request.response_format),
        think: request.parameters.reasoning_effort.as_deref().map(think),
        options: options(request, dialect),
    };
    let body = Body::new(&before, ("messages", vec![&system, &conversation.messages]), &after);
    with_extra(body, &request.parameters.extra).into_bytes()
}

#[derive(Serialize)]
struct BeforeMessages<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
}

#[derive(Serialize)]
struct AfterMessages {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    options: Object,
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

/// Encodes the tools. The protocol can't forbid calls, so the choice of none leaves them out.
fn tools<'a>(request: &'a ModelRequest, dialect: &Dialect) -> Vec<WireTool<'a>> {
    if request.tool_choice == ToolChoice::None {
        return Vec::new();
    }
    let provider_tools = request.tools_of_provider(&dialect.provider).into_iter();
    let tools = request.tools.iter().map(WireTool::of);
    tools.chain(provider_tools.map(WireTool::OfProvider)).collect()
}

fn format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some("json".into()),
        ResponseFormat::JsonSchema { schema, .. } => Some(schema.clone()),
    }
}

fn think(effort: &str) -> Value {
    match effort {
        "none" => false.into(),
        effort => effort.into(),
    }
}

fn options(request: &ModelRequest, dialect: &Dialect) -> Object {
    let mut options = sampling(&request.parameters, ["temperature", "top_p", "stop"]);
    if let Some(limit) = accepted_limit(request, dialect.max_output_tokens) {
        options.insert("num_predict".to_owned(), limit.into());
    }
    options
}

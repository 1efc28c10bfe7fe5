//! Encodes requests.
//!
//! Everything that can change between steps follows the contents, and a message always encodes to
//! the same bytes. So the next step's request begins with the bytes of this one.

use std::mem::take;

use serde::Serialize;
use serde_json::json;

use super::generation;
use super::parts::PartEncoder;
use crate::conversation::{Conversation, MessageEncoder as _};
use crate::encode::{Body, Part};
use crate::parameters::with_extra;
use crate::protocol::Dialect;
use agent::ports::{ModelRequest, ToolSpec};
use values::json::{Object, Value};
use values::model_parameters::ToolChoice;

/// Encodes a request. The address, not the body, names the model and the streaming mode.
pub(super) fn encode_request(request: &ModelRequest, dialect: &Dialect) -> Vec<u8> {
    let wants_signatures = !generation::is_older(&request.model);
    let encoder = PartEncoder::new(dialect.target(request), wants_signatures);
    let mut conversation = request.messages.fold(Conversation::new(encoder));
    let mut system: Vec<Part> = Vec::new();
    if !request.system.trim().is_empty() {
        system.extend(PartEncoder::text(&request.system));
    }
    system.extend(take(&mut conversation.system));
    system.extend(generation::shape_prompt(request, dialect).and_then(|words| PartEncoder::text(&words)));
    let functions: Vec<_> = request.tools.iter().map(Function::of).collect();
    let functions = (!functions.is_empty()).then_some(Tools::OfAgent {
        function_declarations: functions,
    });
    let provider_tools = request.tools_of_provider(&dialect.provider).into_iter();
    let before = BeforeContents {
        tools: functions
            .into_iter()
            .chain(provider_tools.map(Tools::OfProvider))
            .collect(),
        system_instruction: (!system.is_empty()).then_some(Instruction { parts: system }),
    };
    let after = AfterContents {
        tool_config: tool_config(request),
        generation_config: generation::config(request, dialect),
    };
    let body = Body::new(&before, ("contents", vec![conversation.end(true)]), &after);
    with_extra(body, &request.parameters.extra).into_bytes()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BeforeContents<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AfterContents {
    /// Changes from step to step.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: Object,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Tools<'a> {
    #[serde(rename_all = "camelCase")]
    OfAgent {
        function_declarations: Vec<Function<'a>>,
    },
    OfProvider(&'a Object),
}

/// Encodes which tools the model may or must call. The protocol rejects a choice without tools.
fn tool_config(request: &ModelRequest) -> Option<Value> {
    let config = match &request.tool_choice {
        _ if request.tools.is_empty() => return None,
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Some(json!({"functionCallingConfig": config}))
}

#[derive(Serialize)]
struct Instruction {
    parts: Vec<Part>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self {
            name: &spec.name,
            description: &spec.description,
            parameters_json_schema: &spec.parameters,
        }
    }
}

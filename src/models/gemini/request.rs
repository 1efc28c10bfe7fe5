//! Encodes requests. All that may change from step to step comes after the contents, and a message encodes to the same bytes each time,
//! so that the request of the next step begins with the bytes of this one.

use serde::Serialize;

use super::contents::{Contents, Turn};
use super::generation;
use super::parts::{self, Part};
use crate::agent::ports::{ModelRequest, ToolSpec};
use crate::json::{Object, Value};
use crate::models::parameters::with_extra;

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeminiDialect {
    /// The provider's configured name: what it gave goes back to it alone.
    pub provider: String,
    /// The most tokens that the server lets a request ask for, if it is known.
    pub max_output_tokens: Option<u64>,
}

/// Encodes a request, which says nothing of the model and of streams: the address does.
pub fn encode_request(request: &ModelRequest, dialect: &GeminiDialect) -> Vec<u8> {
    let messages = request.messages.iter().map(AsRef::as_ref);
    let wants_signatures = !generation::is_older(&request.model);
    let contents = Contents::of(messages, &dialect.provider, wants_signatures);
    let mut system: Vec<Part> = Vec::new();
    if !request.system.trim().is_empty() {
        system.extend(parts::text(&request.system));
    }
    system.extend(contents.system);
    system.extend(generation::shape_in_words(request).and_then(|words| parts::text(&words)));
    let functions: Vec<_> = request.tools.iter().map(Function::of).collect();
    let body = Body {
        tools: (!functions.is_empty()).then_some([Tools {
            function_declarations: functions,
        }]),
        system_instruction: (!system.is_empty()).then_some(Instruction { parts: system }),
        contents: contents.turns,
        generation_config: generation::config(request, dialect.max_output_tokens),
    };
    // Every map has text keys and every raw value was checked, so this can't fail.
    with_extra(serde_json::to_vec(&body).unwrap_or_default(), &request.parameters.extra)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction>,
    contents: Vec<Turn>,
    generation_config: Object,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
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

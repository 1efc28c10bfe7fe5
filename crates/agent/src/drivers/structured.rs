//! Makes a model follow a response format in the way that its provider supports: in the request, by
//! a tool, or by instructions.
//!
//! Does not check the response. If a model responds through a tool call, the arguments are stored
//! as the text of the response.

use std::sync::Arc;

use crate::ports::{ModelRequest, StructuredOutput, ToolSpec};
use crate::state::{FinishReason, ModelResponse};
use values::json::Value;
use values::message::ContentPart;
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

/// The name of the tool for a completion without a schema.
const ANSWER: &str = "answer";
/// The description of the tool for the final completion.
const FINAL_TOOL: &str =
    "Gives the final answer: its arguments are the answer. Call it once, by itself, when all other work is done.";

/// A request with the response format in the way that one model supports.
#[derive(Debug)]
pub(super) struct Formatted {
    pub(super) request: ModelRequest,
    /// The tool whose call is the final completion.
    pub(super) final_tool: Option<String>,
}

/// Adds the response format to a request.
pub(super) fn formatted(request: ModelRequest, by: StructuredOutput) -> Formatted {
    let (name, schema) = match &request.response_format {
        ResponseFormat::Text => return Formatted::unchanged(request),
        ResponseFormat::JsonObject => (ANSWER, None),
        ResponseFormat::JsonSchema { name, schema, .. } => (name.as_str(), Some(schema)),
    };
    match by {
        StructuredOutput::Native => Formatted::unchanged(request),
        StructuredOutput::Tool => {
            let name = free_name(name, &request.tools);
            let parameters = schema.cloned().unwrap_or_else(|| serde_json::json!({"type": "object"}));
            let words = format!("When the work is done, give the final answer by calling the tool {name}.");
            let tool = ToolSpec {
                name: name.clone(),
                description: FINAL_TOOL.to_owned(),
                parameters,
                idempotent: true,
                read_only: true,
                destructive: false,
                timeout: None,
            };
            Formatted {
                request: ModelRequest {
                    system: with_paragraph(&request.system, &words),
                    tools: request.tools.iter().cloned().chain([tool]).collect(),
                    // A model that may call no tool must still be able to finish.
                    tool_choice: match request.tool_choice {
                        ToolChoice::None => ToolChoice::Tool(name.clone()),
                        choice => choice,
                    },
                    response_format: ResponseFormat::Text,
                    ..request
                },
                final_tool: Some(name),
            }
        }
        StructuredOutput::Prompt => {
            let mut words = "Give the final answer as one JSON object, with nothing before or after it.".to_owned();
            words.push_str(&schema_words(schema));
            Formatted::unchanged(ModelRequest {
                system: with_paragraph(&request.system, &words),
                response_format: ResponseFormat::Text,
                ..request
            })
        }
    }
}

impl Formatted {
    fn unchanged(request: ModelRequest) -> Self {
        Self {
            request,
            final_tool: None,
        }
    }

    /// Returns the completion, with a call of the final tool replaced by its arguments as text.
    ///
    /// Such a call is never executed. If the model also called other tools, the arguments become
    /// text beside these calls, and their results follow. Otherwise the arguments are the whole
    /// completion, and other text is dropped.
    pub(super) fn unwrapped(final_tool: &str, response: ModelResponse) -> ModelResponse {
        let is_final = |part: &ContentPart| matches!(part, ContentPart::ToolCall(call) if call.name == final_tool);
        if !response.content.iter().any(is_final) {
            return response;
        }
        let has_other_calls = response
            .content
            .iter()
            .any(|part| matches!(part, ContentPart::ToolCall(_)) && !is_final(part));
        let is_whole = response.finish_reason.is_whole();
        let content = response.content.into_iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) if call.name == final_tool => {
                Some(ContentPart::text(words_of(call.arguments, is_whole)))
            }
            ContentPart::Text(_) if !has_other_calls => None,
            part => Some(part),
        });
        let ends = response.finish_reason == FinishReason::ToolCalls && !has_other_calls;
        ModelResponse {
            content: content.collect(),
            finish_reason: if ends {
                FinishReason::Stop
            } else {
                response.finish_reason
            },
            ..response
        }
    }
}

/// Returns instructions with one more paragraph at their end.
pub(super) fn with_paragraph(system: &str, paragraph: &str) -> Arc<str> {
    let mut words = system.trim_end().to_owned();
    if !words.is_empty() {
        words.push_str("\n\n");
    }
    words.push_str(paragraph);
    words.into()
}

/// Describes a schema, if there is one, as the continuation of a sentence. Equal schemas give equal
/// bytes.
pub(super) fn schema_words(schema: Option<&Value>) -> String {
    schema.map_or(String::new(), |schema| format!(" It fits this JSON Schema:\n{schema}"))
}

/// Returns the arguments as text. Some models write no arguments at all for an empty object.
fn words_of(arguments: String, is_whole: bool) -> String {
    if is_whole && arguments.trim().is_empty() {
        "{}".to_owned()
    } else {
        arguments
    }
}

/// Finds a name that no tool of the agent has.
fn free_name(name: &str, tools: &[ToolSpec]) -> String {
    let is_taken = |name: &str| tools.iter().any(|tool| tool.name == name);
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = |number: usize| {
        let suffix = format!("_{number}");
        // The name is ASCII, and providers take 64 bytes.
        let retained: String = name.chars().take(64 - suffix.len()).collect();
        retained + &suffix
    };
    // There is one more number than tools, so one of the names is free.
    let free = (2..=tools.len() + 2).map(numbered).find(|name| !is_taken(name));
    free.unwrap_or_else(|| name.to_owned())
}

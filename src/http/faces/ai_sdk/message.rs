//! Messages as a page has them (`UIMessage`).
//!
//! A message of the agent is folded from its chunks, as the page folds them, so that both agree.

use serde::Serialize;

use crate::http::faces::chat::{Chunk, EchoMessage, RunMetadata, SubagentData};
use values::ids::RunId;
use values::json::Value;
use values::message::{ContentPart, MediaSource};
use values::usage::Usage;

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct UiMessage {
    /// Names the message: a run, or what the page calls it.
    id: String,
    /// The speaker: `user` or `assistant`.
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RunMetadata>,
    parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Part {
    StepStart,
    Text {
        text: String,
        state: PartState,
        /// The id of its chunks, which a page does not retain.
        #[serde(skip)]
        id: String,
    },
    Reasoning {
        id: String,
        text: String,
        state: PartState,
    },
    File {
        media_type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        url: String,
    },
    DataSubagent {
        id: String,
        data: SubagentData,
    },
    DataUsage {
        id: RunId,
        data: Usage,
    },
    #[serde(untagged)]
    Tool(ToolPart),
}

/// Whether a text grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PartState {
    Done,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolPart {
    /// `tool-` and the name of the tool.
    #[serde(rename = "type")]
    kind: String,
    tool_call_id: String,
    state: ToolState,
    input: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ToolState {
    InputAvailable,
    ApprovalRequested,
    ApprovalResponded,
    OutputAvailable,
    OutputError,
    OutputDenied,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Approval {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<bool>,
}

impl UiMessage {
    /// Makes a message of the user.
    pub(in crate::http) fn of_user(message: EchoMessage) -> Self {
        Self {
            id: message.id,
            role: "user",
            metadata: None,
            parts: message.content.iter().filter_map(user_part).collect(),
        }
    }

    /// Makes a message of the agent without parts.
    pub(super) fn of_agent(id: String) -> Self {
        Self {
            id,
            role: "assistant",
            metadata: None,
            parts: Vec::new(),
        }
    }

    /// Sets the last run of the turn, if one has ended with it.
    pub(super) fn set_run(&mut self, run: Option<RunMetadata>) {
        self.metadata = run.or(self.metadata);
    }

    /// Returns whether it has no parts.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds what a chunk says. Chunks of the stream itself say nothing of a message.
    pub(super) fn add(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::StartStep => self.parts.push(Part::StepStart),
            Chunk::TextStart { id } => self.parts.push(Part::Text {
                text: String::new(),
                state: PartState::Done,
                id,
            }),
            Chunk::ReasoningStart { id } => self.parts.push(Part::Reasoning {
                id,
                text: String::new(),
                state: PartState::Done,
            }),
            Chunk::TextDelta { id, delta } | Chunk::ReasoningDelta { id, delta } => self.add_words(&id, &delta),
            Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input,
            } => self.parts.push(Part::Tool(ToolPart {
                kind: format!("tool-{tool_name}"),
                tool_call_id,
                state: ToolState::InputAvailable,
                input,
                output: None,
                error_text: None,
                approval: None,
            })),
            Chunk::DataSubagent { id, data } => self.parts.push(Part::DataSubagent { id, data }),
            Chunk::DataUsage { id, data } => self.parts.push(Part::DataUsage { id, data }),
            chunk => self.change_call(chunk),
        }
    }

    fn add_words(&mut self, id: &str, delta: &str) {
        let part = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Text { id: own, text, .. } | Part::Reasoning { id: own, text, .. } if own == id => Some(text),
            _ => None,
        });
        if let Some(text) = part {
            text.push_str(delta);
        }
    }

    fn change_call(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::ToolApprovalRequest {
                approval_id,
                tool_call_id,
            } => self.set_call(&tool_call_id, |call| {
                call.state = ToolState::ApprovalRequested;
                call.approval = Some(Approval {
                    id: approval_id,
                    approved: None,
                });
            }),
            Chunk::ToolApprovalResponse { approval_id, approved } => self.set_call(&approval_id, |call| {
                call.state = ToolState::ApprovalResponded;
                if let Some(approval) = &mut call.approval {
                    approval.approved = Some(approved);
                }
            }),
            Chunk::ToolOutputAvailable {
                tool_call_id, output, ..
            } => self.set_call(&tool_call_id, |call| {
                call.state = ToolState::OutputAvailable;
                call.output = Some(output);
            }),
            Chunk::ToolOutputError {
                tool_call_id,
                error_text,
            } => self.set_call(&tool_call_id, |call| {
                call.state = ToolState::OutputError;
                call.error_text = Some(error_text);
            }),
            Chunk::ToolOutputDenied { tool_call_id, .. } => {
                self.set_call(&tool_call_id, |call| call.state = ToolState::OutputDenied);
            }
            _ => (),
        }
    }

    /// Changes the last call with an id. Some models use an id again in another completion.
    fn set_call(&mut self, call_id: &str, change: impl FnOnce(&mut ToolPart)) {
        let call = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Tool(call) if call.tool_call_id == call_id => Some(call),
            _ => None,
        });
        if let Some(call) = call {
            change(call);
        }
    }
}

/// Returns a part of a message of the user. A page has no form for other parts.
fn user_part(part: &ContentPart) -> Option<Part> {
    let file = |source: &MediaSource, filename: Option<String>, unknown: &str| {
        let (media_type, url) = match source {
            MediaSource::Base64 { media_type, data } => {
                (media_type.clone(), format!("data:{media_type};base64,{data}"))
            }
            MediaSource::Url { url } => (unknown.to_owned(), url.clone()),
            MediaSource::ProviderFile { .. } => return None,
        };
        Some(Part::File {
            media_type,
            filename,
            url,
        })
    };
    match part {
        ContentPart::Text(part) => Some(Part::Text {
            text: part.text.clone(),
            state: PartState::Done,
            id: String::new(),
        }),
        ContentPart::Image(part) => file(&part.source, None, "image/*"),
        ContentPart::Document(part) => file(&part.source, part.name.clone(), "application/pdf"),
        _ => None,
    }
}

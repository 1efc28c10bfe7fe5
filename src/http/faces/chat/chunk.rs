//! The chunks of a stream, as `ai` 7 reads them (`ui-message-stream/ui-message-chunks.ts`). A chunk
//! that is not among them, or lacks a field, ends the stream there.

use std::collections::BTreeMap;

use serde::Serialize;

use agent::state::ExecutionStatus;
use values::ids::{RunId, SessionId};
use values::json::Value;
use values::usage::Usage;

/// A chunk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(in crate::http) enum Chunk {
    /// The message begins.
    Start {
        message_id: RunId,
        message_metadata: RunMetadata,
    },
    StartStep,
    /// The parts of the step are void: it begins again.
    ResetStep,
    FinishStep,
    TextStart {
        id: String,
    },
    TextDelta {
        id: String,
        delta: String,
    },
    TextEnd {
        id: String,
    },
    ReasoningStart {
        id: String,
    },
    ReasoningDelta {
        id: String,
        delta: String,
    },
    ReasoningEnd {
        id: String,
    },
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
    },
    ToolInputDelta {
        tool_call_id: String,
        input_text_delta: String,
    },
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Value,
    },
    /// A call that nobody executes, since something is wrong with it. Unlike other calls, it is
    /// never one for the page to execute.
    ToolInputError {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        error_text: String,
    },
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
    },
    ToolApprovalResponse {
        approval_id: String,
        approved: bool,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: Value,
        /// Whether the call goes on.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        preliminary: bool,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
    },
    ToolOutputDenied {
        tool_call_id: String,
        /// What the model reads. AI SDK UI has no form for it.
        #[serde(skip)]
        words: String,
    },
    /// A subagent; a later chunk with the same id replaces the part.
    DataSubagent {
        id: String,
        data: SubagentData,
    },
    /// The variables that have changed. It makes no part.
    DataState {
        data: BTreeMap<String, Value>,
        transient: bool,
    },
    /// The usage of a run.
    DataUsage {
        id: RunId,
        data: Usage,
    },
    Error {
        error_text: String,
    },
    Abort {
        reason: &'static str,
    },
    Finish {
        finish_reason: &'static str,
        message_metadata: RunMetadata,
    },
}

/// The metadata of a message: the last run of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct RunMetadata {
    /// The run.
    pub(in crate::http::faces) run_id: RunId,
    /// The session that it publishes.
    pub(in crate::http::faces) session_id: SessionId,
}

impl RunMetadata {
    /// Returns the run.
    pub(in crate::http::faces) fn run_id(self) -> RunId {
        self.run_id
    }

    /// Returns the session that it publishes.
    pub(in crate::http::faces) fn session_id(self) -> SessionId {
        self.session_id
    }
}

/// A subagent, as a part shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct SubagentData {
    /// The call on which it works.
    pub(in crate::http::faces) tool_call_id: String,
    /// Its name.
    pub(in crate::http::faces) agent: String,
    /// The session that it publishes with the run.
    pub(in crate::http::faces) session_id: SessionId,
    /// Its status.
    pub(in crate::http::faces) status: ExecutionStatus,
}

//! The events of AG-UI 1.0 (<https://ag-ui.com/spec/1.0/schema.json>). No field is ever null: the
//! schemas forbid it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::message::{Content, Message};
use super::outcome::{EndMetadata, Outcome, TokenUsage};
use crate::http::faces::chat::RunMetadata;
use values::ids::SessionId;
use values::json::Value;

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(in crate::http) enum Event {
    RunStarted {
        thread_id: String,
        /// What the page calls the run.
        run_id: String,
        protocol_version: &'static str,
        /// The run here; absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<RunMetadata>,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: String,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: Content,
        role: &'static str,
    },
    /// The variables.
    StateSnapshot {
        snapshot: BTreeMap<String, Value>,
    },
    MessagesSnapshot {
        messages: Vec<ShownMessage>,
    },
    SubagentStarted {
        subagent_run_id: SessionId,
        name: String,
        parent_tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<SessionId>,
    },
    SubagentFinished {
        subagent_run_id: SessionId,
    },
    SubagentError {
        subagent_run_id: SessionId,
        message: &'static str,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
        /// Why a limit or a rule has ended the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<EndMetadata>,
    },
    RunError {
        message: String,
        code: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
}

/// An event, and the subagent that it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct Tagged {
    /// The event.
    #[serde(flatten)]
    pub(super) event: Event,
    /// The session of the subagent; `None` for the agent of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subagent_run_id: Option<SessionId>,
}

/// A message of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum ShownMessage {
    /// A message that the page has sent, as it is.
    OfPage(Value),
    /// A message of the service.
    Own(Message),
}

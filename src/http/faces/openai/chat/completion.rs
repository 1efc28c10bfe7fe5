//! A whole completion, made from the record and the turn of its run.

use serde::Serialize;

use super::message::ChatMessage;
use crate::http::faces::turn::Turn;
use agent::record::{RunRecord, RunStatus};
use agent::state::FinishReason;
use values::ids::RunId;
use values::usage::Usage;

/// A completion.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ChatCompletion {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: [Choice; 1],
    usage: ChatUsage,
}

#[derive(Debug, Serialize)]
struct Choice {
    index: u32,
    message: ChatMessage,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

/// The usage of a completion.
#[derive(Debug, Serialize)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl ChatCompletion {
    /// Makes the completion of a run that has ended. `is_json` is whether its output is JSON.
    pub(in crate::http) fn new(model: String, run: &RunRecord, turn: &Turn, is_json: bool) -> Self {
        Self {
            id: completion_id(run.summary.run_id),
            object: "chat.completion",
            created: run.summary.created_at.timestamp(),
            model,
            choices: [Choice {
                index: 0,
                message: ChatMessage::new(run, turn, is_json),
                logprobs: None,
                finish_reason: finish_of(run),
            }],
            usage: ChatUsage::from(&run.summary.usage),
        }
    }
}

impl From<&Usage> for ChatUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            prompt_tokens_details: PromptDetails {
                cached_tokens: usage.cache_read_tokens,
            },
            completion_tokens_details: CompletionDetails {
                reasoning_tokens: usage.reasoning_tokens,
            },
        }
    }
}

/// Returns the id of the completion of a run.
pub(super) fn completion_id(run_id: RunId) -> String {
    format!("chatcmpl-{}", run_id.as_uuid().simple())
}

/// Returns why a completion has ended, in the words of the protocol.
pub(super) fn finish_of(run: &RunRecord) -> &'static str {
    match (run.summary.status, &run.finish_reason) {
        (RunStatus::Waiting | RunStatus::Answered, _) => "tool_calls",
        (_, Some(FinishReason::ContentFilter)) => "content_filter",
        (RunStatus::Stopped, _) | (_, Some(FinishReason::Length)) => "length",
        _ => "stop",
    }
}

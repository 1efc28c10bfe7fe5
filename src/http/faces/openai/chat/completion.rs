//! A whole completion, made from the record of its run.

use serde::Serialize;

use agent::record::{RunRecord, RunStatus};
use agent::state::FinishReason;
use values::ids::RunId;
use values::message::{ContentPart, Role};
use values::session::{OpenCall, OpenCallKind};
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

#[derive(Debug, Serialize)]
struct ChatMessage {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall>,
}

/// A call that the caller executes.
#[derive(Debug, Serialize)]
pub(super) struct ChatCall {
    /// The number of the call, in chunks alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatFunction,
}

#[derive(Debug, Serialize)]
struct ChatFunction {
    name: String,
    arguments: String,
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

/// The words of a message, by their kind.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) refusal: String,
    pub(super) reasoning: String,
}

impl ChatCompletion {
    /// Makes the completion of a run that has ended.
    pub(in crate::http) fn of_record(model: String, run: &RunRecord) -> Self {
        let words = Words::of_record(run);
        let filled = |text: String| (!text.is_empty()).then_some(text);
        let tool_calls: Vec<_> = client_calls(run).map(|call| ChatCall::new(None, call)).collect();
        let refusal = filled(words.refusal);
        // Clients expect a text where nothing else stands.
        let content = filled(words.text).or_else(|| (tool_calls.is_empty() && refusal.is_none()).then(String::new));
        Self {
            id: completion_id(run.summary.run_id),
            object: "chat.completion",
            created: run.summary.created_at.timestamp(),
            model,
            choices: [Choice {
                index: 0,
                message: ChatMessage {
                    role: "assistant",
                    content,
                    refusal,
                    reasoning_content: filled(words.reasoning),
                    tool_calls,
                },
                logprobs: None,
                finish_reason: finish_of(run),
            }],
            usage: ChatUsage::from(&run.summary.usage),
        }
    }
}

impl Words {
    /// Returns the words of the final step of a run.
    pub(super) fn of_record(run: &RunRecord) -> Self {
        let mut words = Self::default();
        let messages = run.output.iter().filter(|message| message.role == Role::Assistant);
        for part in messages.flat_map(|message| &message.content) {
            match part {
                ContentPart::Text(part) => words.text.push_str(&part.text),
                ContentPart::Refusal { text } => words.refusal.push_str(text),
                ContentPart::Reasoning(part) => words.reasoning.push_str(&part.text),
                _ => (),
            }
        }
        words
    }
}

impl ChatCall {
    pub(super) fn new(index: Option<usize>, call: &OpenCall) -> Self {
        Self {
            index,
            id: call.call_id.clone(),
            kind: "function",
            function: ChatFunction {
                name: call.tool.clone(),
                arguments: call.arguments.to_string(),
            },
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

/// Returns the calls that the caller executes.
pub(super) fn client_calls(run: &RunRecord) -> impl Iterator<Item = &OpenCall> {
    run.open_calls.iter().filter(|call| call.kind == OpenCallKind::Client)
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

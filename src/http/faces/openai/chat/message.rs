//! The message of a completion: the words of all steps, with a blank line between two steps, and
//! the calls that the caller executes.
//!
//! Clients parse JSON, so then the text is that of the final response alone.

use serde::Serialize;

use crate::http::faces::turn::{BlockKind, Turn, arguments_text};
use agent::record::RunRecord;
use values::ids::StepId;
use values::session::{OpenCall, OpenCallKind};

/// A message of the assistant.
#[derive(Debug, Serialize)]
pub(super) struct ChatMessage {
    role: &'static str,
    pub(super) content: Option<String>,
    pub(super) refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ChatCall>,
}

/// A call that the caller executes.
#[derive(Debug, Serialize)]
pub(super) struct ChatCall {
    /// The number of the call, in chunks alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
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

/// Separates the words of two steps by a blank line. Each kind of words is a text of its own.
#[derive(Debug, Default)]
pub(super) struct Paragraphs {
    text: Option<StepId>,
    refusal: Option<StepId>,
    reasoning: Option<StepId>,
}

impl ChatMessage {
    /// Makes the message of a run that has ended.
    pub(super) fn new(run: &RunRecord, turn: &Turn, is_json: bool) -> Self {
        let calls = run.open_calls.iter().filter(|call| call.kind == OpenCallKind::Client);
        let mut message = Self {
            role: "assistant",
            content: None,
            refusal: None,
            reasoning_content: None,
            tool_calls: calls.map(|call| ChatCall::new(run, call)).collect(),
        };
        let mut paragraphs = Paragraphs::default();
        for (step, after) in turn.steps.iter().zip((0..turn.steps.len()).rev()) {
            let is_response = after == 0 && step.calls.is_empty();
            for block in &step.blocks {
                if !is_json || is_response || block.kind == BlockKind::Reasoning {
                    let words = paragraphs.next(block.kind, step.id, &block.text);
                    let text = message.words_mut(block.kind).get_or_insert_default();
                    text.push_str(&words);
                }
            }
        }
        // Clients expect a text where nothing else stands.
        if message.refusal.is_none() && message.tool_calls.is_empty() {
            message.content.get_or_insert_default();
        }
        message
    }

    fn words_mut(&mut self, kind: BlockKind) -> &mut Option<String> {
        match kind {
            BlockKind::Text => &mut self.content,
            BlockKind::Refusal => &mut self.refusal,
            BlockKind::Reasoning => &mut self.reasoning_content,
        }
    }
}

impl ChatCall {
    fn new(run: &RunRecord, call: &OpenCall) -> Self {
        Self {
            index: None,
            id: call.call_id.clone(),
            kind: "function",
            function: ChatFunction {
                name: call.tool.clone(),
                arguments: arguments_text(run, call),
            },
        }
    }

    /// Returns the call as that of a chunk.
    pub(super) fn numbered(self, index: usize) -> Self {
        let index = Some(index);
        Self { index, ..self }
    }
}

impl Paragraphs {
    /// Returns the next words of a step, after a blank line if they are the first of another step.
    pub(super) fn next(&mut self, kind: BlockKind, step: StepId, words: &str) -> String {
        let last = match kind {
            BlockKind::Text => &mut self.text,
            BlockKind::Refusal => &mut self.refusal,
            BlockKind::Reasoning => &mut self.reasoning,
        };
        if last.replace(step).is_some_and(|last| last != step) {
            format!("\n\n{words}")
        } else {
            words.to_owned()
        }
    }

    /// Returns whether there were words of a kind.
    pub(super) fn has(&self, kind: BlockKind) -> bool {
        let last = match kind {
            BlockKind::Text => self.text,
            BlockKind::Refusal => self.refusal,
            BlockKind::Reasoning => self.reasoning,
        };
        last.is_some()
    }
}

//! A completion in chunks, made from the events of its run.

use serde::Serialize;

use super::completion::{ChatUsage, completion_id, finish_of};
use super::message::{ChatCall, ChatMessage, Paragraphs};
use crate::http::faces::turn::{BlockKind, Turn, TurnChange, TurnReader};
use crate::run::read::RunMessages;
use agent::record::{RunEvent, RunRecord, RunSummary};
use values::ids::RunId;

/// A chunk of a completion.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ChatChunk {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
}

#[derive(Debug, Serialize)]
struct Choice {
    index: u32,
    delta: Delta,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Debug, Default, Serialize)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall>,
}

/// Turns the events of a run into chunks.
#[derive(Debug)]
pub(in crate::http) struct ChatReader {
    model: String,
    includes_usage: bool,
    is_json: bool,
    /// The time of the first chunk, which all of them have; `None` before it.
    created: Option<i64>,
    reader: TurnReader,
    /// The words that were sent.
    sent: Paragraphs,
}

impl ChatReader {
    /// Makes the reader of a run. `is_json` is whether its output is JSON.
    pub(in crate::http) fn new(model: String, includes_usage: bool, is_json: bool) -> Self {
        Self {
            model,
            includes_usage,
            is_json,
            created: None,
            reader: TurnReader::default(),
            sent: Paragraphs::default(),
        }
    }

    /// Reads the next event. Returns its chunks, of which there may be none.
    pub(in crate::http) fn read(&mut self, event: &RunEvent) -> Vec<ChatChunk> {
        match self.reader.read(event) {
            Some(TurnChange::Started(run)) => self.begin(run).into_iter().collect(),
            Some(TurnChange::Words { block, text }) => self.add_words(event.run_id, block, text).into_iter().collect(),
            Some(TurnChange::Ended(run)) => {
                let message = ChatMessage::new(run, self.reader.turn(), self.is_json);
                self.end(run, message)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the chunks of a run that has ended, made from what is stored of it.
    pub(in crate::http) fn read_stored(mut self, messages: &RunMessages) -> Vec<ChatChunk> {
        let message = ChatMessage::new(&messages.record, &Turn::of_stored(messages), self.is_json);
        self.end(&messages.record, message)
    }

    /// Returns the first chunk, unless there was one.
    fn begin(&mut self, run: &RunSummary) -> Option<ChatChunk> {
        if self.created.is_some() {
            return None;
        }
        self.created = Some(run.created_at.timestamp());
        let delta = Delta {
            role: Some("assistant"),
            ..Delta::default()
        };
        Some(self.chunk(run.run_id, delta))
    }

    fn add_words(&mut self, run_id: RunId, block: usize, words: &str) -> Option<ChatChunk> {
        let step = self.reader.turn().steps.last()?;
        let kind = step.blocks.get(block)?.kind;
        if self.is_json && kind != BlockKind::Reasoning {
            return None;
        }
        let words = Some(self.sent.next(kind, step.id, words));
        let mut delta = Delta::default();
        match kind {
            BlockKind::Text => delta.content = words,
            BlockKind::Refusal => delta.refusal = words,
            BlockKind::Reasoning => delta.reasoning_content = words,
        }
        Some(self.chunk(run_id, delta))
    }

    /// Returns the last chunks: the words that were not sent, the calls, the reason of the end, and
    /// the usage.
    fn end(&mut self, run: &RunRecord, message: ChatMessage) -> Vec<ChatChunk> {
        let run_id = run.summary.run_id;
        let mut chunks: Vec<_> = self.begin(&run.summary).into_iter().collect();
        let unsent = |kind, words: Option<String>| words.filter(|_| !self.sent.has(kind));
        let rest = Delta {
            content: unsent(BlockKind::Text, message.content),
            refusal: unsent(BlockKind::Refusal, message.refusal),
            reasoning_content: unsent(BlockKind::Reasoning, message.reasoning_content),
            ..Delta::default()
        };
        if rest.content.is_some() || rest.refusal.is_some() || rest.reasoning_content.is_some() {
            chunks.push(self.chunk(run_id, rest));
        }
        for (index, call) in message.tool_calls.into_iter().enumerate() {
            let delta = Delta {
                tool_calls: vec![call.numbered(index)],
                ..Delta::default()
            };
            chunks.push(self.chunk(run_id, delta));
        }
        let mut last = self.chunk(run_id, Delta::default());
        for choice in &mut last.choices {
            choice.finish_reason = Some(finish_of(run));
        }
        chunks.push(last);
        if self.includes_usage {
            chunks.push(ChatChunk {
                choices: Vec::new(),
                usage: Some(ChatUsage::from(&run.summary.usage)),
                ..self.chunk(run_id, Delta::default())
            });
        }
        chunks
    }

    fn chunk(&self, run_id: RunId, delta: Delta) -> ChatChunk {
        ChatChunk {
            id: completion_id(run_id),
            object: "chat.completion.chunk",
            created: self.created.unwrap_or_default(),
            model: self.model.clone(),
            choices: vec![Choice {
                index: 0,
                delta,
                logprobs: None,
                finish_reason: None,
            }],
            usage: None,
        }
    }
}

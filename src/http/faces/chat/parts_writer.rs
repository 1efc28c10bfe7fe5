//! Writes the parts of a message, step by step, in an order that a page accepts: each part begins
//! before it grows, and a call is named before it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::chunk::{Chunk, SubagentData};
use crate::http::faces::turn::{BlockKind, CallName, CallResult, TurnCall, TurnStep};
use agent::state::ToolVerdict;
use values::ids::StepId;
use values::json::Value;
use values::message::joined_text;
use values::session::{OpenCall, OpenCallKind};

/// The most bytes of the output of a call at work that a page gets, of its end. The result has all
/// of it.
const MAX_PROGRESS: usize = 4 << 10;
/// The error of a call whose completion was cut before its arguments were whole.
pub(in crate::http::faces) const CUT: &str = "the call was cut before it was whole";

/// Writes parts as chunks.
#[derive(Debug, Default)]
pub(super) struct PartsWriter {
    chunks: Vec<Chunk>,
    /// The step, whose calls have its id in theirs: some models number the calls of each completion
    /// from the start.
    step: Option<StepId>,
    /// Whether a step is open.
    has_step: bool,
    /// The open block.
    block: Option<(String, BlockKind)>,
    /// The calls of the step that have begun and whose arguments are not whole.
    begun: BTreeSet<String>,
    /// The calls of the step whose arguments are whole.
    requested: BTreeSet<String>,
    /// The calls of the message that wait for an approval.
    asked: BTreeSet<String>,
    /// The end of the output of each call at work.
    progress: BTreeMap<String, String>,
}

impl PartsWriter {
    /// Returns the chunks since the last call.
    pub(super) fn take(&mut self) -> Vec<Chunk> {
        mem::take(&mut self.chunks)
    }

    /// Writes a chunk that is no part of a step.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.chunks.push(chunk);
    }

    /// Begins a step, after the end of the one before.
    pub(super) fn begin_step(&mut self, id: StepId) {
        self.end_step();
        self.step = Some(id);
        self.has_step = true;
        self.chunks.push(Chunk::StartStep);
    }

    /// Goes on with the calls of a step that an earlier run has left open.
    pub(super) fn enter_step(&mut self, id: StepId) {
        self.end_step();
        self.step = Some(id);
    }

    /// Begins the open step again. Its parts are void.
    pub(super) fn begin_step_again(&mut self, id: StepId) {
        if !self.has_step {
            return self.begin_step(id);
        }
        self.step = Some(id);
        // The page forgets open blocks and calls itself.
        self.block = None;
        self.forget_calls();
        self.chunks.push(Chunk::ResetStep);
    }

    /// Ends the open step, if there is one.
    pub(super) fn end_step(&mut self) {
        self.end_block();
        for call_id in mem::take(&mut self.begun) {
            let tool_call_id = self.part_id(&call_id);
            let error_text = CUT.to_owned();
            self.chunks.push(Chunk::ToolOutputError {
                tool_call_id,
                error_text,
            });
        }
        self.forget_calls();
        if mem::take(&mut self.has_step) {
            self.chunks.push(Chunk::FinishStep);
        }
    }

    fn forget_calls(&mut self) {
        self.begun.clear();
        self.requested.clear();
        self.progress.clear();
    }

    /// Adds words to a block of a step, which begins if it is another one than before.
    pub(super) fn add_words(&mut self, step: Option<&TurnStep>, index: usize, text: &str) {
        let Some((step, block)) = step.and_then(|step| Some((step, step.blocks.get(index)?))) else {
            return;
        };
        let id = format!("{}:{index}", step.id);
        let is_reasoning = block.kind == BlockKind::Reasoning;
        if self.block.as_ref().is_none_or(|(open, _)| *open != id) {
            self.end_block();
            self.block = Some((id.clone(), block.kind));
            let id = id.clone();
            self.chunks.push(if is_reasoning {
                Chunk::ReasoningStart { id }
            } else {
                Chunk::TextStart { id }
            });
        }
        let delta = text.to_owned();
        self.chunks.push(if is_reasoning {
            Chunk::ReasoningDelta { id, delta }
        } else {
            Chunk::TextDelta { id, delta }
        });
    }

    fn end_block(&mut self) {
        match self.block.take() {
            Some((id, BlockKind::Reasoning)) => self.chunks.push(Chunk::ReasoningEnd { id }),
            Some((id, _)) => self.chunks.push(Chunk::TextEnd { id }),
            None => (),
        }
    }

    /// Begins a call, whose arguments follow.
    pub(super) fn begin_call(&mut self, call: CallName<'_>) {
        if self.begun.insert(call.call_id.to_owned()) {
            self.chunks.push(Chunk::ToolInputStart {
                tool_call_id: self.part_id(call.call_id),
                tool_name: call.tool.to_owned(),
            });
        }
    }

    /// Adds a piece of the arguments of a call.
    pub(super) fn add_arguments(&mut self, call_id: &str, text: &str) {
        if self.begun.contains(call_id) && !text.is_empty() {
            self.chunks.push(Chunk::ToolInputDelta {
                tool_call_id: self.part_id(call_id),
                input_text_delta: text.to_owned(),
            });
        }
    }

    /// Returns whether the arguments of a call are written.
    pub(super) fn has_requested(&self, call_id: &str) -> bool {
        self.requested.contains(call_id)
    }

    /// Writes the arguments of a call that is executed or left open next. The page executes it if
    /// the tool is its own.
    pub(super) fn request(&mut self, call: CallName<'_>, input: Value) {
        self.end_block();
        self.begun.remove(call.call_id);
        self.requested.insert(call.call_id.to_owned());
        let tool_call_id = self.part_id(call.call_id);
        self.chunks.push(Chunk::ToolInputAvailable {
            tool_call_id,
            tool_name: call.tool.to_owned(),
            input,
        });
    }

    /// Writes the arguments of a call that nobody executes any more.
    pub(super) fn show(&mut self, call: CallName<'_>, input: &Value) {
        if !self.begun.remove(call.call_id) {
            self.begin_call(call);
            self.add_arguments(call.call_id, &input.to_string());
            self.begun.remove(call.call_id);
        }
        self.requested.insert(call.call_id.to_owned());
    }

    /// Goes on with an open call that was approved.
    pub(super) fn go_on(&mut self, call_id: &str) {
        self.requested.insert(call_id.to_owned());
        self.respond(call_id, true);
    }

    /// Adds output of a call at work.
    pub(super) fn add_output(&mut self, call_id: &str, text: &str) {
        if !self.has_requested(call_id) {
            return;
        }
        let output = self.progress.entry(call_id.to_owned()).or_default();
        output.push_str(text);
        let excess = output.ceil_char_boundary(output.len().saturating_sub(MAX_PROGRESS));
        output.drain(..excess);
        let output = Value::from(output.as_str());
        self.chunks.push(Chunk::ToolOutputAvailable {
            tool_call_id: self.part_id(call_id),
            output,
            preliminary: true,
        });
    }

    /// Writes the agent that works on a call, if there is one.
    pub(super) fn show_subagent(&mut self, call: &TurnCall) {
        let Some(subagent) = &call.subagent else { return };
        let id = self.part_id(&call.call_id);
        self.chunks.push(Chunk::DataSubagent {
            id: id.clone(),
            data: SubagentData {
                tool_call_id: id,
                agent: subagent.agent.clone(),
                session_id: subagent.session_id,
                status: subagent.status,
            },
        });
    }

    /// Writes a call that ends although nobody has executed it.
    pub(super) fn refuse(&mut self, call: CallName<'_>, input: Value, result: &CallResult) {
        self.end_block();
        if !result.is_error {
            self.show(call, &input);
            return self.end_call(call.call_id, result);
        }
        self.begun.remove(call.call_id);
        self.chunks.push(Chunk::ToolInputError {
            tool_call_id: self.part_id(call.call_id),
            tool_name: call.tool.to_owned(),
            input,
            error_text: joined_text(&result.content),
        });
    }

    /// Writes the result of a call.
    pub(super) fn end_call(&mut self, call_id: &str, result: &CallResult) {
        self.progress.remove(call_id);
        let tool_call_id = self.part_id(call_id);
        self.chunks.push(if result.verdict == ToolVerdict::Denied {
            Chunk::ToolOutputDenied {
                tool_call_id,
                words: joined_text(&result.content),
            }
        } else if result.is_error {
            Chunk::ToolOutputError {
                tool_call_id,
                error_text: joined_text(&result.content),
            }
        } else {
            Chunk::ToolOutputAvailable {
                tool_call_id,
                output: output_of(result),
                preliminary: false,
            }
        });
    }

    /// Writes the calls that wait for answers of the page, with the arguments that hooks may have
    /// changed. A page has no form for the input that a tool asks for.
    pub(super) fn ask(&mut self, open_calls: &[OpenCall]) {
        for open in open_calls {
            if !self.has_requested(&open.call_id) {
                let (call_id, tool) = (open.call_id.as_str(), open.tool.as_str());
                self.request(CallName { call_id, tool }, open.arguments.clone());
            }
            if open.kind == OpenCallKind::Approval {
                let id = self.part_id(&open.call_id);
                self.asked.insert(id.clone());
                self.chunks.push(Chunk::ToolApprovalRequest {
                    approval_id: id.clone(),
                    tool_call_id: id,
                });
            }
        }
    }

    /// Writes the result of a call that an earlier run has left open.
    pub(super) fn answer(&mut self, call_id: &str, result: &CallResult) {
        let is_refused = matches!(result.verdict, ToolVerdict::Denied | ToolVerdict::Expired);
        self.respond(call_id, !is_refused);
        self.end_call(call_id, result);
    }

    /// Writes the decision about a call, if these chunks have asked for one.
    fn respond(&mut self, call_id: &str, approved: bool) {
        let approval_id = self.part_id(call_id);
        if self.asked.remove(&approval_id) {
            self.chunks.push(Chunk::ToolApprovalResponse { approval_id, approved });
        }
    }

    fn part_id(&self, call_id: &str) -> String {
        self.step
            .map_or_else(|| call_id.to_owned(), |step| tool_call_id(step, call_id))
    }
}

/// Returns what a page calls a call, also as the id of its approval.
pub(in crate::http) fn tool_call_id(step: StepId, call_id: &str) -> String {
    format!("{step}:{call_id}")
}

/// Returns the output of a tool: its text, or its parts if it has others. A result of the page is
/// the value that the page has given, whose JSON the model reads.
fn output_of(result: &CallResult) -> Value {
    let content = &result.content;
    if !content.iter().all(|part| part.as_text().is_some()) {
        return serde_json::to_value(content).unwrap_or_default();
    }
    let text = joined_text(content);
    let is_value = result.verdict == ToolVerdict::Supplied && text.starts_with(['{', '[']);
    let value = is_value.then(|| serde_json::from_str(&text).ok()).flatten();
    value.unwrap_or_else(|| Value::from(text))
}

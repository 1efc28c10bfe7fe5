//! The parts of a turn.

use agent::state::{ExecutionStatus, ToolVerdict};
use values::ids::{RunId, SessionId, StepId};
use values::message::ContentPart;

/// What an agent has said and done in a run.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Turn {
    /// The steps, oldest first.
    pub(in crate::http) steps: Vec<TurnStep>,
}

/// A completion of the model, with the calls that it asked for.
#[derive(Debug, Clone)]
pub(in crate::http) struct TurnStep {
    /// Names the step.
    pub(in crate::http) id: StepId,
    /// The words of the completion, in their order.
    pub(in crate::http) blocks: Vec<Block>,
    /// The calls, in the order of the model.
    pub(in crate::http) calls: Vec<TurnCall>,
    /// Whether the words are the final response: no call and no other step follows.
    pub(in crate::http) is_final: bool,
    /// Whether an earlier run has left the step open. Then it has no words, and only the calls that
    /// this run has executed, in the order of their ids.
    pub(in crate::http) is_answered: bool,
    /// The run that has left the step open, if it is known.
    pub(in crate::http) left_open_by: Option<RunId>,
    /// The number of the step in its run; 0 in a stored turn.
    pub(super) number: usize,
    /// Whether the step has ended.
    pub(super) is_complete: bool,
}

/// Words of one kind. Adjacent words of a kind are one block, also with a call in between: calls
/// that are cut leave nothing.
#[derive(Debug, Clone)]
pub(in crate::http) struct Block {
    /// The kind.
    pub(in crate::http) kind: BlockKind,
    /// The words, never empty.
    pub(in crate::http) text: String,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum BlockKind {
    /// Reasoning that people can read.
    Reasoning,
    /// A response, or words beside calls.
    Text,
    /// The model declines.
    Refusal,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(in crate::http) struct TurnCall {
    /// The id of the call within its step.
    pub(in crate::http) call_id: String,
    /// The name of the tool.
    pub(in crate::http) name: String,
    /// The arguments, as the model wrote them. Events have them once the call has ended.
    pub(in crate::http) arguments: String,
    /// Whether the agent has no such tool: the caller executes it, or no tool has the name. Known
    /// once the call has ended.
    pub(in crate::http) is_foreign: bool,
    /// The result; `None` before the call has ended. The record of a run lists its open calls.
    pub(in crate::http) result: Option<CallResult>,
    /// The agent that works on the call.
    pub(in crate::http) subagent: Option<CallSubagent>,
}

/// An agent that works on a call of another one.
#[derive(Debug, Clone)]
pub(in crate::http) struct CallSubagent {
    /// The name of the agent.
    pub(in crate::http) agent: String,
    /// The session that it publishes with the run.
    pub(in crate::http) session_id: SessionId,
    /// The status.
    pub(in crate::http) status: ExecutionStatus,
}

/// Names a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct CallName<'a> {
    /// The id of the call.
    pub(in crate::http) call_id: &'a str,
    /// The name of the tool.
    pub(in crate::http) tool: &'a str,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(in crate::http) struct CallResult {
    /// What the model reads.
    pub(in crate::http) content: Vec<ContentPart>,
    /// Whether it is an error.
    pub(in crate::http) is_error: bool,
    /// The maker of the result.
    pub(in crate::http) verdict: ToolVerdict,
}

impl TurnCall {
    /// Makes a call that has not ended.
    pub(super) fn new(call_id: &str, name: &str, arguments: &str) -> Self {
        Self {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            is_foreign: false,
            result: None,
            subagent: None,
        }
    }

    /// Returns the name of the call.
    pub(in crate::http) fn name(&self) -> CallName<'_> {
        CallName {
            call_id: &self.call_id,
            tool: &self.name,
        }
    }
}

impl TurnStep {
    /// Makes an empty step.
    pub(super) fn new(id: StepId, number: usize) -> Self {
        Self {
            id,
            blocks: Vec::new(),
            calls: Vec::new(),
            is_final: false,
            is_answered: false,
            left_open_by: None,
            number,
            is_complete: false,
        }
    }

    /// Adds words. Returns the index of their block; `None` if there are no words.
    pub(super) fn add_words(&mut self, kind: BlockKind, text: &str) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        match self.blocks.last_mut().filter(|last| last.kind == kind) {
            Some(block) => block.text.push_str(text),
            None => self.blocks.push(Block {
                kind,
                text: text.to_owned(),
            }),
        }
        Some(self.blocks.len() - 1)
    }

    /// Returns the number of a block among those of its sort: reasoning, or words of messages. An
    /// index after the last block is that of reasoning without words.
    pub(in crate::http) fn rank(&self, index: usize) -> usize {
        let is_reasoning = |block: &Block| block.kind == BlockKind::Reasoning;
        let sort = self.blocks.get(index).is_none_or(is_reasoning);
        let before = self.blocks.iter().take(index);
        let alike = before.filter(|block| is_reasoning(block) == sort).count();
        alike + index.saturating_sub(self.blocks.len())
    }

    /// Adds a call, unless it is known.
    pub(super) fn add_call(&mut self, call_id: &str, name: &str, arguments: &str) {
        if self.call_mut(call_id).is_none() {
            self.calls.push(TurnCall::new(call_id, name, arguments));
        }
    }

    /// Adds a call that an earlier run has left open.
    pub(super) fn add_answered(&mut self, call: TurnCall) {
        self.is_answered = true;
        self.calls.push(call);
        self.calls.sort_by(|one, other| one.call_id.cmp(&other.call_id));
    }

    /// Finds a call.
    pub(super) fn call_mut(&mut self, call_id: &str) -> Option<&mut TurnCall> {
        self.calls.iter_mut().find(|call| call.call_id == call_id)
    }
}

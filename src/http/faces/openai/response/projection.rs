//! Makes the items of an output from a turn.

use std::sync::Arc;

use super::items::{ApprovalItem, FunctionCallItem, MessageItem, OutputItem, Phase, ReasoningItem};
use super::status::{ResponseStatus, status_of};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::executed_calls::McpCallItem;
use crate::http::faces::openai::ids::{ItemId, ItemKind};
use crate::http::faces::openai::parts::{ItemStatus, StoredPart};
use crate::http::faces::openai::reasoning::Marks;
use crate::http::faces::turn::{Block, BlockKind, CallResult, Turn, TurnCall, TurnStep, arguments_text};
use crate::http::openai_settings::{OpenAiSettings, OwnTools};
use agent::record::{RunRecord, RunStatus};
use values::ids::RunId;
use values::message::{Role, joined_text};
use values::session::{OpenCall, OpenCallKind};
use values::tenant::TenantId;

/// The settings of responses for a caller.
#[derive(Debug)]
pub(in crate::http) struct ResponseSettings {
    /// The settings of the routes.
    pub(in crate::http) openai: Arc<OpenAiSettings>,
    /// The tenant, for whom reasoning is sealed.
    pub(in crate::http) tenant: TenantId,
}

/// Makes the items of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projection<'a> {
    pub(super) run_id: RunId,
    pub(super) echo: &'a Arc<Echo>,
    pub(super) settings: &'a ResponseSettings,
}

impl Projection<'_> {
    /// Makes all items. A cancelled run has none, and one that has not ended has those of the steps
    /// that have ended.
    pub(super) fn output(&self, turn: &Turn, record: &RunRecord) -> Vec<OutputItem> {
        let status = record.summary.status;
        if status == RunStatus::Cancelled {
            return Vec::new();
        }
        let mut output = Vec::new();
        for (step, after) in turn.steps.iter().zip((0..turn.steps.len()).rev()) {
            let is_last = after == 0 && status.is_terminal();
            output.extend(self.words(step, is_last.then_some(record)));
            output.extend(step.calls.iter().filter_map(|call| self.ended_call(step, call)));
        }
        let open = turn.steps.last().into_iter().flat_map(|step| {
            let calls = record.open_calls.iter();
            calls.filter_map(|call| self.open_call(step, record, call))
        });
        output.extend(open);
        output
    }

    /// Returns whether marks may be sealed at the end of the run.
    pub(super) fn seals(&self) -> bool {
        self.echo.encrypts_reasoning() && self.settings.openai.seal.is_some()
    }

    /// Returns the id of the item of a block; `None` if the item is written only as a whole. So are
    /// those after reasoning that may get marks.
    pub(super) fn block_id(&self, step: &TurnStep, index: usize) -> Option<ItemId> {
        let block = step.blocks.get(index)?;
        let follows_marks = self.seals() && begins_with_reasoning(step) && index > 0;
        let (kind, is_held) = match block.kind {
            BlockKind::Reasoning => (ItemKind::Reasoning, follows_marks),
            BlockKind::Text | BlockKind::Refusal => (ItemKind::Message, follows_marks || self.echo.is_json()),
        };
        (!is_held).then(|| ItemId::of_block(kind, self.run_id, step.id, step.rank(index)))
    }

    /// Makes the item of a block whose words are still to come.
    pub(super) fn begun_block(&self, step: &TurnStep, index: usize) -> Option<OutputItem> {
        let kind = step.blocks.get(index)?.kind;
        if kind == BlockKind::Reasoning {
            return Some(self.reasoning(step, index, Some(""), None));
        }
        let text = String::new();
        Some(self.message(step, index, Block { kind, text }, (ItemStatus::InProgress, None)))
    }

    /// Makes the items of the blocks before one, which do not change after it has begun.
    pub(super) fn words_before(&self, step: &TurnStep, index: usize) -> Vec<OutputItem> {
        let state = (ItemStatus::Completed, Some(Phase::Commentary));
        let before = 0..index.min(step.blocks.len());
        before.filter_map(|index| self.block(step, index, state)).collect()
    }

    /// Makes the items of the words of a step. `end` is the record of the run if it has ended with
    /// this step.
    ///
    /// Clients parse JSON, so it is one message, and none if it was corrected or cut. Words beside
    /// calls are none then, since some clients parse each message. A failed run has no final
    /// response. The first item has the marks if the step begins with reasoning, and otherwise one
    /// more item of reasoning after the words, which a stream does not hold back then.
    pub(super) fn words(&self, step: &TurnStep, end: Option<&RunRecord>) -> Vec<OutputItem> {
        let end_of_response = end.filter(|record| step.is_final && status_of(record) != ResponseStatus::Failed);
        let is_whole = end_of_response.is_some_and(|record| status_of(record) == ResponseStatus::Completed);
        let state = match end_of_response {
            Some(_) if is_whole => (ItemStatus::Completed, Some(Phase::FinalAnswer)),
            Some(_) => (ItemStatus::Incomplete, Some(Phase::FinalAnswer)),
            None => (ItemStatus::Completed, Some(Phase::Commentary)),
        };
        let last = step.blocks.len().saturating_sub(1);
        let mut items = self.words_before(step, last);
        items.extend(self.block(step, last, state));
        if self.echo.is_json() && is_whole {
            let kinds = [BlockKind::Text, BlockKind::Refusal].into_iter();
            let joined = kinds.filter_map(|kind| joined_block(step, kind));
            items.extend(joined.map(|(index, block)| self.message(step, index, block, state)));
        }
        if let Some(sealed) = end.and_then(|record| self.sealed(step, record)) {
            match items.first_mut() {
                Some(OutputItem::Reasoning(first)) if begins_with_reasoning(step) => {
                    first.encrypted_content = Some(sealed);
                }
                _ => items.push(self.reasoning(step, step.blocks.len(), None, Some(sealed))),
            }
        }
        items
    }

    /// Makes the item of a call that has ended; `None` if it is hidden, or has not ended. A call of
    /// another tool than the agent's is hidden: the service has refused it, or its caller has it.
    pub(super) fn ended_call(&self, step: &TurnStep, call: &TurnCall) -> Option<OutputItem> {
        let CallResult { content, is_error, .. } = call.result.as_ref()?;
        if call.is_foreign || self.settings.openai.access.own_tools == OwnTools::Hide {
            return None;
        }
        let id = |kind, run_id| ItemId::of_call(kind, run_id, step.id, &call.call_id);
        Some(OutputItem::McpCall(McpCallItem {
            approval_request_id: step.left_open_by.map(|run_id| id(ItemKind::ApprovalRequest, run_id)),
            ..McpCallItem::ended(
                id(ItemKind::McpCall, self.run_id),
                call.name.clone(),
                call.arguments.clone(),
                joined_text(content),
                *is_error,
            )
        }))
    }

    /// Makes the item of an open call; `None` if these clients can't answer it.
    fn open_call(&self, step: &TurnStep, record: &RunRecord, call: &OpenCall) -> Option<OutputItem> {
        let id = |kind| ItemId::of_call(kind, self.run_id, step.id, &call.call_id);
        let (name, arguments) = (call.tool.clone(), arguments_text(record, call));
        match call.kind {
            OpenCallKind::Client => Some(OutputItem::FunctionCall(FunctionCallItem {
                id: id(ItemKind::FunctionCall),
                call_id: call.call_id.clone(),
                name,
                arguments,
                status: ItemStatus::Completed,
            })),
            OpenCallKind::Approval => {
                let item = ApprovalItem::new(id(ItemKind::ApprovalRequest), name, arguments);
                Some(OutputItem::McpApprovalRequest(item))
            }
            OpenCallKind::Input | OpenCallKind::Unknown => None,
        }
    }

    /// Seals the marks of the last completion, if the client asks for them: those of the final
    /// response, or of the step whose calls it answers.
    fn sealed(&self, step: &TurnStep, record: &RunRecord) -> Option<String> {
        let is_open = !record.open_calls.is_empty() && !step.is_answered;
        let seals = self.seals() && (step.is_final || is_open);
        let seal = self.settings.openai.seal.as_ref().filter(|_| seals)?;
        let mut messages = record.output.iter();
        let message = messages.rfind(|message| message.role == Role::Assistant)?;
        Marks::of(message)?.seal(seal, &self.settings.tenant)
    }

    /// Makes the item of a block; `None` if it is written only as a whole.
    fn block(&self, step: &TurnStep, index: usize, state: (ItemStatus, Option<Phase>)) -> Option<OutputItem> {
        let block = step.blocks.get(index)?;
        match block.kind {
            BlockKind::Reasoning => Some(self.reasoning(step, index, Some(&block.text), None)),
            _ if self.echo.is_json() => None,
            _ => Some(self.message(step, index, block.clone(), state)),
        }
    }

    fn reasoning(&self, step: &TurnStep, index: usize, text: Option<&str>, sealed: Option<String>) -> OutputItem {
        let summary = text.map(|text| StoredPart::SummaryText { text: text.to_owned() });
        OutputItem::Reasoning(ReasoningItem {
            id: ItemId::of_block(ItemKind::Reasoning, self.run_id, step.id, step.rank(index)),
            summary: summary.into_iter().collect(),
            encrypted_content: sealed,
        })
    }

    fn message(
        &self,
        step: &TurnStep,
        index: usize,
        block: Block,
        (status, phase): (ItemStatus, Option<Phase>),
    ) -> OutputItem {
        let part = match block.kind {
            BlockKind::Refusal => StoredPart::Refusal { refusal: block.text },
            BlockKind::Text | BlockKind::Reasoning => StoredPart::OutputText {
                text: block.text,
                annotations: [],
                logprobs: [],
            },
        };
        OutputItem::Message(MessageItem {
            id: ItemId::of_block(ItemKind::Message, self.run_id, step.id, step.rank(index)),
            status,
            role: "assistant",
            content: vec![part],
            phase,
        })
    }
}

/// Returns whether the words of a step begin with reasoning. It is told from the blocks, not from
/// the items: text that will be JSON is none while it is streamed.
fn begins_with_reasoning(step: &TurnStep) -> bool {
    step.blocks
        .first()
        .is_some_and(|block| block.kind == BlockKind::Reasoning)
}

/// Returns all words of a kind as one block, with the index of the first.
fn joined_block(step: &TurnStep, kind: BlockKind) -> Option<(usize, Block)> {
    let index = step.blocks.iter().position(|block| block.kind == kind)?;
    let blocks = step.blocks.iter().filter(|block| block.kind == kind);
    let text = blocks.map(|block| block.text.as_str()).collect();
    Some((index, Block { kind, text }))
}

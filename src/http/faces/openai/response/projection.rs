//! Makes the items of an output from a turn.

use std::sync::Arc;

use super::items::{
    ApprovalItem, FunctionCallItem, McpCallItem, MessageItem, OutputItem, OutputStatus, Phase, ReasoningItem,
};
use super::status::{ResponseStatus, status_of};
use crate::http::faces::openai::echo::Echo;
use crate::http::faces::openai::ids::{ItemId, ItemKind, parse_response_id};
use crate::http::faces::openai::reasoning::OwnedReasoning;
use crate::http::faces::openai::stored_items::StoredPart;
use crate::http::faces::turn::{Block, BlockKind, CallResult, Turn, TurnCall, TurnStep};
use crate::http::openai_settings::{OpenAiSettings, OwnTools};
use agent::record::{RunRecord, RunStatus};
use values::ids::RunId;
use values::message::{ContentPart, Role, joined_text};
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
    pub(super) echo: &'a Echo,
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
            calls.filter_map(|call| self.open_call(step, call))
        });
        output.extend(open);
        output
    }

    /// Returns whether reasoning is sealed at the end of the run. Then no item of a step is whole
    /// before the step has ended.
    pub(super) fn seals(&self) -> bool {
        self.echo.encrypts_reasoning() && self.settings.openai.seal.is_some()
    }

    /// Returns the id of the item of a block; `None` if the item is written only as a whole.
    pub(super) fn block_id(&self, step: &TurnStep, index: usize) -> Option<ItemId> {
        let kind = match step.blocks.get(index)?.kind {
            BlockKind::Reasoning => ItemKind::Reasoning,
            BlockKind::Text | BlockKind::Refusal if self.echo.is_json() => return None,
            BlockKind::Text | BlockKind::Refusal => ItemKind::Message,
        };
        Some(ItemId::of_block(kind, self.run_id, step.id, index))
    }

    /// Makes the item of a block whose words are still to come.
    pub(super) fn begun_block(&self, step: &TurnStep, index: usize) -> Option<OutputItem> {
        let kind = step.blocks.get(index)?.kind;
        if kind == BlockKind::Reasoning {
            return Some(self.reasoning(step, index, Some(""), None));
        }
        let text = String::new();
        Some(self.message(step, index, Block { kind, text }, (OutputStatus::InProgress, None)))
    }

    /// Makes the items of the reasoning before a block, without what the end of the run adds.
    pub(super) fn reasoning_before(&self, step: &TurnStep, index: usize) -> Vec<OutputItem> {
        let before = step.blocks.iter().enumerate().take(index);
        let reasoning = before.filter(|(_, block)| block.kind == BlockKind::Reasoning);
        let items = reasoning.map(|(index, block)| self.reasoning(step, index, Some(&block.text), None));
        items.collect()
    }

    /// Makes the items of the words of a step. `end` is the record of the run if it has ended with
    /// this step.
    ///
    /// Clients parse JSON, so it is one message, and none if it was corrected or cut.
    pub(super) fn words(&self, step: &TurnStep, end: Option<&RunRecord>) -> Vec<OutputItem> {
        let end_of_response = end.filter(|_| step.is_final);
        let is_whole = end_of_response.is_some_and(|record| status_of(record) == ResponseStatus::Completed);
        let state = match end_of_response {
            Some(_) if is_whole => (OutputStatus::Completed, Some(Phase::FinalAnswer)),
            Some(_) => (OutputStatus::Incomplete, Some(Phase::FinalAnswer)),
            None => (OutputStatus::Completed, Some(Phase::Commentary)),
        };
        let mut sealed = end.map_or_else(Vec::new, |record| self.sealed(record)).into_iter();
        let mut items = Vec::new();
        for (index, block) in step.blocks.iter().enumerate() {
            match block.kind {
                BlockKind::Reasoning => items.push(self.reasoning(step, index, Some(&block.text), sealed.next())),
                _ if self.echo.is_json() => (),
                _ => items.push(self.message(step, index, block.clone(), state)),
            }
        }
        if self.echo.is_json() && (is_whole || !step.calls.is_empty()) {
            let kinds = [BlockKind::Text, BlockKind::Refusal].into_iter();
            let joined = kinds.filter_map(|kind| joined_block(step, kind));
            items.extend(joined.map(|(index, block)| self.message(step, index, block, state)));
        }
        let unread = sealed.zip(step.blocks.len()..);
        items.extend(unread.map(|(sealed, index)| self.reasoning(step, index, None, Some(sealed))));
        items
    }

    /// Makes the item of a call that has ended; `None` if it is hidden, or has not ended.
    pub(super) fn ended_call(&self, step: &TurnStep, call: &TurnCall) -> Option<OutputItem> {
        let CallResult { content, is_error } = call.result.as_ref()?;
        if self.settings.openai.access.own_tools == OwnTools::Hide {
            return None;
        }
        let id = |kind, run_id| ItemId::of_call(kind, run_id, step.id, &call.call_id);
        let previous = self.echo.previous_response_id.as_deref().and_then(parse_response_id);
        let request = previous.filter(|_| step.is_answered);
        Some(OutputItem::McpCall(McpCallItem {
            approval_request_id: request.map(|run_id| id(ItemKind::ApprovalRequest, run_id)),
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
    fn open_call(&self, step: &TurnStep, call: &OpenCall) -> Option<OutputItem> {
        let id = |kind| ItemId::of_call(kind, self.run_id, step.id, &call.call_id);
        let (name, arguments) = (call.tool.clone(), call.arguments.to_string());
        match call.kind {
            OpenCallKind::Client => Some(OutputItem::FunctionCall(FunctionCallItem {
                id: id(ItemKind::FunctionCall),
                call_id: call.call_id.clone(),
                name,
                arguments,
                status: OutputStatus::Completed,
            })),
            OpenCallKind::Approval => {
                let item = ApprovalItem::new(id(ItemKind::ApprovalRequest), name, arguments);
                Some(OutputItem::McpApprovalRequest(item))
            }
            OpenCallKind::Input | OpenCallKind::Unknown => None,
        }
    }

    /// Seals the reasoning of the last completion, if the client asks for it.
    fn sealed(&self, record: &RunRecord) -> Vec<String> {
        let seal = self.settings.openai.seal.as_ref().filter(|_| self.seals());
        let message = record.output.iter().rfind(|message| message.role == Role::Assistant);
        let (Some(seal), Some(message)) = (seal, message) else {
            return Vec::new();
        };
        let owned = message.content.iter().filter_map(|part| match part {
            ContentPart::Reasoning(reasoning) if part.is_owned() => Some(OwnedReasoning {
                part: reasoning.clone(),
                provider_fields: message.provider_fields.clone(),
            }),
            _ => None,
        });
        owned
            .filter_map(|owned| owned.seal(seal, &self.settings.tenant))
            .collect()
    }

    fn reasoning(&self, step: &TurnStep, index: usize, text: Option<&str>, sealed: Option<String>) -> OutputItem {
        let summary = text.map(|text| StoredPart::SummaryText { text: text.to_owned() });
        OutputItem::Reasoning(ReasoningItem {
            id: ItemId::of_block(ItemKind::Reasoning, self.run_id, step.id, index),
            summary: summary.into_iter().collect(),
            encrypted_content: sealed,
        })
    }

    fn message(
        &self,
        step: &TurnStep,
        index: usize,
        block: Block,
        (status, phase): (OutputStatus, Option<Phase>),
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
            id: ItemId::of_block(ItemKind::Message, self.run_id, step.id, index),
            status,
            role: "assistant",
            content: vec![part],
            phase,
        })
    }
}

/// Returns all words of a kind as one block, with the index of the first.
fn joined_block(step: &TurnStep, kind: BlockKind) -> Option<(usize, Block)> {
    let index = step.blocks.iter().position(|block| block.kind == kind)?;
    let blocks = step.blocks.iter().filter(|block| block.kind == kind);
    let text = blocks.map(|block| block.text.as_str()).collect();
    Some((index, Block { kind, text }))
}

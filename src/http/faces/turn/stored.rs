//! Makes a turn from what is stored of its run.

use std::sync::Arc;

use uuid::Uuid;

use super::parts::{BlockKind, CallResult, CallSubagent, Turn, TurnStep};
use crate::run::read::{AnsweredStep, RunMessages};
use agent::RunErrorCode;
use agent::record::{StepRecord, SubagentRecord};
use agent::state::{AgentStepType, ToolVerdict};
use values::ids::{MessageId, StepId};
use values::message::{ContentPart, Message};

/// A part of a message of a step that has words.
#[derive(Debug)]
pub(in crate::http) struct WordPart {
    /// The message.
    pub(in crate::http) message_id: MessageId,
    /// The index of the part in the message.
    pub(in crate::http) index: usize,
    /// The index of its block in the step.
    pub(in crate::http) block: usize,
}

impl Turn {
    /// Makes the turn of a run.
    pub(in crate::http) fn of_stored(messages: &RunMessages) -> Self {
        let mut steps: Vec<_> = messages.answered.iter().map(answered_step).collect();
        steps.extend(messages.steps.iter().map(stored_step));
        let before = steps.len().saturating_sub(1);
        for step in steps.iter_mut().take(before) {
            step.is_final = false;
        }
        Self { steps }
    }
}

impl Turn {
    /// Makes a turn of one step from messages that no stored run has made.
    pub(in crate::http) fn of_messages(messages: &[Arc<Message>]) -> Self {
        let first = messages.first().map_or_else(Uuid::nil, |message| message.id.as_uuid());
        let mut step = TurnStep::new(StepId::from_uuid(first), 0);
        for part in messages.iter().flat_map(|message| &message.content) {
            add_part(&mut step, part);
        }
        Self { steps: vec![step] }
    }
}

impl CallSubagent {
    fn of_record(record: &SubagentRecord) -> Self {
        Self {
            agent: record.agent.clone(),
            session_id: record.session_id,
            status: record.status,
        }
    }
}

fn stored_step(record: &StepRecord) -> TurnStep {
    read_step(record).0
}

/// Makes a step. Also returns the parts of its messages that have words.
pub(in crate::http) fn read_step(record: &StepRecord) -> (TurnStep, Vec<WordPart>) {
    let mut step = TurnStep::new(record.step_id, 0);
    let mut words = Vec::new();
    let mut errors = record.errors.iter();
    // The text of such a step is stored for its correction, and no event has it.
    let is_raw = errors.any(|error| error.code == RunErrorCode::DecisionMalformed.as_str());
    for message in &record.messages {
        for (index, part) in message.content.iter().enumerate() {
            if is_raw && part.as_text().is_some() {
                continue;
            }
            let (message_id, block) = (message.id, add_part(&mut step, part));
            words.extend(block.map(|block| WordPart {
                message_id,
                index,
                block,
            }));
        }
    }
    for execution in &record.tool_executions {
        if let Some(call) = step.call_mut(&execution.call_id) {
            call.is_foreign = execution.is_foreign;
            call.subagent = execution.subagent.as_deref().map(CallSubagent::of_record);
            if let Some(result) = &mut call.result {
                result.verdict = execution.verdict;
            }
        }
    }
    // If another step was to follow, the session has the final response as a trace.
    let is_trace = record.messages.iter().any(|message| message.tags.is_trace);
    step.is_final = record.step_type == AgentStepType::FinalResponse && !is_trace;
    (step, words)
}

/// Returns the step with those of its open calls that the run has executed itself.
fn answered_step(answered: &AnsweredStep) -> TurnStep {
    let mut step = TurnStep::new(answered.step.step_id, 0);
    step.is_answered = true;
    step.left_open_by = answered.run_id;
    for call in stored_step(&answered.step).calls {
        if answered.open_calls.contains(&call.call_id) && answered.has_executed(&call.call_id) {
            step.add_answered(call);
        }
    }
    step
}

/// Adds a part of a message. Returns the index of the block of its words.
fn add_part(step: &mut TurnStep, part: &ContentPart) -> Option<usize> {
    match part {
        ContentPart::Text(part) => return step.add_words(BlockKind::Text, &part.text),
        ContentPart::Refusal { text } => return step.add_words(BlockKind::Refusal, text),
        ContentPart::Reasoning(part) => return step.add_words(BlockKind::Reasoning, &part.text),
        ContentPart::ToolCall(call) => step.add_call(&call.id, &call.name, &call.arguments),
        ContentPart::ToolResult(result) => {
            if let Some(call) = step.call_mut(&result.call_id) {
                call.result = Some(CallResult {
                    content: result.content.clone(),
                    is_error: result.is_error,
                    verdict: ToolVerdict::default(),
                });
            }
        }
        _ => (),
    }
    None
}

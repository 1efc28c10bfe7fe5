//! Makes a turn from what is stored of its run.

use super::parts::{BlockKind, CallResult, Turn, TurnStep};
use crate::run::read::{AnsweredStep, RunMessages};
use agent::record::StepRecord;
use agent::state::AgentStepType;
use values::message::{ContentPart, Message};

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

fn stored_step(record: &StepRecord) -> TurnStep {
    let mut step = TurnStep::new(record.step_id, 0);
    for message in &record.messages {
        add_message(&mut step, message);
    }
    // If another step was to follow, the session has the final response as a trace.
    let is_trace = record.messages.iter().any(|message| message.tags.is_trace);
    step.is_final = record.step_type == AgentStepType::FinalResponse && !is_trace;
    step
}

/// Returns the step with those of its open calls that the run has executed itself.
fn answered_step(answered: &AnsweredStep) -> TurnStep {
    let mut step = TurnStep::new(answered.step.step_id, 0);
    for call in stored_step(&answered.step).calls {
        if answered.open_calls.contains(&call.call_id) && answered.has_executed(&call.call_id) {
            step.add_answered(call);
        }
    }
    step
}

fn add_message(step: &mut TurnStep, message: &Message) {
    for part in &message.content {
        match part {
            ContentPart::Text(part) => {
                step.add_words(BlockKind::Text, &part.text);
            }
            ContentPart::Refusal { text } => {
                step.add_words(BlockKind::Refusal, text);
            }
            ContentPart::Reasoning(part) => {
                step.add_words(BlockKind::Reasoning, &part.text);
            }
            ContentPart::ToolCall(call) => step.add_call(&call.id, &call.name, &call.arguments),
            ContentPart::ToolResult(result) => {
                if let Some(call) = step.call_mut(&result.call_id) {
                    call.result = Some(CallResult {
                        content: result.content.clone(),
                        is_error: result.is_error,
                    });
                }
            }
            _ => (),
        }
    }
}

//! Reads a turn from the events of its run.
//!
//! After a takeover, the new worker either makes the step again that was in progress, with
//! `step.started`, or ends its calls, without that event. So the step is dropped only if it begins
//! again.

use super::parts::{BlockKind, CallResult, Turn, TurnCall, TurnStep};
use agent::record::{RunEvent, RunEventPayload, RunRecord, RunSummary};
use agent::state::{AgentStepType, FinishReason, ToolVerdict};
use agent::{AgentEvent, ContinuationDecision};

/// Reads a turn.
#[derive(Debug, Default)]
pub(in crate::http) struct TurnReader {
    turn: Turn,
}

/// A change of a turn.
#[derive(Debug)]
pub(in crate::http) enum TurnChange<'a> {
    /// The run has begun.
    Started(&'a RunSummary),
    /// A step has begun: the last one of the turn. The one before has ended.
    StepStarted,
    /// The last step has more words.
    Words {
        /// The index of their block.
        block: usize,
        /// The new words.
        text: &'a str,
    },
    /// A call of the last step has ended, so the step has all its words.
    CallEnded,
    /// Another worker continues the run. The steps that it makes again are gone, except the one in
    /// progress, about which the next change decides.
    Resumed,
    /// The run has ended.
    Ended(&'a RunRecord),
}

impl TurnReader {
    /// Returns the turn so far.
    pub(in crate::http) fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Returns the turn.
    pub(in crate::http) fn into_turn(self) -> Turn {
        self.turn
    }

    /// Reads the next event.
    pub(in crate::http) fn read<'a>(&mut self, event: &'a RunEvent) -> Option<TurnChange<'a>> {
        let steps = &mut self.turn.steps;
        match &event.payload {
            RunEventPayload::Started(run) => Some(TurnChange::Started(run)),
            RunEventPayload::Resumed { step_count, .. } => {
                steps.retain(|step| step.number as u64 <= step_count + 1);
                Some(TurnChange::Resumed)
            }
            RunEventPayload::Agent(AgentEvent::StepStarted {
                step_number,
                step_id,
                left_open_by,
                ..
            }) => {
                steps.retain(|step| step.number < *step_number);
                steps.push(TurnStep {
                    left_open_by: *left_open_by,
                    ..TurnStep::new(*step_id, *step_number)
                });
                Some(TurnChange::StepStarted)
            }
            RunEventPayload::Agent(event) => read_in_step(steps.last_mut()?, event),
            payload => {
                let record = payload.record()?;
                // Nothing is stored of a step that has not ended.
                steps.retain(|step| step.is_complete);
                Some(TurnChange::Ended(record))
            }
        }
    }
}

fn read_in_step<'a>(step: &mut TurnStep, event: &'a AgentEvent) -> Option<TurnChange<'a>> {
    match event {
        AgentEvent::MessageDelta { text, refusal, .. } => {
            let kind = if *refusal { BlockKind::Refusal } else { BlockKind::Text };
            let block = step.add_words(kind, text)?;
            return Some(TurnChange::Words { block, text });
        }
        AgentEvent::ReasoningDelta { text, .. } => {
            let block = step.add_words(BlockKind::Reasoning, text)?;
            return Some(TurnChange::Words { block, text });
        }
        AgentEvent::ToolCallStarted { call_id, name, .. } => step.add_call(call_id, name, ""),
        AgentEvent::ModelResponded {
            finish_reason, error, ..
        } => {
            let is_cut = matches!(finish_reason, None | Some(FinishReason::Interrupted));
            if is_cut || error.is_some() {
                // The calls of such a completion are dropped.
                step.calls.retain(|call| call.result.is_some());
            }
        }
        AgentEvent::ToolCallCompleted {
            call_id,
            name,
            arguments,
            content,
            is_error,
            verdict,
            is_foreign,
            ..
        } => {
            let ended = TurnCall {
                call_id: call_id.clone(),
                name: name.clone(),
                arguments: arguments.clone(),
                is_foreign: *is_foreign,
                result: Some(CallResult {
                    content: content.clone(),
                    is_error: *is_error,
                }),
            };
            match step.call_mut(call_id) {
                Some(call) => *call = ended,
                None if *verdict == ToolVerdict::Executed => step.add_answered(ended),
                // The caller has given the result, or has denied the call.
                None => {
                    step.is_answered = true;
                    return None;
                }
            }
            return Some(TurnChange::CallEnded);
        }
        AgentEvent::StepCompleted { step_type, .. } => {
            step.is_complete = true;
            step.is_final = *step_type == AgentStepType::FinalResponse;
        }
        AgentEvent::ContinuationEvaluated {
            decision: ContinuationDecision::Continue,
            ..
        } => step.is_final = false,
        _ => (),
    }
    None
}

//! The step of a waiting session with an answer for each open call, ready to be finished.

use super::answer::ResolvedAnswer;
use super::open_step::{StoredCall, StoredStep};
use crate::journal::{CallStage, PendingCall, PendingStep};
use crate::ports::{Approved, Continuation, ToolDecision, ToolUse};
use crate::state::AgentStep;
use values::clock::Timestamp;
use values::ids::{RunId, StepId};
use values::json::{Value, json_length};
use values::session::WaitingStep;

/// The result of an approved call that was not executed because the run ended.
const NOT_EXECUTED: &str = "The run ended before this tool was called.";

/// A step with an answer for each open call.
#[derive(Debug, Clone)]
pub struct AnsweredStep {
    /// The run that has left the step open.
    run_id: Option<RunId>,
    step: AgentStep,
    calls: Vec<PendingCall>,
}

/// An open step that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenStepFault {
    /// The JSON of the step has another form.
    #[error("the open step can't be read")]
    Json(#[source] serde_json::Error),
    /// The calls of the step differ from the listed open calls.
    #[error("the open step has other calls than those that are listed")]
    Calls,
}

impl AnsweredStep {
    /// Combines an open step with one answer for each open call, in their order.
    pub fn new(waiting: &WaitingStep, answers: Vec<ResolvedAnswer>) -> Result<Self, OpenStepFault> {
        let stored: StoredStep = serde::Deserialize::deserialize(&waiting.step).map_err(OpenStepFault::Json)?;
        let StoredStep { step, calls } = stored;
        let written: Vec<_> = step.tool_calls().cloned().collect();
        if written.len() != calls.len() {
            return Err(OpenStepFault::Calls);
        }
        let mut answers = answers.into_iter();
        let pending = written.into_iter().zip(calls).map(|(call, stored)| {
            let stage = match stored {
                StoredCall::Ended(execution) => CallStage::Ended(execution),
                StoredCall::Open(tool_use) => answered(tool_use, answers.next().ok_or(OpenStepFault::Calls)?),
            };
            Ok(PendingCall { call, stage })
        });
        let calls = pending.collect::<Result<_, OpenStepFault>>()?;
        if answers.next().is_some() {
            return Err(OpenStepFault::Calls);
        }
        Ok(Self {
            run_id: waiting.run_id,
            step,
            calls,
        })
    }

    /// Returns the id of the step.
    pub(crate) fn step_id(&self) -> StepId {
        self.step.id
    }

    /// Returns the run that has left the step open.
    pub(crate) fn run_id(&self) -> Option<RunId> {
        self.run_id
    }

    /// Returns the step, with no call to be executed, since the execution ends.
    #[must_use]
    pub(crate) fn not_executed(mut self) -> Self {
        for call in &mut self.calls {
            if let CallStage::Decided(tool_use) | CallStage::Edited(tool_use) = &call.stage
                && tool_use.decision == ToolDecision::Execute
            {
                call.stage = CallStage::Decided(ToolUse {
                    decision: ToolDecision::block(NOT_EXECUTED),
                    ..tool_use.clone()
                });
            }
        }
        self
    }

    /// Returns the step as if it had been interrupted during its calls.
    pub(crate) fn into_pending(self, started_at: Timestamp) -> PendingStep {
        PendingStep {
            step: self.step,
            started_at,
            calls: self.calls,
        }
    }

    /// Returns about how many bytes of JSON the step adds to the history.
    pub fn bytes(&self) -> usize {
        let results = self.calls.iter().map(|call| match &call.stage {
            CallStage::Ended(execution) => json_length(&execution.content),
            CallStage::Decided(tool_use) => json_length(&tool_use.decision),
            CallStage::Open | CallStage::Edited(_) | CallStage::Begun(_) => 0,
        });
        let messages: usize = self
            .step
            .output_messages
            .iter()
            .map(|message| json_length(&**message))
            .sum();
        messages + results.sum::<usize>()
    }
}

fn answered(tool_use: ToolUse, answer: ResolvedAnswer) -> CallStage {
    match answer {
        ResolvedAnswer::Result { content, is_error } => CallStage::Decided(ToolUse {
            decision: ToolDecision::Supply { content, is_error },
            ..tool_use
        }),
        ResolvedAnswer::Denied { reason, by } => CallStage::Decided(ToolUse {
            decision: ToolDecision::Block { reason, by },
            ..tool_use
        }),
        ResolvedAnswer::Approved => CallStage::Decided(ToolUse {
            approved: Some(Approved::AsAsked),
            ..tool_use
        }),
        ResolvedAnswer::Input(input) => CallStage::Decided(ToolUse {
            continuation: tool_use.continuation.clone().map(|continuation| {
                Box::new(Continuation {
                    input: Some(input),
                    ..*continuation
                })
            }),
            ..tool_use
        }),
        ResolvedAnswer::Edited(arguments) => {
            let arguments = Value::Object(arguments).to_string();
            let mut edited = ToolUse {
                approved: Some(Approved::Edited {
                    arguments: arguments.clone(),
                }),
                ..tool_use
            };
            edited.call.arguments = arguments;
            CallStage::Edited(edited)
        }
    }
}

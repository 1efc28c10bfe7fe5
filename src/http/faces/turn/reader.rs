//! Reads a turn from the events of its run.
//!
//! After a takeover, the new worker either makes the step again that was in progress, with
//! `step.started`, or ends its calls, without that event. So the step is dropped only if it begins
//! again.

use std::collections::BTreeMap;

use super::parts::{BlockKind, CallName, CallResult, CallSubagent, Turn, TurnCall, TurnStep};
use agent::record::{RunEvent, RunEventPayload, RunRecord, RunSummary};
use agent::state::{AgentStepType, ExecutionStatus, FinishReason, ToolVerdict};
use agent::{AgentEvent, ContinuationDecision};
use values::ids::SessionId;
use values::json::Value;

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
    StepStarted {
        /// Whether it was in progress before a takeover, and begins again.
        is_again: bool,
    },
    /// The last step has more words.
    Words {
        /// The index of their block.
        block: usize,
        /// The new words.
        text: &'a str,
    },
    /// The model asks for a call.
    CallStarted(CallName<'a>),
    /// The model has written more of the arguments of a call.
    Arguments {
        /// The id of the call.
        call_id: &'a str,
        /// The new piece.
        text: &'a str,
    },
    /// The arguments of a call are whole: these, with the changes of hooks.
    CallRequested(CallName<'a>, &'a str),
    /// A call at work has more output.
    Output {
        /// The id of the call.
        call_id: &'a str,
        /// The new piece.
        text: &'a str,
    },
    /// A call of the last step has ended, so the step has all its words.
    CallEnded(&'a str),
    /// A call that an earlier run has left open has a result of the caller, or none in time.
    CallAnswered(CallName<'a>, CallResult),
    /// Another agent works on a call, or has ended its work.
    Subagent(&'a str),
    /// Variables have changed: these, with null for each one that was removed.
    Variables(&'a BTreeMap<String, Value>),
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
            RunEventPayload::Agent(event) => self.read_agent(event),
            payload => {
                let record = payload.record()?;
                // Nothing is stored of a step that has not ended.
                steps.retain(|step| step.is_complete);
                Some(TurnChange::Ended(record))
            }
        }
    }

    /// Reads the next event of an agent, of which the run may have several.
    pub(in crate::http::faces) fn read_agent<'a>(&mut self, event: &'a AgentEvent) -> Option<TurnChange<'a>> {
        let steps = &mut self.turn.steps;
        let AgentEvent::StepStarted {
            step_number,
            step_id,
            left_open_by,
            ..
        } = event
        else {
            return read_in_step(steps.last_mut()?, event);
        };
        let count = steps.len();
        steps.retain(|step| step.number < *step_number);
        let is_again = steps.len() < count;
        steps.push(TurnStep {
            left_open_by: *left_open_by,
            ..TurnStep::new(*step_id, *step_number)
        });
        Some(TurnChange::StepStarted { is_again })
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
        AgentEvent::StateChanged { variables, .. } if !variables.is_empty() => {
            return Some(TurnChange::Variables(variables));
        }
        AgentEvent::ModelResponded {
            finish_reason, error, ..
        } => {
            let is_cut = matches!(finish_reason, None | Some(FinishReason::Interrupted));
            if is_cut || error.is_some() {
                // The calls of such a completion are dropped.
                step.calls.retain(|call| call.result.is_some());
            }
        }
        AgentEvent::StepCompleted { step_type, .. } => {
            step.is_complete = true;
            step.is_final = *step_type == AgentStepType::FinalResponse;
        }
        AgentEvent::ContinuationEvaluated {
            decision: ContinuationDecision::Continue,
            ..
        } => step.is_final = false,
        event => return read_call(step, event),
    }
    None
}

/// Reads an event of a call.
fn read_call<'a>(step: &mut TurnStep, event: &'a AgentEvent) -> Option<TurnChange<'a>> {
    match event {
        AgentEvent::ToolCallStarted { call_id, name, .. } => {
            step.add_call(call_id, name, "");
            Some(TurnChange::CallStarted(CallName { call_id, tool: name }))
        }
        AgentEvent::ToolCallDelta { call_id, arguments, .. } => Some(TurnChange::Arguments {
            call_id,
            text: arguments,
        }),
        AgentEvent::ToolCallRequested {
            call_id,
            name,
            arguments,
            ..
        } => Some(TurnChange::CallRequested(CallName { call_id, tool: name }, arguments)),
        AgentEvent::ToolCallOutput { call_id, text, .. } => Some(TurnChange::Output { call_id, text }),
        AgentEvent::SubagentStarted {
            call_id,
            agent,
            session_id,
            ..
        } => step.set_subagent(call_id, agent, *session_id, ExecutionStatus::InProgress),
        AgentEvent::SubagentCompleted {
            call_id,
            agent,
            session_id,
            status,
            ..
        } => step.set_subagent(call_id, agent, *session_id, *status),
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
            let result = CallResult {
                content: content.clone(),
                is_error: *is_error,
                verdict: *verdict,
            };
            let mut call = TurnCall::new(call_id, name, arguments);
            call.is_foreign = *is_foreign;
            call.result = Some(result.clone());
            if step.end_call(call, *verdict) {
                Some(TurnChange::CallEnded(call_id))
            } else {
                Some(TurnChange::CallAnswered(CallName { call_id, tool: name }, result))
            }
        }
        _ => None,
    }
}

impl TurnStep {
    /// Ends a call. Returns `false` if an earlier run has left it open, and the caller has given
    /// the result or has denied the call.
    fn end_call(&mut self, ended: TurnCall, verdict: ToolVerdict) -> bool {
        match self.call_mut(&ended.call_id) {
            Some(call) => {
                let subagent = call.subagent.take();
                *call = TurnCall { subagent, ..ended };
            }
            None if verdict == ToolVerdict::Executed => self.add_answered(ended),
            None => {
                self.is_answered = true;
                return false;
            }
        }
        true
    }

    fn set_subagent<'a>(
        &mut self,
        call_id: &'a str,
        agent: &str,
        session_id: SessionId,
        status: ExecutionStatus,
    ) -> Option<TurnChange<'a>> {
        self.call_mut(call_id)?.subagent = Some(CallSubagent {
            agent: agent.to_owned(),
            session_id,
            status,
        });
        Some(TurnChange::Subagent(call_id))
    }
}

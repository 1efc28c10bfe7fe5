//! A tool call that a subagent executes: its events and its result.

use std::sync::Arc;

use super::task;
use super::trace::Trace;
use crate::run::work::{SubagentSession, Work};
use agent::AgentEvent;
use agent::ports::{ToolError, ToolOutput};
use agent::state::{AgentState, ExecutionStatus, StopReason, SubagentExecution, ToolTrace};
use values::ids::AgentId;
use values::session::EnvironmentState;
use workspace::Tree;
use workspace::environment::{EnvironmentError, Merge};

/// A tool call in progress.
pub(super) struct Called<'a> {
    /// The parent execution.
    pub(super) above: &'a Work,
    /// The subagent's instance.
    pub(super) agent_id: AgentId,
    /// The number of the parent's step with the call.
    pub(super) step_number: usize,
    /// The call's id.
    pub(super) call_id: String,
    /// The subagent's execution.
    pub(super) work: Arc<Work>,
    /// The trace of the execution.
    pub(super) trace: Arc<Trace>,
    /// The files that the subagent began with, if it works on a copy of its parent's.
    pub(super) forked_from: Option<Tree>,
}

impl Called<'_> {
    /// Emits the event that the subagent begins.
    pub(super) fn emit_started(&self) {
        self.above.events.emit(AgentEvent::SubagentStarted {
            step_number: self.step_number,
            call_id: self.call_id.clone(),
            agent: self.work.member.agent.name.clone(),
            agent_id: self.agent_id,
            session_id: self.work.session_id,
        });
    }

    /// Returns the result of the call. There is no state if the execution panicked.
    pub(super) async fn end(self, state: Option<AgentState>) -> Result<ToolOutput, ToolError> {
        if !self.shares_environment() {
            self.work.environment.jobs().stop().await;
        }
        let name = &self.work.member.agent.name;
        let status = state.as_ref().and_then(AgentState::status);
        let status = status.unwrap_or(ExecutionStatus::Failed);
        let trace = self.emit_completed(status, state.as_ref().and_then(AgentState::stop_reason));
        match state {
            Some(state) if status.has_session() => {
                let words = if status == ExecutionStatus::Completed {
                    task::completed(name, &state)
                } else {
                    task::stopped(name, &state)
                };
                match self.end_environment().await {
                    Ok((environment, note)) => {
                        self.add_session(state, environment);
                        Ok(ToolOutput {
                            trace,
                            ..ToolOutput::text(note.map_or(words.clone(), |note| format!("{words}\n\n{note}")))
                        })
                    }
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "a subagent's files are lost");
                        let message = format!("the files of the agent {name} can't be stored: {error}");
                        Err(ToolError {
                            message,
                            trace: Box::new(trace),
                        })
                    }
                }
            }
            Some(state) => Err(ToolError {
                message: task::failed(name, &state),
                trace: Box::new(trace),
            }),
            None => Err(ToolError {
                message: format!("the agent {name} met an internal error"),
                trace: Box::new(trace),
            }),
        }
    }

    /// Merges the files of the subagent into the files of its parent agent. Returns the environment
    /// of its session, and a note for the model about a failed merge.
    async fn end_environment(&self) -> Result<(EnvironmentState, Option<String>), EnvironmentError> {
        let environment = &self.work.environment;
        if self.shares_environment() {
            let (state, _) = environment.export_with_revision().await?;
            return Ok((state, None));
        }
        let state = environment.export().await?;
        let Some(base) = &self.forked_from else {
            return Ok((state, None));
        };
        let note = match self.above.environment.merge_fork(environment, base).await? {
            Merge::Done => None,
            Merge::Conflicts(conflicts) => Some(task::conflicting(&conflicts)),
        };
        Ok((state, note))
    }

    /// Returns whether the subagent works in the environment of its parent agent, which goes on.
    fn shares_environment(&self) -> bool {
        Arc::ptr_eq(&self.work.environment, &self.above.environment)
    }

    /// Emits the event that the subagent has ended, and returns the trace.
    fn emit_completed(&self, status: ExecutionStatus, stop_reason: Option<StopReason>) -> ToolTrace {
        let usage = self.work.control.spent();
        let (agent, session_id) = (self.work.member.agent.name.clone(), self.work.session_id);
        let subagent = self.trace.execution().map(|(execution_id, steps)| SubagentExecution {
            agent: agent.clone(),
            agent_id: self.agent_id,
            session_id,
            execution_id,
            status,
            stop_reason,
            steps,
        });
        let completions = subagent.iter().flat_map(|subagent| &subagent.steps);
        let last = completions.rev().find_map(|done| done.step.response.as_ref());
        self.above.events.emit(AgentEvent::SubagentCompleted {
            step_number: self.step_number,
            call_id: self.call_id.clone(),
            agent,
            agent_id: self.agent_id,
            session_id,
            status,
            stop_reason,
            finish_reason: last.map(|response| response.finish_reason.clone()),
            step_count: subagent.as_ref().map_or(0, |subagent| subagent.steps.len()),
            usage: Box::new(usage),
        });
        ToolTrace {
            usage,
            subagent: subagent.map(Arc::new),
            ..ToolTrace::default()
        }
    }

    /// Passes the session to the parent execution, which publishes it with its own session or drops
    /// it.
    fn add_session(&self, state: AgentState, environment: EnvironmentState) {
        let child = SubagentSession {
            session_id: self.work.session_id,
            subagent_of: self.above.session_id,
            agent: self.work.member.agent.name.clone(),
            agent_version: self.work.member.agent_version,
            environment: Arc::new(environment),
            state,
        };
        self.above.children.add(child, &self.work.children);
    }
}

//! The record of a subagent's work on a tool call: its trace, as readers see it below the call.

use serde::{Deserialize, Serialize};

use super::step::StepRecord;
use crate::agent::state::{ExecutionStatus, StopReason, ToolExecution};
use crate::ids::{AgentId, ExecutionId, SessionId};
use crate::usage::Usage;

/// The work of another agent on behalf of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SubagentRecord {
    /// The agent's name.
    pub agent: String,
    /// The agent instance.
    pub agent_id: AgentId,
    /// Its session; committed with that of the run unless it, or an agent above it, failed.
    pub session_id: SessionId,
    /// The execution.
    pub execution_id: ExecutionId,
    /// How it ended.
    pub status: ExecutionStatus,
    /// Why it ended.
    pub stop_reason: Option<StopReason>,
    /// What it used, and the agents below it.
    pub usage: Usage,
    /// Its steps, in order.
    #[schema(no_recursion)]
    pub steps: Vec<StepRecord>,
}

impl SubagentRecord {
    /// Records the agent that worked on a call, if one did.
    pub(super) fn of(execution: &ToolExecution) -> Option<Self> {
        let subagent = execution.trace.subagent.as_ref()?;
        let steps = (1..).zip(&subagent.steps);
        Some(Self {
            agent: subagent.agent.clone(),
            agent_id: subagent.agent_id,
            session_id: subagent.session_id,
            execution_id: subagent.execution_id,
            status: subagent.status,
            stop_reason: subagent.stop_reason,
            usage: execution.trace.usage,
            steps: steps.map(|(number, step)| StepRecord::new(number, step)).collect(),
        })
    }
}

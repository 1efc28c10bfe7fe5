//! The record of a subagent's work on a tool call: its trace, as readers see it below the call.

use serde::{Deserialize, Serialize};

use super::step::StepRecord;
use crate::state::{ExecutionStatus, StopReason, ToolExecution};
use values::ids::{AgentId, ExecutionId, SessionId};
use values::usage::Usage;

/// The work of another agent on behalf of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SubagentRecord {
    /// The agent's name.
    pub agent: String,
    /// The agent instance.
    pub agent_id: AgentId,
    /// The session. It is committed with the session of the run, unless it or one of its ancestors
    /// failed.
    pub session_id: SessionId,
    /// The execution.
    pub execution_id: ExecutionId,
    /// The status at its end.
    pub status: ExecutionStatus,
    /// The reason of the end.
    pub stop_reason: Option<StopReason>,
    /// The usage, including the usage of its own subagents.
    pub usage: Usage,
    /// The steps, in order.
    #[schema(no_recursion)]
    pub steps: Vec<StepRecord>,
}

impl SubagentRecord {
    /// Returns the record of the subagent that executed a call, if there is one.
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

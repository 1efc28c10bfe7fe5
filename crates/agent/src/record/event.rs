//! The events of a run, of its execution and of its life cycle. They are numbered from 1 without
//! gaps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::run::{RunRecord, RunStatus, RunSummary};
use crate::AgentEvent;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::weight;
use values::session::{Hash, SessionHead};

/// The size of an event and its slots in lists besides its payload, in bytes.
const EVENT_BYTES: usize = 384;

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The number of the event, from 1.
    pub sequence: u64,
    /// The run.
    pub run_id: RunId,
    /// When it happened.
    #[serde(serialize_with = "values::clock::write_time")]
    pub time: Timestamp,
    /// The content of the event.
    #[serde(flatten)]
    pub payload: RunEventPayload,
}

/// The payload of an event of a run. Exactly one of the last five ends every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum RunEventPayload {
    /// The run begins: always the first event.
    #[serde(rename = "run.started")]
    Started(Box<RunSummary>),
    /// Another worker continues the run, or the same worker after it lost or released the run.
    /// Events after the last completed step are no longer valid. If no step is persisted, no
    /// earlier event is valid.
    #[serde(rename = "run.resumed")]
    Resumed {
        /// The number of attempts, including this one.
        attempts: u32,
        /// The number of completed steps that are persisted.
        step_count: u64,
    },
    /// The session is published and can be read.
    #[serde(rename = "session.committed")]
    SessionCommitted {
        /// The session.
        session_id: SessionId,
        /// The session that it continues.
        parent_session_id: Option<SessionId>,
        root_hash: Hash,
    },
    /// The run ended with its work done.
    #[serde(rename = "run.completed")]
    Completed(Arc<RunRecord>),
    /// The run ended before its work was done.
    #[serde(rename = "run.stopped")]
    Stopped(Arc<RunRecord>),
    /// The run ended with calls that wait for answers of the caller.
    #[serde(rename = "run.waiting")]
    Waiting(Arc<RunRecord>),
    /// The run ended by an error.
    #[serde(rename = "run.failed")]
    Failed(Arc<RunRecord>),
    /// The run ended by the caller.
    #[serde(rename = "run.cancelled")]
    Cancelled(Arc<RunRecord>),
    /// Something happened inside the execution.
    #[serde(untagged)]
    Agent(AgentEvent),
}

impl RunEventPayload {
    /// Creates the event of a published session. The result is always the same.
    pub fn committed(head: &SessionHead) -> Self {
        Self::SessionCommitted {
            session_id: head.session_id,
            parent_session_id: head.parent_session_id,
            root_hash: head.root_hash,
        }
    }

    /// Creates the terminal event from the record of an ended run.
    pub fn terminal(record: Arc<RunRecord>) -> Self {
        match record.summary.status {
            RunStatus::Completed => Self::Completed(record),
            RunStatus::Stopped => Self::Stopped(record),
            RunStatus::Waiting => Self::Waiting(record),
            RunStatus::Answered => Self::Waiting(Arc::new(record.as_it_ended())),
            RunStatus::Cancelled => Self::Cancelled(record),
            RunStatus::Failed | RunStatus::Queued | RunStatus::Running => Self::Failed(record),
        }
    }

    /// Returns the record of a terminal event.
    pub fn record(&self) -> Option<&Arc<RunRecord>> {
        match self {
            Self::Completed(record)
            | Self::Stopped(record)
            | Self::Waiting(record)
            | Self::Failed(record)
            | Self::Cancelled(record) => Some(record),
            _ => None,
        }
    }

    /// Returns whether no event can follow.
    pub fn is_terminal(&self) -> bool {
        self.record().is_some()
    }

    /// Returns the name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "run.started",
            Self::Resumed { .. } => "run.resumed",
            Self::SessionCommitted { .. } => "session.committed",
            Self::Completed(_) => "run.completed",
            Self::Stopped(_) => "run.stopped",
            Self::Waiting(_) => "run.waiting",
            Self::Failed(_) => "run.failed",
            Self::Cancelled(_) => "run.cancelled",
            Self::Agent(event) => agent_event_name(event),
        }
    }
}

/// Estimates how many bytes of memory an event takes.
pub fn event_weight(payload: &RunEventPayload) -> usize {
    EVENT_BYTES + weight(payload)
}

fn agent_event_name(event: &AgentEvent) -> &'static str {
    match event {
        AgentEvent::ExecutionStarted { .. } => "execution.started",
        AgentEvent::StepStarted { .. } => "step.started",
        AgentEvent::MessageApplied { .. } => "message.applied",
        AgentEvent::ModelRequested { .. } => "model.requested",
        AgentEvent::ModelResponded { .. } => "model.responded",
        AgentEvent::MessageDelta { .. } => "message.delta",
        AgentEvent::ReasoningDelta { .. } => "reasoning.delta",
        AgentEvent::ToolCallStarted { .. } => "tool_call.started",
        AgentEvent::ToolCallDelta { .. } => "tool_call.delta",
        AgentEvent::ToolCallRequested { .. } => "tool_call.requested",
        AgentEvent::ToolCallOutput { .. } => "tool_call.output",
        AgentEvent::ToolCallCompleted { .. } => "tool_call.completed",
        AgentEvent::StateChanged { .. } => "state.changed",
        AgentEvent::SubagentStarted { .. } => "subagent.started",
        AgentEvent::SubagentEvent { .. } => "subagent.event",
        AgentEvent::SubagentCompleted { .. } => "subagent.completed",
        AgentEvent::HistoryCompacted { .. } => "history.compacted",
        AgentEvent::HookWarned { .. } => "hook.warned",
        AgentEvent::ServerWarned { .. } => "server.warned",
        AgentEvent::StepCompleted { .. } => "step.completed",
        AgentEvent::ContinuationEvaluated { .. } => "continuation.evaluated",
        AgentEvent::ExecutionEnded { .. } => "execution.ended",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_weighs_at_least_the_texts_that_it_holds() {
        let long = "x".repeat(100_000);
        let id = "01a2029f-3aaa-7738-ac15-a93ea52f3917";
        let error = json!({"kind": "model", "code": "c", "message": long});
        let ended = json!({
            "execution_id": id, "status": "completed", "reason": "completed", "was_force_stopped": false,
            "message": null, "context": {"limit": [{"deep": long}]}, "step_count": 1, "usage": {}, "duration_ms": 1,
        });
        let changed = json!({
            "step_number": 1, "hook": "h", "point": "before_step", "changes": ["metadata"], "metadata": {"k": long},
        });
        let responded = json!({
            "step_number": 1, "request_id": id, "model": "a/b", "finish_reason": null, "usage": {}, "error": error,
            "attempts": 1, "duration_ms": 1,
        });
        let warned = json!({"step_number": 1, "hook": "h", "message": long});
        let below = json!({
            "step_number": 1, "call_id": "c", "agent_id": id, "depth": 1,
            "event": {"type": "hook.warned", "data": warned},
        });
        for (name, data) in [
            ("execution.ended", ended),
            ("state.changed", changed),
            ("model.responded", responded),
            ("hook.warned", warned),
            ("server.warned", json!({"server": "s", "problems": [long]})),
            ("subagent.event", below),
        ] {
            let event = json!({"type": name, "data": data});
            let event: RunEventPayload = serde_json::from_value(event).unwrap();
            assert!(event_weight(&event) > long.len(), "{name}");
        }
    }
}

//! The results of tool calls that no tool executed, and of calls whose result must be withheld.

use super::ports::DriverPorts;
use crate::agent::hooks::{ToolDecision, ToolUse};
use crate::agent::ports::ToolContext;
use crate::agent::state::{AgentError, ErrorKind, ToolExecution, ToolTrace, ToolVerdict};
use crate::ids::ToolExecutionId;
use crate::message::{ContentPart, ToolCall};

/// What the model reads if a call was not executed because the run ended.
const NOT_EXECUTED: &str = "The run ended before this tool was called.";
/// The text that replaces a result that no hook could check.
pub(super) const WITHHELD: &str = "The result is withheld, because a hook failed before it could be checked.";
/// The code of a call whose outcome is unknown.
const EFFECT_UNCERTAIN: &str = "tool_effect_uncertain";
/// The code of a call beyond the most calls of a step.
const TOO_MANY_CALLS: &str = "tool_calls_exceeded";

impl DriverPorts {
    /// Executes a call unless a hook has decided otherwise. The record contains the call as the
    /// model wrote it.
    pub(super) async fn execution(&self, call: ToolCall, tool_use: ToolUse, context: &ToolContext) -> ToolExecution {
        match tool_use.decision {
            ToolDecision::Execute => {
                let execution = self.tools.execute(tool_use.call, context).await;
                ToolExecution { call, ..execution }
            }
            ToolDecision::Block { reason } => blocked(self, call, reason),
            ToolDecision::Supply { content } => ToolExecution {
                verdict: ToolVerdict::Supplied,
                ..ended_now(self, call, content)
            },
        }
    }
}

/// Blocks a call because of a failed hook, despite the decisions of other hooks.
pub(super) fn not_executed(tool_use: ToolUse) -> ToolUse {
    let reason = NOT_EXECUTED.to_owned();
    let decision = ToolDecision::Block { reason };
    ToolUse { decision, ..tool_use }
}

/// Returns the result of a call that was never made.
pub(super) fn never_made(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    blocked(ports, call, NOT_EXECUTED.to_owned())
}

/// Returns the result of a call that was made but whose outcome is unknown.
pub(super) fn uncertain(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    let name = &call.name;
    let message = format!(
        "the call of {name} was interrupted, and its effect is uncertain: it may have happened, in part or as a whole; check that before you repeat the call"
    );
    failed(ports, call, EFFECT_UNCERTAIN, message)
}

/// Returns the result of a call beyond the most calls of a step.
pub(super) fn too_many(ports: &DriverPorts, call: ToolCall, calls: usize, max: usize) -> ToolExecution {
    let message = format!(
        "this call was not made: the answer asks for {calls} calls, and the first {max} are made; ask for the others in your next answer"
    );
    failed(ports, call, TOO_MANY_CALLS, message)
}

fn blocked(ports: &DriverPorts, call: ToolCall, reason: String) -> ToolExecution {
    ToolExecution {
        verdict: ToolVerdict::Blocked,
        ..ended_now(ports, call, vec![ContentPart::text(reason)])
    }
}

fn failed(ports: &DriverPorts, call: ToolCall, code: &str, message: String) -> ToolExecution {
    let error = AgentError {
        kind: ErrorKind::Tool,
        code: code.to_owned(),
        message: message.clone(),
        source_name: Some(call.name.clone()),
    };
    ToolExecution {
        error: Some(error),
        ..ended_now(ports, call, vec![ContentPart::text(message)])
    }
}

fn ended_now(ports: &DriverPorts, call: ToolCall, content: Vec<ContentPart>) -> ToolExecution {
    let now = ports.now();
    ToolExecution {
        id: ToolExecutionId::generate(&*ports.ids),
        call,
        content,
        error: None,
        started_at: now,
        completed_at: now,
        verdict: ToolVerdict::Executed,
        trace: ToolTrace::default(),
    }
}

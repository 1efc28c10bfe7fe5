//! The results of tool calls that no tool executed, and of calls whose result must be withheld.

use super::ports::DriverPorts;
use crate::ports::{Approved, Blocker, ToolContext, ToolDecision, ToolUse};
use crate::state::{AgentError, ErrorKind, ToolExecution, ToolTrace, ToolVerdict};
use values::ids::ToolExecutionId;
use values::message::{ContentPart, ToolCall, joined_text};

/// The result of a call that was not executed because the run ended.
const NOT_EXECUTED: &str = "The run ended before this tool was called.";
/// The text that replaces a result that no hook could check.
pub(super) const WITHHELD: &str = "The result is withheld, because a hook failed before it could be checked.";
/// The code of a call whose outcome is unknown.
const EFFECT_UNCERTAIN: &str = "tool_effect_uncertain";
/// The longest message of a recorded error, in bytes.
const MAX_RECORDED_BYTES: usize = 2_000;
/// The code of a call that the caller executed without success.
const CLIENT_TOOL_FAILED: &str = "tool_client_failed";
/// The code of a call of a completion that is not whole.
const CALL_CUT: &str = "tool_call_cut";
/// The code of a call beyond the most calls of a step.
const TOO_MANY_CALLS: &str = "tool_calls_exceeded";
/// The code of a call whose tool asked for input that no caller could give.
const INPUT_NOT_GIVEN: &str = "tool_input_not_given";

impl DriverPorts {
    /// Executes a call unless a hook has decided otherwise. The record contains the call as the
    /// model wrote it.
    pub(super) async fn execution(&self, call: ToolCall, tool_use: ToolUse, context: &ToolContext) -> ToolExecution {
        match tool_use.decision {
            ToolDecision::Execute => {
                let execution = self.tools.execute(tool_use.call, context).await;
                let edited = tool_use.approved.as_ref().and_then(edit_notice);
                ToolExecution {
                    is_foreign: self.is_foreign(&call.name),
                    call,
                    content: edited.into_iter().chain(execution.content).collect(),
                    ..execution
                }
            }
            ToolDecision::Block { reason, by } => blocked(self, call, reason, by),
            ToolDecision::Supply { content, is_error } => ToolExecution {
                verdict: ToolVerdict::Supplied,
                error: is_error.then(|| client_error(&call, &content)),
                ..ended_now(self, call, content)
            },
        }
    }
}

/// Tells the model that the caller has edited the arguments of a call.
fn edit_notice(approved: &Approved) -> Option<ContentPart> {
    match approved {
        Approved::AsAsked => None,
        Approved::Edited { arguments } => Some(ContentPart::text(format!(
            "[The caller changed the arguments of this call to {arguments}. This is its result:]"
        ))),
    }
}

/// Returns the error of a tool that the caller executed.
fn client_error(call: &ToolCall, content: &[ContentPart]) -> AgentError {
    AgentError {
        kind: ErrorKind::Tool,
        code: CLIENT_TOOL_FAILED.to_owned(),
        message: shortened(joined_text(content)),
        source_name: Some(call.name.clone()),
    }
}

fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_RECORDED_BYTES));
    message
}

/// Returns the result of a call of a subagent that needs an answer, since a subagent can't wait.
pub(super) fn cant_wait(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    let reason = format!(
        "This call of {} needs an approval of the caller, and an agent that works for another agent can't wait for it.",
        call.name
    );
    blocked(ports, call, reason, Blocker::Hook)
}

/// Returns the result of a call of a subagent whose tool asks for input.
pub(super) fn cant_ask(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    let message = format!(
        "{} asks for input of the caller, and an agent that works for another agent can't wait for it",
        call.name
    );
    failed(ports, call, INPUT_NOT_GIVEN, message)
}

/// Blocks a call because of a failed hook, despite the decisions of other hooks.
pub(super) fn not_executed(tool_use: ToolUse) -> ToolUse {
    let decision = ToolDecision::block(NOT_EXECUTED);
    ToolUse { decision, ..tool_use }
}

/// Returns the result of a call that was never made.
pub(super) fn never_made(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    blocked(ports, call, NOT_EXECUTED.to_owned(), Blocker::Hook)
}

/// Returns the result of a call whose tool asked for input in the last step of an execution.
pub(super) fn input_too_late(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    let message = format!(
        "{} asked for input of the caller, and the run ended before anybody could give it",
        call.name
    );
    failed(ports, call, INPUT_NOT_GIVEN, message)
}

/// Returns the result of a call that was made but whose outcome is unknown.
pub(super) fn uncertain(ports: &DriverPorts, call: ToolCall) -> ToolExecution {
    let name = &call.name;
    let message = format!(
        "the call of {name} was interrupted, and its effect is uncertain: it may have happened, in part or as a whole; check that before you repeat the call"
    );
    failed(ports, call, EFFECT_UNCERTAIN, message)
}

/// Returns the result of a call of a completion that is not whole. Its arguments may be the
/// beginning of others.
pub(super) fn cut_off(ports: &DriverPorts, call: ToolCall, cut: &str) -> ToolExecution {
    let message = format!(
        "this call was not made, since your answer is not complete: {cut}; if you still need the call, make it again, shorter or in several calls"
    );
    failed(ports, call, CALL_CUT, message)
}

/// Returns the result of a call beyond the most calls of a step.
pub(super) fn too_many(ports: &DriverPorts, call: ToolCall, calls: usize, max: usize) -> ToolExecution {
    let message = format!(
        "this call was not made: the answer asks for {calls} calls, and the first {max} are made; ask for the others in your next answer"
    );
    failed(ports, call, TOO_MANY_CALLS, message)
}

fn blocked(ports: &DriverPorts, call: ToolCall, reason: String, by: Blocker) -> ToolExecution {
    ToolExecution {
        verdict: match by {
            Blocker::Hook => ToolVerdict::Blocked,
            Blocker::Caller => ToolVerdict::Denied,
            Blocker::Expiry => ToolVerdict::Expired,
        },
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
        is_foreign: ports.is_foreign(&call.name),
        call,
        content,
        error: None,
        started_at: now,
        completed_at: now,
        verdict: ToolVerdict::Executed,
        trace: ToolTrace::default(),
    }
}

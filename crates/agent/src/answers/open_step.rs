//! Makes the open step of a session from a step whose calls need answers.

use serde::{Deserialize, Serialize};

use super::rules::{Need, NeedKind};
use crate::ports::{ToolSpec, ToolUse};
use crate::state::{AgentStep, ToolExecution, ToolTrace};
use values::clock::Timestamp;
use values::ids::StepId;
use values::json::Value;
use values::session::{OpenCall, OpenCallKind, PinnedTool, WaitingStep, hash_arguments};

/// A call that needs an answer.
#[derive(Debug)]
pub(crate) struct OpenUse {
    /// The index of the call in the step, from 0.
    pub(crate) index: usize,
    /// The call with the changes of the hooks before it.
    pub(crate) tool_use: ToolUse,
    pub(crate) arguments: Value,
    pub(crate) need: Need,
}

/// The step of a waiting session, in the form that the session stores.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredStep {
    /// The step without its executions, and without the completion and the requests for it, which
    /// belong to the run that left the step.
    pub(super) step: AgentStep,
    /// The calls, in their order.
    pub(super) calls: Vec<StoredCall>,
}

/// Returns the id of the step that a session waits in; `None` for a step that can't be read.
pub fn open_step_id(waiting: &WaitingStep) -> Option<StepId> {
    let stored = StoredStep::deserialize(&waiting.step).ok()?;
    Some(stored.step.id)
}

/// A call of the step.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredCall {
    /// The call has ended.
    Ended(Box<ToolExecution>),
    /// The call needs an answer.
    Open(ToolUse),
}

/// Returns the step for the record of the execution, with the executions of the calls that have
/// ended, and the step for the session. The export of the session sets its run, its number of
/// messages and the client tools of the request.
pub(crate) fn suspended(
    mut step: AgentStep,
    ended: Vec<Option<ToolExecution>>,
    open: Vec<OpenUse>,
    specs: &[ToolSpec],
    now: Timestamp,
) -> (AgentStep, WaitingStep) {
    let open_calls = open.iter().map(|open| open_call(open, specs, now)).collect();
    let mut uses = open.into_iter().map(|open| open.tool_use);
    let stored = ended.iter().filter_map(|ended| match ended {
        Some(execution) => Some(StoredCall::Ended(Box::new(ToolExecution {
            // The record of this execution has it.
            trace: ToolTrace::default(),
            ..execution.clone()
        }))),
        None => uses.next().map(StoredCall::Open),
    });
    let calls = stored.collect();
    let stored = StoredStep {
        step: AgentStep {
            response: None,
            model_requests: Vec::new(),
            ..step.clone()
        },
        calls,
    };
    step.tool_executions = ended.into_iter().flatten().collect();
    let waiting = WaitingStep {
        run_id: None,
        trace: None,
        message_count: 0,
        open_calls,
        client_tools: Vec::new(),
        // Only maps with other keys than texts can't be written, and a step has none.
        step: serde_json::to_value(stored).unwrap_or_default(),
    };
    (step, waiting)
}

fn open_call(open: &OpenUse, specs: &[ToolSpec], now: Timestamp) -> OpenCall {
    let OpenUse {
        tool_use,
        arguments,
        need,
        ..
    } = open;
    let parameters = || {
        let spec = specs.iter().find(|spec| spec.name == tool_use.call.name);
        spec.map_or(Value::Bool(true), |spec| spec.parameters.clone())
    };
    let (kind, response_schema) = match &need.kind {
        NeedKind::Result { schema } => (OpenCallKind::Client, schema.clone()),
        NeedKind::Approval { .. } | NeedKind::ChangedTool { .. } => (OpenCallKind::Approval, parameters()),
        NeedKind::Input { schema, .. } => (OpenCallKind::Input, schema.clone()),
    };
    let remembers = match &need.kind {
        NeedKind::Approval { remembers } => *remembers,
        _ => None,
    };
    let (accepts, reason) = match &need.kind {
        NeedKind::ChangedTool { accepts } => (Some(accepts.clone()), Some(changed_reason(accepts))),
        NeedKind::Input { message, .. } => (None, Some(message.clone())),
        NeedKind::Result { .. } | NeedKind::Approval { .. } => (None, None),
    };
    OpenCall {
        call_id: tool_use.call.id.clone(),
        kind,
        tool: tool_use.call.name.clone(),
        arguments_hash: hash_arguments(arguments),
        arguments: arguments.clone(),
        response_schema,
        expires_at: need.expires_at(now),
        remembers,
        accepts,
        reason,
    }
}

fn changed_reason(tool: &PinnedTool) -> String {
    format!(
        "The MCP server {:?} has changed the definition of its tool {:?} since this session first used the server. To \
         approve the call accepts the new definition.",
        tool.server, tool.tool
    )
}

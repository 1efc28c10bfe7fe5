//! Reads the messages that a run has added to its base.

use std::sync::Arc;

use super::run_lookup;
use super::steps::{by_step, step_list};
use crate::run::context::RunContext;
use agent::record::{RunRecord, StepRecord};
use agent::state::ToolVerdict;
use store::StoreError;
use values::ids::{RunId, SessionId};
use values::message::{ContentPart, Message, MessageTags, Role};
use values::session::{Bundle, WaitingStep};
use values::tenant::TenantId;

/// A run, and the messages that it has added to the conversation of its base.
#[derive(Debug)]
pub struct RunMessages {
    /// The run.
    pub record: RunRecord,
    /// The step that the run finished first, if its base waited for answers.
    pub answered: Option<AnsweredStep>,
    /// The messages of callers. Empty before the run has published its session, and for a run that
    /// publishes none.
    pub input: Vec<Arc<Message>>,
    /// Its other steps, with their messages.
    pub steps: Vec<StepRecord>,
}

/// A step that an earlier run has left open, and that this run has finished. The completion is of
/// the earlier run.
#[derive(Debug)]
pub struct AnsweredStep {
    /// The earlier run.
    pub run_id: Option<RunId>,
    /// The step, with the completion and the results of all its calls.
    pub step: StepRecord,
    /// The ids of the calls that were open.
    pub open_calls: Vec<String>,
}

impl AnsweredStep {
    fn new(waiting: &WaitingStep, step: StepRecord) -> Self {
        let open_calls = waiting.open_calls.iter().map(|call| call.call_id.clone());
        Self {
            run_id: waiting.run_id,
            step,
            open_calls: open_calls.collect(),
        }
    }

    /// Returns whether this run has executed a call itself.
    pub fn has_executed(&self, call_id: &str) -> bool {
        let mut executions = self.step.tool_executions.iter();
        executions.any(|execution| execution.call_id == call_id && execution.verdict == ToolVerdict::Executed)
    }
}

/// Reads a run with its messages; `None` if there is no such run.
pub async fn run_messages(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<RunMessages>, StoreError> {
    let Some(record) = run_lookup(ctx, tenant, run_id).await? else {
        return Ok(None);
    };
    let run = &record.summary;
    let mut steps = step_list(ctx, tenant, run_id).await?.unwrap_or_default();
    let left_open = if steps.is_empty() {
        None
    } else {
        left_open(ctx, tenant, run.base_session_id).await?
    };
    let answered = left_open.map(|waiting| AnsweredStep::new(&waiting, steps.remove(0)));
    let added = if run.has_session() {
        ctx.store.new_message_list(tenant, run.session_id).await?
    } else {
        None
    };
    let input = added.unwrap_or_default().into_iter();
    let input = input.filter(|message| is_input(&message.tags)).collect();
    Ok(Some(RunMessages {
        record,
        answered,
        input,
        steps,
    }))
}

/// Reads a run with those of its messages that a later session has. Returns `None` if the run is
/// not stored. If the run has left a step open, the step is among the steps only if the later
/// session still waits for answers, as `is_open` says. Otherwise, the run that has answered has the
/// step.
pub async fn run_messages_in(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
    messages: &[Arc<Message>],
    is_open: bool,
) -> Result<Option<RunMessages>, StoreError> {
    let Some(mut record) = ctx.store.run_lookup(tenant, run_id).await? else {
        return Ok(None);
    };
    let mut steps = ctx.store.step_list(tenant, run_id).await?.unwrap_or_default();
    if !record.open_calls.is_empty() && !is_open {
        steps.pop();
        record.open_calls.clear();
    }
    let mut made = by_step(messages);
    for step in &mut steps {
        // The record has the messages of an open step.
        step.messages.extend(made.remove(&step.step_id).unwrap_or_default());
    }
    if !is_open {
        // The record has the messages as they were at the end of the run.
        let last = steps.last().map(|step| step.messages.clone());
        record.output = last.unwrap_or_default();
    }
    // The step that a run finishes comes before its input.
    let begins_in_step = messages.first().is_some_and(|message| message.tags.step_id.is_some());
    let left_open = if begins_in_step && !steps.is_empty() {
        left_open(ctx, tenant, record.summary.base_session_id).await?
    } else {
        None
    };
    Ok(Some(RunMessages {
        answered: left_open.map(|waiting| AnsweredStep::new(&waiting, steps.remove(0))),
        input: messages
            .iter()
            .filter(|message| is_input(&message.tags))
            .cloned()
            .collect(),
        record,
        steps,
    }))
}

/// Reads a step that another run has finished as the earlier run left it open: with that run, and
/// without the results that came later. Returns `None` if the earlier run is not stored.
pub(super) async fn run_left_open(
    ctx: &RunContext,
    tenant: &TenantId,
    answered: &AnsweredStep,
) -> Result<Option<RunMessages>, StoreError> {
    let Some(run_id) = answered.run_id else { return Ok(None) };
    let Some(mut record) = ctx.store.run_lookup(tenant, run_id).await? else {
        return Ok(None);
    };
    let steps = ctx.store.step_list(tenant, run_id).await?.unwrap_or_default();
    let step = steps.into_iter().find(|step| step.step_id == answered.step.step_id);
    let Some(step) = step else { return Ok(None) };
    let messages = answered.step.messages.iter();
    let messages: Vec<_> = messages
        .filter_map(|message| before_answers(message, &answered.open_calls))
        .collect();
    let is_there = |call_id: &str| {
        let mut calls = messages.iter().flat_map(|message| message.tool_calls());
        calls.any(|call| call.id == call_id)
    };
    record.open_calls.retain(|open| is_there(&open.call_id));
    record.output.clone_from(&messages);
    Ok(Some(RunMessages {
        record,
        answered: None,
        input: Vec::new(),
        steps: vec![StepRecord { messages, ..step }],
    }))
}

/// Returns a message without the results of open calls; `None` if it has no others.
fn before_answers(message: &Arc<Message>, open_calls: &[String]) -> Option<Arc<Message>> {
    if message.role != Role::Tool {
        return Some(Arc::clone(message));
    }
    let is_earlier = |part: &&ContentPart| match part {
        ContentPart::ToolResult(result) => !open_calls.contains(&result.call_id),
        _ => true,
    };
    let content: Vec<_> = message.content.iter().filter(is_earlier).cloned().collect();
    (!content.is_empty()).then(|| {
        Arc::new(Message {
            content,
            ..(**message).clone()
        })
    })
}

/// Returns whether a message comes from a caller: neither from a step nor from a hook.
pub fn is_input(tags: &MessageTags) -> bool {
    tags.step_id.is_none() && !tags.is_trace && tags.section.is_messages()
}

/// Returns the step of a base that waits for answers, if it has open calls.
async fn left_open(
    ctx: &RunContext,
    tenant: &TenantId,
    base: Option<SessionId>,
) -> Result<Option<Arc<WaitingStep>>, StoreError> {
    let Some(base) = base else { return Ok(None) };
    let states = ctx.store.states_load(tenant, base).await?;
    let waiting = states.as_ref().and_then(Bundle::waiting);
    Ok(waiting.filter(|waiting| !waiting.open_calls.is_empty()).cloned())
}

//! Reads the messages that a run has added to its base.

use std::sync::Arc;

use super::{run_lookup, step_list};
use crate::run::context::RunContext;
use agent::record::{RunRecord, StepRecord};
use agent::state::ToolVerdict;
use store::StoreError;
use values::ids::{RunId, SessionId};
use values::message::Message;
use values::session::Bundle;
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
    /// The step, with the completion and the results of all its calls.
    pub step: StepRecord,
    /// The ids of the calls that were open.
    pub open_calls: Vec<String>,
}

impl AnsweredStep {
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
    let open_calls = if steps.is_empty() {
        Vec::new()
    } else {
        open_calls(ctx, tenant, run.base_session_id).await?
    };
    let answered = (!open_calls.is_empty()).then(|| AnsweredStep {
        step: steps.remove(0),
        open_calls,
    });
    let added = if run.has_session() {
        ctx.store.new_message_list(tenant, run.session_id).await?
    } else {
        None
    };
    let is_input = |message: &Arc<Message>| message.tags.step_id.is_none() && message.tags.section.is_messages();
    let input = added.unwrap_or_default().into_iter().filter(is_input).collect();
    Ok(Some(RunMessages {
        record,
        answered,
        input,
        steps,
    }))
}

/// Returns the ids of the calls of a base that wait for answers.
async fn open_calls(ctx: &RunContext, tenant: &TenantId, base: Option<SessionId>) -> Result<Vec<String>, StoreError> {
    let Some(base) = base else { return Ok(Vec::new()) };
    let states = ctx.store.states_load(tenant, base).await?;
    let waiting = states.as_ref().and_then(Bundle::waiting);
    let calls = waiting.into_iter().flat_map(|waiting| &waiting.open_calls);
    Ok(calls.map(|call| call.call_id.clone()).collect())
}

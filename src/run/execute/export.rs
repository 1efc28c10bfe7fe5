//! Exports a run: turns the state and the environment into the commit of the new sessions.
//!
//! Adds results to tool calls that a stop left open, so that every provider accepts the history.

use std::sync::Arc;

use crate::run::plan::RunPlan;
use crate::run::work::{Failure, Work};
use agent::record::RunSummary;
use agent::state::AgentState;
use store::sessions::Commit;
use values::clock::Timestamp;
use values::ids::{BranchId, IdSource, MessageId, RunId};
use values::message::{Message, Role};
use values::session::{Bundle, BundleDraft, ContextState, History, StoredContext, WaitingStep, close_open_tool_calls};
use values::trace_context::TraceContext;

/// Exports the three states of the run, and of each of its subagents, into a commit. The end of the
/// run is missing, so the sessions have no status yet. The creation time of the sessions is the end
/// of the run.
pub(in crate::run) async fn export(
    ids: &dyn IdSource,
    plan: &RunPlan,
    run: &RunSummary,
    state: AgentState,
    work: &Work,
) -> Result<Commit, Failure> {
    let environment = work
        .environment
        .export()
        .await
        .map_err(|error| Failure::export(&error))?;
    let environment = Arc::new(environment);
    let base = plan.base.bundle();
    let RunSummary { run_id, session_id, .. } = *run;
    let at = run.ended_at();
    let children = work.children.take().into_iter().map(|child| BundleDraft {
        session_id: child.session_id,
        parent: None,
        merged_session_id: None,
        environment_session_id: None,
        run_id: Some(run_id),
        run_status: None,
        subagent_of: Some(child.subagent_of),
        agent: child.agent,
        agent_version: Some(child.agent_version),
        environment: child.environment,
        context: exported_context(&child.state, None, run_id, at),
        history: closed_history(ids, child.state.store().history(), at),
        new_branch_id: BranchId::generate(ids),
    });
    let request = plan.request();
    let trace = work.trace.as_ref().and_then(|trace| trace.context());
    let context = own_context(plan, &state, run_id, trace, at);
    let base_id = base.map(|bundle| bundle.head.session_id);
    Ok(Commit {
        tenant: plan.tenant.clone(),
        run: None,
        thread: None,
        conflict: request.conflict,
        environment_from: request.environment_from,
        children: children.collect(),
        draft: BundleDraft {
            session_id,
            parent: base.map(Arc::clone),
            merged_session_id: None,
            environment_session_id: request.environment_from.filter(|from| Some(*from) != base_id),
            run_id: Some(run_id),
            run_status: None,
            subagent_of: None,
            agent: plan.lead.agent.name.clone(),
            agent_version: Some(plan.lead.agent_version),
            environment,
            context,
            history: closed_history(ids, state.store().history(), at),
            new_branch_id: BranchId::generate(ids),
        },
    })
}

/// Adds results to the tool calls that the loop left open, so that every provider accepts the
/// history.
fn closed_history(ids: &dyn IdSource, history: &History, at: Timestamp) -> History {
    let results = close_open_tool_calls(history, "The run ended before this tool was called.");
    if results.is_empty() {
        return history.clone();
    }
    let id = MessageId::generate(ids);
    let tags = history.last().map(|last| last.tags.clone()).unwrap_or_default();
    let message = Message::new(id, Role::Tool, results, at).with_tags(tags);
    history.clone().with_message(Arc::new(message))
}

/// Returns the context of the run's own session.
fn own_context(
    plan: &RunPlan,
    state: &AgentState,
    run_id: RunId,
    trace: Option<TraceContext>,
    at: Timestamp,
) -> ContextState {
    let mut context = exported_context(state, plan.base.bundle(), run_id, at);
    if let Some(waiting) = &mut context.stored.waiting {
        // Only maps with other keys than texts can't be written, and a tool has none.
        let tools = plan.requested_tools.iter().map(serde_json::to_value);
        let waiting = Arc::make_mut(waiting);
        waiting.client_tools = tools.filter_map(Result::ok).collect();
        waiting.trace = trace;
    }
    match &plan.left_settings {
        Some(left) => left.instead_of(&plan.settings, context),
        None => context,
    }
}

/// Returns the open step, with its run and the number of messages of the session that waits.
fn waiting_step(state: &AgentState, run_id: RunId) -> Option<Arc<WaitingStep>> {
    let waiting = state.context().waiting.as_deref()?;
    Some(Arc::new(WaitingStep {
        run_id: Some(run_id),
        message_count: state.store().history().len() as u64,
        ..waiting.clone()
    }))
}

fn exported_context(
    state: &AgentState,
    base: Option<&Arc<Bundle>>,
    run_id: RunId,
    updated_at: Timestamp,
) -> ContextState {
    ContextState {
        stored: StoredContext {
            agent_id: state.agent_id(),
            parent_agent_id: state.parent_agent_id(),
            created_at: state.created_at(),
            model: state.model().cloned(),
            system_prompt: state.context().system_prompt.clone(),
            response_format: state.context().response_format.clone(),
            overrides: state.context().overrides.clone(),
            waiting: waiting_step(state, run_id),
            remembered_approvals: state.context().remembered_approvals.clone(),
            tool_pins: state.context().tool_pins.clone(),
            other: base.map(|bundle| bundle.context.other.clone()).unwrap_or_default(),
            unread: base.map(|bundle| bundle.context.unread.clone()).unwrap_or_default(),
        },
        metadata: state.metadata().clone(),
        execution_count: state.execution_count(),
        updated_at,
    }
}

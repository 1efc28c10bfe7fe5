//! Executes a planned run: restores it, runs its agent loop, exports and publishes the session, and
//! concludes the run.

mod restore;
mod unread;

mod agent_loop;

mod export;
mod publish;
mod webhook;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use self::agent_loop::agent_loop;
use self::export::export;
use self::publish::{Stored, publish, store_outcome, store_record_later};
use self::restore::{Restored, restore};
use self::unread::end_unread;
use crate::run::context::{RunContext, RunSlot};
use crate::run::plan::RunPlan;
use crate::run::spend::of_queued;
use crate::run::subagents::restore_children;
use crate::run::work::{Children, Executed, Failure, LiveEvents, Outcome, ServedTools, Work, with_own_approvals};
use crate::spans::Conversation;
use agent::journal::RecordSize;
use agent::record::{RunRecord, RunSummary};
use agent::state::AgentState;
use agent::{AgentLoop, CallSeed, ExecutionControl, Reservation};
use values::ids::ExecutionId;
use values::tenant::TenantId;

/// Executes the run to its end, or leaves it to another worker. A panic fails the run.
pub(super) async fn execute(ctx: &Arc<RunContext>, plan: &RunPlan, live: &Arc<LiveEvents>) -> Executed {
    let executed = AssertUnwindSafe(execute_or_leave(ctx, plan, live)).catch_unwind().await;
    executed.unwrap_or_else(|_| Executed::Ended(Outcome::failed(live, Failure::panicked())))
}

/// Restores, runs the loop, exports and publishes.
///
/// Each phase is boxed. Otherwise a run would hold the memory of its largest phase, the
/// publication, for as long as the model works.
async fn execute_or_leave(ctx: &Arc<RunContext>, plan: &RunPlan, live: &Arc<LiveEvents>) -> Executed {
    let mut executing = pin!(run_loop(ctx, plan, live));
    let watching = pin!(end_unread(ctx, plan.request().reader_grace, &live.active));
    let executed = tokio::select! {
        biased;
        () = live.active.departed() => {
            // Called before the execution is dropped. It has not ended, so no event may report
            // an end.
            live.leave();
            return Executed::Left;
        }
        executed = &mut executing => executed,
        never = watching => match never {},
    };
    match executed {
        Ok((work, state)) => Box::pin(end(ctx, plan, live, &work, state)).await,
        Err(executed) => executed,
    }
}

/// Restores the run and runs its loop.
async fn run_loop(
    ctx: &Arc<RunContext>,
    plan: &RunPlan,
    live: &Arc<LiveEvents>,
) -> Result<(Arc<Work>, AgentState), Executed> {
    let (restored, work, agent_loop) = Box::pin(begin(ctx, plan, live)).await?;
    let state = run_restored(restored, &agent_loop, plan).await;
    Ok((work, state))
}

/// Runs the loop from the restored state to the end of the execution.
fn run_restored<'a>(restored: Restored, agent_loop: &'a AgentLoop, plan: &'a RunPlan) -> BoxFuture<'a, AgentState> {
    let Restored { state, progress, .. } = restored;
    let input = &plan.accepted.input;
    match (progress, &plan.answered) {
        (Some(progress), _) => Box::pin(agent_loop.resume(progress.state, progress.pending)),
        (None, Some(answered)) => Box::pin(agent_loop.answer(state, input.to_vec(), answered.step.clone())),
        (None, None) => Box::pin(agent_loop.run(state, input.to_vec())),
    }
}

/// Restores the run and creates its loop.
async fn begin(
    ctx: &Arc<RunContext>,
    plan: &RunPlan,
    live: &Arc<LiveEvents>,
) -> Result<(Restored, Arc<Work>, AgentLoop), Executed> {
    let failed = |failure| Executed::Ended(Outcome::failed(live, failure));
    let mut restored = match restore(ctx, plan, live).await {
        Ok(restored) => restored,
        Err(_) if live.active.is_lost() => return Err(Executed::Left),
        Err(failure) => return Err(failed(failure)),
    };
    let work = Arc::new(work(ctx, plan, live, &mut restored).await);
    let execution_id = ExecutionId::from_uuid(live.active.run_id.as_uuid());
    let agent_loop = agent_loop(ctx, &work).map_err(failed)?;
    let agent_loop = agent_loop.with_execution_id(execution_id);
    if let Some(progress) = &restored.progress {
        restore_children(&work, progress).map_err(|error| failed(Failure::progress(&error)))?;
    }
    Ok((restored, work, agent_loop))
}

/// Ends an execution: exports its state and publishes the session.
async fn end(ctx: &RunContext, plan: &RunPlan, live: &Arc<LiveEvents>, work: &Work, state: AgentState) -> Executed {
    // No process of the run outlives it, however it ends.
    work.environment.jobs().stop().await;
    let history = state.store().history();
    let is_held = |id| history.iter().any(|message| message.id == id);
    live.active.inbox.apply_held(is_held);
    // A paused execution continues in another process. After the lease is lost, nothing may be
    // published here.
    if state.has_active_execution() || live.active.is_lost() {
        return Executed::Left;
    }
    let ended = Outcome::of_execution(live, &state);
    if !ended.publishes(&live.active.cancellation) {
        return Executed::Ended(ended.unpublished(&live.active.cancellation));
    }
    match export(&*ctx.ids, plan, &ended.record.summary, state, work).await {
        Ok(commit) => publish(ctx, plan, live, commit, ended).await,
        Err(_) if live.active.is_lost() => Executed::Left,
        Err(failure) => Executed::Ended(ended.failing(failure)),
    }
}

/// Creates the work of the run's own agent, which has no parent agent.
async fn work(ctx: &Arc<RunContext>, plan: &RunPlan, live: &Arc<LiveEvents>, restored: &mut Restored) -> Work {
    let (active, agent) = (&live.active, &plan.lead.agent);
    let state = match &mut restored.progress {
        Some(progress) => &mut progress.state,
        None => &mut restored.state,
    };
    let pins = state.context().tool_pins.clone();
    let served = ServedTools::find(&*ctx.servers, plan, pins, &active.cancellation, &**live).await;
    if !agent.mcp.is_empty() {
        *state = state.clone().with_tool_pins(served.pins().clone());
    }
    let control = ExecutionControl::new(plan.budget.clone(), active.cancellation.clone(), Arc::clone(&ctx.clock))
        .with_stop(active.stop.clone())
        .with_pause(active.pause())
        .with_spent(restored.reached, restored.lost)
        .with_record(RecordSize::new(ctx.settings.max_record_bytes))
        .with_reservation(reservation(ctx, plan, live));
    let slot = ctx.process.subagent_slots.root(&active.tenant);
    if let Some(progress) = &restored.progress {
        control.record().add_progress(progress);
        slot.count_ended(progress);
    }
    let RunSummary {
        run_id,
        session_id,
        started_at,
        ..
    } = live.summary();
    if let Some(trace) = &active.trace {
        let base = plan.base.bundle();
        let root = base.map_or(session_id, |base| base.head.root_session_id);
        trace.set_conversation(Conversation(root.to_string()));
        if let Some(answered) = plan.answered.as_ref().and_then(|answered| answered.trace.as_ref()) {
            trace.link(answered);
        }
    }
    let control = Arc::new(control.with_beginning(started_at.filter(|_| live.is_resumed())));
    let _ = active.spending.set(Arc::clone(&control));
    Work {
        tenant: active.tenant.clone(),
        member: Arc::clone(&plan.lead),
        tools: plan.tools.clone(),
        client_tools: Arc::clone(&plan.client_tools),
        traces: plan.request().traces.unwrap_or(agent.traces),
        served,
        approvals: with_own_approvals(&[], agent),
        hooks: agent.hooks.clone(),
        session_id,
        depth_left: agent.max_depth,
        step_ceiling: plan.step_ceiling,
        control,
        events: Arc::clone(live) as _,
        trace: active.trace.clone(),
        relay: plan.request().events.subagents.then(|| Arc::clone(live) as _),
        depth: 0,
        environment: Arc::clone(&restored.environment),
        team: Arc::clone(&plan.team),
        slot,
        children: Children::default(),
        formats: Arc::clone(&plan.formats),
        call_seed: CallSeed::of_run(run_id),
        journal: restored.journal.take(),
        inbox: Some(Arc::clone(&active.inbox) as _),
    }
}

/// Returns what the run has reserved, or for a queued run, will reserve.
fn reservation(ctx: &Arc<RunContext>, plan: &RunPlan, live: &LiveEvents) -> Option<Arc<Reservation>> {
    let active = &live.active;
    if active.held_lease.is_some()
        && let Some(reservation) = of_queued(ctx, plan.spend_terms(), &live.summary())
    {
        let _ = active.reservation.set(reservation);
    }
    active.reservation.get().cloned()
}

/// Ends the run: stores its record unless the commit did, updates the board, notifies followers
/// and the caller, and logs the end. Returns `false` for a run that this process leaves to
/// another worker.
pub(super) async fn conclude(
    ctx: &RunContext,
    live: &LiveEvents,
    executed: Executed,
    slot: &mut Option<RunSlot>,
) -> bool {
    let stored = match executed {
        Executed::Ended(outcome) => store_outcome(ctx, live, outcome).await,
        Executed::Left => Stored::ByOtherWorker,
    };
    let Stored::Here { outcome, is_stored } = stored else {
        return false;
    };
    let record = Arc::new(outcome.record);
    log_end(&live.active.tenant, &record);
    live.end(&record, slot.take());
    if !is_stored {
        store_record_later(ctx, live, &record, &outcome.steps).await;
    }
    if live.active.webhook.is_some() {
        ctx.outbox.notify_one();
    }
    ctx.board.run_close(&live.active.tenant, record.summary.run_id);
    true
}

fn log_end(tenant: &TenantId, record: &RunRecord) {
    let summary = &record.summary;
    tracing::info!(
        run_id = %summary.run_id,
        session_id = %summary.session_id,
        %tenant,
        agent = summary.agent,
        model = %summary.model,
        status = %summary.status,
        steps = summary.step_count,
        total_tokens = summary.usage.total_tokens,
        error = summary.error.as_ref().map(|error| error.code.as_str()),
        "run ended"
    );
}

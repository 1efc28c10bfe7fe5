//! Starts a run: the path of a request, from its arrival to the end of its run.
//!
//! ```text
//! start     plan (agent, base bundle, model, tools) ─┬─ a light slot, open (run_id, session_id, board) ─▶ handle
//!                                                    └─ accept (the queue) ─▶ handle      … a worker leases it
//! execute   restore (state, environment, progress) ─ agent loop ─ export ─ publish (one transaction)
//! conclude  terminal event, result, board, log
//! ```
//!
//! The plan makes all checks of the request itself. All other refusals depend on the state of the
//! service: no free slot, a full queue, or another run on the base or the thread. They come before
//! the run begins. `queue/attempt.rs` executes a queued run with the same functions.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::accept::{accept, replay};
use super::context::{ActiveRun, Recording, RunContext, RunSlot};
use super::execute::{conclude, execute};
use super::handle::{OnDeparture, ResultSource, RunHandle};
use super::plan::{RunPlan, begun_summary, plan, refuse_continued};
use super::refusal::Refusal;
use super::request::RunRequest;
use super::spend;
use super::work::{LiveEvents, run_span, run_trace};
use agent::record::RunStatus;
use board::LiveRun;
use store::sessions::ConflictPolicy;
use values::tenant::TenantId;

/// Begins a run, or puts it into the queue if it must outlive this process.
///
/// The run continues on its own. A dropped handle counts as the disconnection of its caller. So
/// does a future that is dropped before it resolves, if the run has already begun.
pub async fn start(ctx: &Arc<RunContext>, tenant: TenantId, request: RunRequest) -> Result<RunHandle, Refusal> {
    if let Some(key) = &request.idempotency
        && let Some(handle) = replay(ctx, &tenant, key).await?
    {
        return Ok(handle);
    }
    start_new(ctx, tenant, request).await
}

/// Starts the run of a request whose idempotency key, if any, was looked up already.
pub async fn start_new(ctx: &Arc<RunContext>, tenant: TenantId, request: RunRequest) -> Result<RunHandle, Refusal> {
    let reserved = if request.asks_for_queue() {
        None
    } else {
        Some(ctx.process.light_slots.reserve(&tenant).await)
    };
    // Boxed, so that the large future of the plan is freed while the run is active.
    let plan = Box::pin(plan(ctx, &tenant, request)).await?;
    // Only the plan shows whether the agent requires a queued run. A queued run needs no slot here.
    let Some(reserved) = reserved.filter(|_| !plan.is_queued()) else {
        return accept(ctx, plan).await;
    };
    let slot = reserved.map_err(|permit| permit.refusal)?;
    let (handle, live) = open(ctx, &plan).await?;
    // Boxed, since the runtime copies the future of a task when the task changes its stage.
    let span = live.active.span.clone();
    let executing = Box::pin(execute_light(Arc::clone(ctx), plan, live, slot).instrument(span));
    ctx.process.tasks.runs.spawn(executing);
    Ok(handle)
}

/// Reserves the ids of the run and its session, and shows the run on the board.
async fn open(ctx: &Arc<RunContext>, plan: &RunPlan) -> Result<(RunHandle, Arc<LiveEvents>), Refusal> {
    let (process, request) = (&ctx.process, plan.request());
    let exclusive = request.conflict == ConflictPolicy::Reject;
    if exclusive {
        refuse_continued(&*ctx.store, &plan.tenant, &plan.base).await?;
    }
    let summary = begun_summary(ctx, plan, RunStatus::Running);
    let reservation = spend::begin(ctx, plan.spend_terms(), &summary).await?;
    let run = LiveRun::begun(summary.clone()).with_echo(request.echo.clone());
    let opening = ctx.board.run_open(&plan.tenant, Arc::new(run.clone()), exclusive);
    if let Err(rival) = opening.await {
        if reservation.is_some() {
            ctx.store.spend_release(&plan.tenant, summary.run_id).await?;
        }
        return Err(Refusal::Conflict { run_id: Some(rival) });
    }
    let origin = request.origin.as_ref();
    let active = ActiveRun::new(
        plan.tenant.clone(),
        summary.run_id,
        &process.tasks.cancellation,
        request.webhook.clone(),
        None,
        Recording {
            span: run_span(&plan.tenant, summary.run_id, summary.attempts, origin),
            trace: run_trace(ctx, &plan.tenant, &summary, origin),
        },
    );
    if let Some(reservation) = reservation {
        let _ = active.reservation.set(reservation);
    }
    let at_work = process.active.add(&active);
    let end = |control| OnDeparture::EndHere(Arc::clone(&active), control);
    let departure = OnDeparture::of(request, end);
    let (sender, result) = oneshot::channel();
    let handle = RunHandle::new(ctx, &plan.tenant, summary, departure);
    let live = LiveEvents::new(ctx, active, at_work, run)
        .keeping(plan.accepted.retained_input())
        .with_result(Some(sender));
    Ok((handle.with_result(ResultSource::Task(result)), Arc::new(live)))
}

/// Executes a light run to its end. Emits exactly one terminal event and one result, also after a
/// panic.
async fn execute_light(ctx: Arc<RunContext>, plan: RunPlan, live: Arc<LiveEvents>, slot: RunSlot) {
    let mut slot = Some(slot);
    live.emit_started();
    let executed = execute(&ctx, &plan, &live).await;
    // Only a queued run can be left to another worker, so this light run has ended.
    Box::pin(conclude(&ctx, &live, executed, &mut slot)).await;
}

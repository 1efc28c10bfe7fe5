//! Accepts a run into the queue. An accepted run survives the loss of this process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::context::{OpenSlot, RunContext, stored_key};
use super::control::interrupt;
use super::handle::{OnDeparture, ResultSource, RunHandle};
use super::plan::{RunPlan, begun_summary, refuse_continued};
use super::queue::{AcceptedHere, attempt};
use super::read::run_wait;
use super::refusal::Refusal;
use super::request::RequestKey;
use super::settings::PriorityScope;
use super::spend;
use agent::record::{RunMode, RunStatus};
use store::queue::{Acceptance, IfBusy, KnownRequest, Lease, LeasedRun, NewQueuedRun, StoredRequest};
use store::sessions::ConflictPolicy;
use values::clock::Timestamp;
use values::ids::RunId;
use values::tenant::TenantId;

/// When a caller may retry after a full queue.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Puts a run into the queue. If its caller waits and this process has a free slot, starts the run
/// at once.
///
/// If the caller disconnects meanwhile, the run is accepted anyway and its handle is dropped.
pub(super) async fn accept(ctx: &Arc<RunContext>, plan: RunPlan) -> Result<RunHandle, Refusal> {
    let accepting = accept_plan(Arc::clone(ctx), plan).in_current_span();
    let accepting = ctx.process.tasks.runs.spawn(Box::pin(accepting));
    accepting.await.unwrap_or(Err(Refusal::ShuttingDown))
}

async fn accept_plan(ctx: Arc<RunContext>, plan: RunPlan) -> Result<RunHandle, Refusal> {
    let process = &ctx.process;
    if process.tasks.closing.is_cancelled() {
        return Err(Refusal::ShuttingDown);
    }
    let limit = ctx.queue.max_waiting;
    if process.queue_length.has_reached(limit, &*ctx.store).await? {
        let retry_after = RETRY_AFTER;
        return Err(Refusal::QueueFull { limit, retry_after });
    }
    if plan.request().conflict == ConflictPolicy::Reject {
        refuse_continued(&*ctx.store, &plan.tenant, &plan.base).await?;
    }
    let slot = slot_for(&ctx, &plan);
    let status = if slot.is_some() {
        RunStatus::Running
    } else {
        RunStatus::Queued
    };
    let run = new_queued_run(&ctx, &plan, status)?;
    spend::check(&ctx, plan.spend_terms(), &run.summary).await?;
    match ctx.store.run_accept(&run).await? {
        Acceptance::Accepted { lease, interrupted } => {
            if lease.is_none() {
                process.queue_length.add();
                // A worker of this process may have begun the run already.
                if process.active.find(&plan.tenant, run.summary.run_id).is_none() {
                    ctx.publish_queued(&plan.tenant, &run.summary);
                }
            }
            let answering = run
                .answer
                .map(|answer| (plan.tenant.clone(), answer.run_id, run.summary.run_id));
            if let Some(interrupted) = interrupted {
                interrupt(&ctx, &plan.tenant, interrupted);
            }
            let handle = RunHandle::new(&ctx, &plan.tenant, run.summary.clone(), departure(&plan));
            let handle = match (lease, run.lease, slot) {
                (Some(lease), Some(terms), Some(slot)) => {
                    handle.with_result(begin_at_once(&ctx, plan, run, (lease, terms.until), slot))
                }
                _ => handle,
            };
            // Last, since it asks the store.
            if let Some((tenant, other, by)) = answering {
                ctx.publish_answered(&tenant, other, by).await;
            }
            Ok(handle)
        }
        Acceptance::Known(known) => known_run(&ctx, &plan.tenant, plan.request().idempotency.as_ref(), known).await,
        Acceptance::TenantFull => Err(Refusal::TenantQueueFull {
            limit: run.max_waiting.unwrap_or_default(),
            retry_after: RETRY_AFTER,
        }),
        Acceptance::ThreadBusy(run_id) => Err(Refusal::ThreadBusy { run_id }),
        Acceptance::Answered(by) => Err(Refusal::Answered { by }),
        Acceptance::MissingBase(session_id) => Err(Refusal::UnknownSession {
            session_id,
            of_run: None,
        }),
    }
}

/// Takes a slot for a run whose caller waits for it, if one is free.
fn slot_for(ctx: &RunContext, plan: &RunPlan) -> Option<OpenSlot> {
    let waits = plan.request().mode != RunMode::Async;
    waits.then(|| ctx.process.queue_slots.try_take()).flatten()
}

fn new_queued_run(ctx: &RunContext, plan: &RunPlan, status: RunStatus) -> Result<NewQueuedRun, Refusal> {
    let (json, request) = (plan.accepted.to_json(), plan.request());
    let ranks_tenants = ctx.queue.priority == PriorityScope::Global;
    Ok(NewQueuedRun {
        tenant: plan.tenant.clone(),
        summary: begun_summary(ctx, plan, status),
        echo: request.echo.clone(),
        request: json.map_err(|error| Refusal::invalid("input", error.to_string()))?,
        priority: request.priority,
        level: if ranks_tenants { request.priority } else { 0 },
        max_waiting: ctx.limits.of(&plan.tenant).queued_runs,
        if_busy: request.if_busy,
        chooses_base: request.thread_from.is_some(),
        answer: plan.answer(),
        idempotency: request.idempotency.as_ref().map(|key| stored_key(ctx, key)),
        lease: (status == RunStatus::Running).then(|| ctx.process.leases.terms()),
    })
}

fn begin_at_once(
    ctx: &Arc<RunContext>,
    plan: RunPlan,
    run: NewQueuedRun,
    (lease, until): (Lease, Timestamp),
    slot: OpenSlot,
) -> ResultSource {
    let (caller, result) = oneshot::channel();
    let leased = LeasedRun {
        lease,
        summary: run.summary,
        request: StoredRequest::new(run.request),
        control: None,
        moves_thread: run.if_busy != IfBusy::Fork,
        is_taken_over: false,
    };
    let plan = Box::new(plan);
    let accepted = AcceptedHere { plan, caller };
    let attempting = attempt(Arc::clone(ctx), leased, until, Some(accepted), Some(slot.begin()));
    ctx.process.tasks.runs.spawn(Box::pin(attempting));
    ResultSource::TaskOrStore(result)
}

/// Finds the run of an earlier request with the key, before a repeated request is checked.
pub async fn replay(ctx: &Arc<RunContext>, tenant: &TenantId, key: &RequestKey) -> Result<Option<RunHandle>, Refusal> {
    let now = ctx.process.leases.now();
    match ctx.store.idempotency_lookup(tenant, &key.key, now).await? {
        Some(known) => known_run(ctx, tenant, Some(key), known).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the run of the first request to a repeated one.
async fn known_run(
    ctx: &Arc<RunContext>,
    tenant: &TenantId,
    key: Option<&RequestKey>,
    known: KnownRequest,
) -> Result<RunHandle, Refusal> {
    let run_id = RunId::from_uuid(known.resource_id);
    key.map_or(Ok(()), |key| key.check(known.digest))?;
    let run = run_wait(ctx, tenant, run_id, Duration::ZERO).await?;
    let record = run.ok_or(Refusal::UnknownRun { run_id, session: None })?;
    let handle = RunHandle::new(ctx, tenant, record.summary.clone(), OnDeparture::GoOn);
    Ok(handle.replayed(record))
}

/// Returns the effect of a disconnection. An asynchronous run has no caller that could disconnect.
fn departure(plan: &RunPlan) -> OnDeparture {
    if plan.request().mode == RunMode::Async {
        return OnDeparture::GoOn;
    }
    OnDeparture::of(plan.request(), OnDeparture::EndAnywhere)
}

//! One worker's attempt at one queued run.
//!
//! The attempt plans the run again as it was accepted. Then it executes and concludes it like every
//! run. Its events continue after the events of earlier workers, whose usage still counts.

use std::error::Error;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::earlier::{persist_earlier_events, spent_before};
use super::progress::persist;
use super::renewal::deliver_messages;
use crate::run::RequestOrigin;
use crate::run::context::{ActiveRun, HeldLease, Recording, RunContext, RunSlot};
use crate::run::execute::{conclude, execute};
use crate::run::plan::{AcceptedRequest, Base, RunPlan, plan_again};
use crate::run::refusal::Refusal;
use crate::run::work::{Executed, Failure, LiveEvents, Outcome, record_origin, run_span, run_trace};
use agent::record::{RunControl, RunRecord};
use board::LiveRun;
use store::StoreError;
use store::queue::{Lease, LeasedRun, UNREADABLE_ATTEMPTS, UnreadableRequest};
use values::clock::Timestamp;
use values::ids::RunId;

/// Executes a leased run until it has ended or is left to another worker.
pub(in crate::run) async fn attempt(
    ctx: Arc<RunContext>,
    leased: LeasedRun,
    until: Timestamp,
    accepted: Option<AcceptedHere>,
    slot: Option<RunSlot>,
) {
    let (lease, attempt) = (&leased.lease, leased.summary.attempts);
    let span = run_span(&lease.tenant, lease.run_id, attempt, None);
    attempt_leased(&ctx, leased, until, accepted, slot)
        .instrument(span)
        .await;
}

async fn attempt_leased(
    ctx: &Arc<RunContext>,
    leased: LeasedRun,
    until: Timestamp,
    accepted: Option<AcceptedHere>,
    mut slot: Option<RunSlot>,
) {
    // A cancelled run can still end during the shutdown.
    if ctx.process.tasks.closing.is_cancelled() && leased.control != Some(RunControl::Cancel) {
        release(ctx, &leased.lease).await;
        return;
    }
    let (plan, caller) = accepted.map(|accepted| (accepted.plan, accepted.caller)).unzip();
    let planned = if let Some(plan) = plan {
        Ok(Planned::Before(plan))
    } else {
        // No task watches the lease yet, so the lease bounds this step.
        let expires = ctx.process.leases.instant_of(until);
        let reading = AcceptedRequest::read(&leased.lease.tenant, &leased.request);
        let Ok(accepted) = timeout_at(expires, reading).await else {
            release(ctx, &leased.lease).await;
            return;
        };
        accepted.map(|accepted| Planned::Now(Box::new(accepted)))
    };
    if let Some(origin) = planned.as_ref().ok().and_then(Planned::origin) {
        record_origin(origin);
    }
    if let Err(error) = &planned
        && leaves_unreadable(ctx, &leased, error).await
    {
        return;
    }
    let accepted = planned.as_ref().ok().map(Planned::accepted);
    let live = match take_up(ctx, &leased, until, accepted).await {
        Ok(live) => Arc::new(live.with_result(caller)),
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "a run can't be taken up");
            let_go_of(ctx, &leased.lease).await;
            return;
        }
    };
    let executed = plan_and_execute(ctx, &leased, planned, &live).await;
    if !Box::pin(conclude(ctx, &live, executed, &mut slot)).await {
        leave(ctx, &live).await;
    }
}

/// Returns whether to leave a run with an unreadable request to other workers. If a newer
/// version stored it, there is no limit of attempts. Otherwise the run fails after some
/// attempts. A cancelled run is not left.
async fn leaves_unreadable(ctx: &RunContext, leased: &LeasedRun, error: &UnreadableRequest) -> bool {
    if leased.control == Some(RunControl::Cancel) {
        return false;
    }
    let attempts = leased.summary.attempts;
    if matches!(error, UnreadableRequest::Newer(_)) {
        tracing::warn!(
            error = error as &dyn Error,
            "a run is left to a newer version of agent-runtime"
        );
        let until = ctx.process.leases.terms().until;
        if let Err(error) = ctx.store.lease_defer(&leased.lease, until).await {
            tracing::warn!(error = &error as &dyn Error, "a run is left until its lease expires");
        }
        return true;
    }
    let is_left = attempts < UNREADABLE_ATTEMPTS;
    if is_left {
        tracing::warn!(
            attempts,
            error = error as &dyn Error,
            "what was asked of a run can't be read; it is tried again"
        );
    }
    is_left
}

/// Registers the run as active in this process. Its events continue after the events of earlier
/// workers.
async fn take_up(
    ctx: &Arc<RunContext>,
    leased: &LeasedRun,
    until: Timestamp,
    accepted: Option<&AcceptedRequest>,
) -> Result<LiveEvents, StoreError> {
    let expires = ctx.process.leases.instant_of(until);
    let lease = leased.lease.clone();
    let (tenant, run_id) = (lease.tenant.clone(), lease.run_id);
    if leased.is_taken_over {
        tracing::warn!(
            attempts = leased.summary.attempts,
            "a run is taken over: its worker did not renew the lease"
        );
    }
    // No task watches the lease yet, so the lease bounds this step.
    let earlier = timeout_at(expires, persist_earlier_events(ctx, leased)).await;
    let last = earlier.unwrap_or_else(|elapsed| Err(StoreError::late("persist earlier events", elapsed)))?;
    let request = accepted.map(|accepted| &accepted.request);
    let echo = request.and_then(|request| request.echo.clone());
    let origin = request.and_then(|request| request.origin.as_ref());
    let run = LiveRun::begun(leased.summary.clone())
        .with_echo(echo)
        .leased(lease.fence);
    let held = HeldLease::new(
        lease,
        leased.moves_thread,
        expires,
        leased.summary.usage,
        &ctx.process.tasks.handover,
        ctx.metrics.clone(),
    );
    let active = ActiveRun::new(
        tenant.clone(),
        run_id,
        &CancellationToken::new(),
        request.and_then(|request| request.webhook.clone()),
        Some(held),
        Recording {
            span: Span::current(),
            trace: run_trace(ctx, &tenant, &leased.summary, origin),
        },
    );
    if let Some(control) = leased.control {
        active.control(control);
    }
    let at_work = ctx.process.active.add(&active);
    // Opens the run only after an earlier attempt of this process has lost it. Later events of
    // that attempt must not enter this attempt's log.
    let opening = ctx.board.run_open(&tenant, Arc::new(run.clone()), false);
    // Never fails, since only an exclusive run can conflict with others.
    let _ = opening.await;
    let input = accepted.map(AcceptedRequest::retained_input).unwrap_or_default();
    if let Some(metrics) = ctx.metrics.as_ref().filter(|_| leased.is_taken_over) {
        metrics.runs.taken_over();
    }
    Ok(LiveEvents::new(ctx, active, at_work, run)
        .keeping(input)
        .following(last, leased.is_taken_over))
}

/// Executes the run. Plans it again first, unless it was just accepted here.
async fn plan_and_execute(
    ctx: &Arc<RunContext>,
    leased: &LeasedRun,
    planned: Result<Planned, UnreadableRequest>,
    live: &Arc<LiveEvents>,
) -> Executed {
    live.emit_started();
    let failed = |failure: Failure| Executed::Ended(Outcome::failed(live, failure));
    if leased.control == Some(RunControl::Cancel) {
        return Executed::Ended(Outcome::cancelled(live).after(&spent_before(ctx, leased).await));
    }
    let planned = match planned {
        Ok(planned) => planned,
        Err(error) => return failed(Failure::unusable(&error)),
    };
    if leased.summary.attempts > ctx.queue.max_attempts {
        // This worker does not begin the run, so its attempt does not count.
        let begun = leased.summary.attempts - 1;
        let exhausted = Outcome::failed(live, Failure::exhausted(begun));
        let mut outcome = exhausted.after(&spent_before(ctx, leased).await);
        outcome.record.summary.attempts = begun;
        return Executed::Ended(outcome);
    }
    let plan = match planned {
        Planned::Before(plan) => plan,
        Planned::Now(accepted) => match Box::pin(plan_again(
            ctx,
            &leased.lease.tenant,
            *accepted,
            leased.summary.base_session_id,
            leased.summary.durability,
        ))
        .await
        {
            Ok(plan) => match answer_calls(ctx, leased, &plan).await {
                Ok(None) => Box::new(plan),
                Ok(Some(by)) => return failed(Failure::refused(&Refusal::Answered { by })),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "a run can't mark open calls as answered now"
                    );
                    return Executed::Left;
                }
            },
            Err(Refusal::Store(error)) if error.is_transient() => {
                tracing::warn!(error = &error as &dyn Error, "a run can't be planned now");
                return Executed::Left;
            }
            Err(_) if live.active.is_lost() => return Executed::Left,
            Err(refusal) => return failed(Failure::refused(&refusal)),
        },
    };
    if let Base::Unreadable(_, error) = &plan.base
        && error.is_transient()
    {
        tracing::warn!(error = error as &dyn Error, "what a run continues can't be read now");
        return Executed::Left;
    }
    deliver_messages(ctx, std::slice::from_ref(&live.active)).await;
    if let Some(metrics) = ctx.metrics.as_ref().filter(|_| leased.lease.is_first()) {
        metrics.runs.began(ctx.clock.now() - leased.summary.created_at);
    }
    execute(ctx, &plan, live).await
}

/// Marks the calls that the run answers, since only now it is known that the base has some.
/// Does nothing for a run that marked them when it was accepted. Returns the run that was
/// faster.
async fn answer_calls(ctx: &RunContext, leased: &LeasedRun, plan: &RunPlan) -> Result<Option<RunId>, StoreError> {
    let Some(answer) = plan.answer() else { return Ok(None) };
    let Lease { tenant, run_id, .. } = &leased.lease;
    let rival = ctx.store.run_answer(tenant, answer.run_id, *run_id).await?;
    if rival.is_none() {
        ctx.publish_answered(tenant, answer.run_id, *run_id).await;
    }
    Ok(rival.filter(|_| !answer.is_fork))
}

/// Leaves a run that this process does not end to another worker.
async fn leave(ctx: &RunContext, live: &LiveEvents) {
    let active = &live.active;
    live.leave();
    let Some(lease) = active.lease().filter(|_| !active.is_lost()) else {
        return;
    };
    persist(ctx, active).await;
    if let_go_of(ctx, lease).await {
        ctx.publish_queued(&active.tenant, &live.summary());
    }
}

/// Gives up a lease. At shutdown, releases it, so that another process may lease the run at
/// once. Otherwise lets it expire, so that a failing run is not retried without a pause. Returns
/// whether the run waits in the queue again.
async fn let_go_of(ctx: &RunContext, lease: &Lease) -> bool {
    if ctx.process.tasks.closing.is_cancelled() {
        release(ctx, lease).await
    } else {
        tracing::warn!("a run is left until its lease expires");
        false
    }
}

/// Releases a run to the queue, as if it had not been leased. Returns whether it waits there.
async fn release(ctx: &RunContext, lease: &Lease) -> bool {
    match ctx.store.lease_release(lease).await {
        Ok(true) => {
            tracing::info!("a run is handed back to the queue");
            true
        }
        Ok(false) => {
            tracing::info!("another worker has a run that was to be handed back");
            false
        }
        Err(error) => {
            // Another worker takes the run over when the lease expires.
            tracing::warn!(error = &error as &dyn Error, "a run can't be handed back");
            false
        }
    }
}

/// A run that was just accepted here, and begins at once.
#[derive(Debug)]
pub(in crate::run) struct AcceptedHere {
    pub(in crate::run) plan: Box<RunPlan>,
    /// Receives the result.
    pub(in crate::run) caller: oneshot::Sender<Arc<RunRecord>>,
}

/// The input of an attempt.
enum Planned {
    /// The plan of a run that was just accepted here.
    Before(Box<RunPlan>),
    /// The request of a run that was accepted earlier or by another process.
    Now(Box<AcceptedRequest>),
}

impl Planned {
    fn origin(&self) -> Option<&RequestOrigin> {
        self.accepted().request.origin.as_ref()
    }

    fn accepted(&self) -> &AcceptedRequest {
        match self {
            Self::Before(plan) => &plan.accepted,
            Self::Now(accepted) => accepted,
        }
    }
}

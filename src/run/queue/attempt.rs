//! One worker's attempt at one queued run.
//!
//! The attempt plans the run again as it was accepted. Then it performs and concludes it like every
//! run. Its events continue after those of earlier workers. The usage of earlier workers still
//! counts.

use std::error::Error;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::leases::Leases;
use super::progress::ProgressWriter;
use super::renewal::LeaseRenewal;
use super::request::AcceptedRequest;
use crate::run::active::{ActiveRun, ActiveRuns, HeldLease};
use crate::run::base::Base;
use crate::run::error::Refusal;
use crate::run::executor::Executor;
use crate::run::failure::Failure;
use crate::run::live::LiveEvents;
use crate::run::outcome::{Outcome, Performed};
use crate::run::plan::{Planner, RunPlan};
use crate::run::request::RunRequest;
use crate::run::run_slots::RunSlot;
use crate::run::span::{record_request, run_span};
use crate::run::tasks::RunTasks;
use agent::RunWebhook;
use agent::record::{RunControl, RunRecord};
use board::{Board, LiveRun};
use store::queue::{Lease, LeasedRun, UNREADABLE_ATTEMPTS, UnreadableRequest};
use store::{Store, StoreError};
use values::clock::{Clock, Timestamp};
use values::ids::RunId;

/// Makes attempts at queued runs.
#[derive(Debug)]
pub struct Attempts {
    /// Plans a run again as it was accepted.
    pub planner: Arc<Planner>,
    /// Executes runs.
    pub executor: Arc<Executor>,
    /// Provides the terms on which runs are leased.
    pub leases: Arc<Leases>,
    /// Delivers messages to runs.
    pub renewal: Arc<LeaseRenewal>,
    /// Persists the progress of a run before it is left.
    pub progress: Arc<ProgressWriter>,
    /// Stores the queue.
    pub store: Arc<dyn Store>,
    /// Shows live runs.
    pub board: Arc<Board>,
    /// The active runs of this process.
    pub active: Arc<ActiveRuns>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Tells when no more runs may begin.
    pub tasks: RunTasks,
    /// The most attempts at a run. It fails if none of them ends it.
    pub max_attempts: u32,
}

impl Attempts {
    /// Executes a leased run until it has ended or is left to another worker.
    pub(in crate::run) async fn make(
        self: Arc<Self>,
        leased: LeasedRun,
        until: Timestamp,
        accepted: Option<AcceptedHere>,
        slot: Option<RunSlot>,
    ) {
        let (lease, attempt) = (&leased.lease, leased.summary.attempts);
        let span = run_span(&lease.tenant, lease.run_id, attempt, None);
        self.attempt(leased, until, accepted, slot).instrument(span).await;
    }

    async fn attempt(
        &self,
        leased: LeasedRun,
        until: Timestamp,
        accepted: Option<AcceptedHere>,
        mut slot: Option<RunSlot>,
    ) {
        // A cancelled run can still end during the shutdown.
        if self.tasks.closing.is_cancelled() && leased.control != Some(RunControl::Cancel) {
            return self.release(&leased.lease).await;
        }
        let (plan, caller) = accepted.map(|accepted| (accepted.plan, accepted.caller)).unzip();
        let planned = if let Some(plan) = plan {
            Ok(Planned::Before(plan))
        } else {
            // No task watches the lease yet, so the lease bounds this step.
            let expires = self.leases.instant_of(until);
            let reading = AcceptedRequest::read(&leased.lease.tenant, &leased.request);
            let Ok(accepted) = timeout_at(expires, reading).await else {
                return self.release(&leased.lease).await;
            };
            accepted.map(|accepted| Planned::Now(Box::new(accepted)))
        };
        if let Some(request_id) = planned.as_ref().ok().and_then(Planned::request_id) {
            record_request(request_id);
        }
        if let Err(error) = &planned
            && self.leaves_unreadable(&leased, error).await
        {
            return;
        }
        let webhook = planned.as_ref().ok().and_then(Planned::webhook);
        let live = match self.take_up(&leased, until, webhook).await {
            Ok(live) => Arc::new(live.with_result(caller)),
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "a run can't be taken up");
                return self.let_go_of(&leased.lease).await;
            }
        };
        let performed = self.work_on(&leased, planned, &live).await;
        if !Box::pin(self.executor.conclude(&live, performed, &mut slot)).await {
            self.leave(&live).await;
        }
    }

    /// Returns whether to leave a run with an unreadable request to other workers. If a newer
    /// version stored it, there is no limit of attempts. Otherwise the run fails after some
    /// attempts. A cancelled run is not left.
    async fn leaves_unreadable(&self, leased: &LeasedRun, error: &UnreadableRequest) -> bool {
        if leased.control == Some(RunControl::Cancel) {
            return false;
        }
        let attempts = leased.summary.attempts;
        if matches!(error, UnreadableRequest::Newer(_)) {
            tracing::warn!(
                error = error as &dyn Error,
                "a run is left to a newer version of agent-runtime"
            );
            let until = self.leases.terms().until;
            if let Err(error) = self.store.lease_defer(&leased.lease, until).await {
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

    /// Registers the run as active in this process. Its events continue after those of earlier
    /// workers.
    async fn take_up(
        &self,
        leased: &LeasedRun,
        until: Timestamp,
        webhook: Option<RunWebhook>,
    ) -> Result<LiveEvents, StoreError> {
        let expires = self.leases.instant_of(until);
        let lease = leased.lease.clone();
        let (tenant, run_id) = (lease.tenant.clone(), lease.run_id);
        if leased.is_taken_over {
            tracing::warn!(
                attempts = leased.summary.attempts,
                "a run is taken over: its worker did not renew the lease"
            );
        }
        // No task watches the lease yet, so the lease bounds this step.
        let earlier = timeout_at(expires, self.persist_earlier_events(leased)).await;
        let last = earlier.unwrap_or_else(|elapsed| Err(StoreError::late("persist earlier events", elapsed)))?;
        let run = LiveRun::begun(leased.summary.clone()).leased(lease.fence);
        let held = HeldLease::new(
            lease,
            leased.moves_thread,
            expires,
            leased.summary.usage,
            &self.tasks.handover,
        );
        let active = ActiveRun::new(
            tenant.clone(),
            run_id,
            &CancellationToken::new(),
            webhook,
            Some(held),
            Span::current(),
        );
        if let Some(control) = leased.control {
            active.control(control);
        }
        let at_work = self.active.add(&active);
        // Opens the run only after an earlier attempt of this process has lost it. Later events of
        // that attempt must not enter this attempt's log.
        let opening = self.board.run_open(&tenant, Arc::new(run.clone()), false);
        // Never fails, since only an exclusive run can conflict with others.
        let _ = opening.await;
        let (board, clock) = (Arc::clone(&self.board), Arc::clone(&self.clock));
        Ok(LiveEvents::new(active, at_work, run, board, clock).following(last, leased.is_taken_over))
    }

    /// Performs the run. Plans it again first, unless it was just accepted here.
    async fn work_on(
        &self,
        leased: &LeasedRun,
        planned: Result<Planned, UnreadableRequest>,
        live: &Arc<LiveEvents>,
    ) -> Performed {
        live.emit_started();
        let failed = |failure: Failure| Performed::Ended(Outcome::failed(live, failure));
        if leased.control == Some(RunControl::Cancel) {
            return Performed::Ended(Outcome::cancelled(live).after(&self.spent_before(leased).await));
        }
        let planned = match planned {
            Ok(planned) => planned,
            Err(error) => return failed(Failure::unusable(&error)),
        };
        if leased.summary.attempts > self.max_attempts {
            // This worker does not begin the run, so its attempt does not count.
            let begun = leased.summary.attempts - 1;
            let exhausted = Outcome::failed(live, Failure::exhausted(begun));
            let mut outcome = exhausted.after(&self.spent_before(leased).await);
            outcome.record.summary.attempts = begun;
            return Performed::Ended(outcome);
        }
        let plan = match planned {
            Planned::Before(plan) => plan,
            Planned::Now(accepted) => match Box::pin(self.planner.plan_again(
                &leased.lease.tenant,
                *accepted,
                leased.summary.base_session_id,
                leased.summary.durability,
            ))
            .await
            {
                Ok(plan) => match self.answer_calls(leased, &plan).await {
                    Ok(None) => Box::new(plan),
                    Ok(Some(by)) => return failed(Failure::refused(&Refusal::Answered { by })),
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn Error,
                            "a run can't mark open calls as answered now"
                        );
                        return Performed::Left;
                    }
                },
                Err(Refusal::Store(error)) if error.is_transient() => {
                    tracing::warn!(error = &error as &dyn Error, "a run can't be planned now");
                    return Performed::Left;
                }
                Err(_) if live.active.is_lost() => return Performed::Left,
                Err(refusal) => return failed(Failure::refused(&refusal)),
            },
        };
        if let Base::Unreadable(_, error) = &plan.base
            && error.is_transient()
        {
            tracing::warn!(error = error as &dyn Error, "what a run continues can't be read now");
            return Performed::Left;
        }
        self.renewal.deliver_messages(std::slice::from_ref(&live.active)).await;
        self.executor.perform_safely(&plan, live).await
    }

    /// Marks the calls that the run answers, since only now it is known that the base has some.
    /// Does nothing for a run that marked them when it was accepted. Returns the run that was
    /// faster.
    async fn answer_calls(&self, leased: &LeasedRun, plan: &RunPlan) -> Result<Option<RunId>, StoreError> {
        let Some(answer) = plan.answer() else { return Ok(None) };
        let Lease { tenant, run_id, .. } = &leased.lease;
        let rival = self.store.run_answer(tenant, answer.run_id, *run_id).await?;
        Ok(rival.filter(|_| !answer.is_fork))
    }

    /// Leaves a run that this process does not end to another worker.
    async fn leave(&self, live: &LiveEvents) {
        let active = &live.active;
        live.leave();
        let Some(lease) = active.lease().filter(|_| !active.is_lost()) else {
            return;
        };
        self.progress.persist(active).await;
        self.let_go_of(lease).await;
    }

    /// Gives up a lease. At shutdown, releases it, so that another process may lease the run at
    /// once. Otherwise lets it expire, so that a failing run is not retried without a pause.
    async fn let_go_of(&self, lease: &Lease) {
        if self.tasks.closing.is_cancelled() {
            self.release(lease).await;
        } else {
            tracing::warn!("a run is left until its lease expires");
        }
    }

    /// Releases a run to the queue, as if it had not been leased.
    async fn release(&self, lease: &Lease) {
        match self.store.lease_release(lease).await {
            Ok(true) => tracing::info!("a run is handed back to the queue"),
            Ok(false) => tracing::info!("another worker has a run that was to be handed back"),
            Err(error) => {
                // Another worker takes the run over when the lease expires.
                tracing::warn!(error = &error as &dyn Error, "a run can't be handed back");
            }
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
    fn webhook(&self) -> Option<RunWebhook> {
        self.request().webhook.clone()
    }

    fn request_id(&self) -> Option<&str> {
        self.request().request_id.as_deref()
    }

    fn request(&self) -> &RunRequest {
        match self {
            Self::Before(plan) => &plan.request,
            Self::Now(accepted) => &accepted.request,
        }
    }
}

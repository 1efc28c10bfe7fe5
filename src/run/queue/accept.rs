//! Accepts a run into the queue. An accepted run survives the loss of this process.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::request::AcceptedRequest;
use crate::ids::RunId;
use crate::record::{RunMode, RunStatus};
use crate::run::error::Refusal;
use crate::run::handle::{OnDeparture, RunHandle};
use crate::run::plan::RunPlan;
use crate::run::request::RequestKey;
use crate::run::service::RunService;
use crate::store::{
    ConflictPolicy, Enqueued, IfBusy, KnownRequest, Lease, LeaseTerms, LeasedRun, NewQueuedRun, StoreError,
    StoredRequest,
};
use crate::tenant::TenantId;

/// When a caller may try again who met a full queue.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long a count of the waiting runs is believed.
const COUNT_AGE: Duration = Duration::from_millis(250);

/// The number of waiting runs as it was counted last, and those that this process has added since.
#[derive(Debug, Default)]
pub(in crate::run) struct WaitingCount(Mutex<Option<(Instant, u64)>>);

impl RunService {
    /// Puts a run into the queue. A caller that waits for it has it begun at once where this process has a place for it.
    ///
    /// A caller that goes away meanwhile gets what it would have got a moment later: its handle is dropped.
    pub(in crate::run) async fn accept(self: &Arc<Self>, plan: RunPlan) -> Result<RunHandle, Refusal> {
        let service = Arc::clone(self);
        let accepting = self.tasks.spawn(Box::pin(service.accept_surely(plan)));
        accepting.await.unwrap_or(Err(Refusal::ShuttingDown))
    }

    async fn accept_surely(self: Arc<Self>, plan: RunPlan) -> Result<RunHandle, Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.refuse_full_queue().await?;
        if plan.request.conflict == ConflictPolicy::Reject {
            self.refuse_continued(&plan.tenant, &plan.base).await?;
        }
        let place = self.place_for(&plan);
        let status = if place.is_some() {
            RunStatus::Running
        } else {
            RunStatus::Queued
        };
        let run = self.new_queued_run(&plan, status)?;
        match self.ports.store.run_enqueue(&run).await? {
            Enqueued::Accepted { lease, interrupted } => {
                if lease.is_none() {
                    self.waiting.add();
                }
                if let Some(interrupted) = interrupted {
                    self.interrupt(&plan.tenant, interrupted);
                }
                let handle = self.handle(&plan.tenant, run.summary.clone(), departure(&plan));
                self.begin_at_once(plan, run, lease.zip(place));
                Ok(handle)
            }
            Enqueued::Known(known) => {
                self.known_run(&plan.tenant, plan.request.idempotency.as_ref(), known)
                    .await
            }
            Enqueued::TenantFull => Err(Refusal::TenantQueueFull {
                limit: run.max_waiting.unwrap_or_default(),
                retry_after: RETRY_AFTER,
            }),
            Enqueued::ThreadBusy(run_id) => Err(Refusal::ThreadBusy { run_id }),
            Enqueued::MissingBase(session_id) => Err(Refusal::UnknownSession {
                session_id,
                of_run: None,
            }),
        }
    }

    /// Returns a place for a run whose caller waits for it.
    fn place_for(&self, plan: &RunPlan) -> Option<OwnedSemaphorePermit> {
        let waits = plan.request.mode != RunMode::Async;
        let place = waits.then(|| Arc::clone(&self.places).try_acquire_owned().ok());
        place.flatten()
    }

    fn new_queued_run(&self, plan: &RunPlan, status: RunStatus) -> Result<NewQueuedRun, Refusal> {
        let request = AcceptedRequest::of(plan).to_json();
        let key = plan.request.idempotency.as_ref();
        Ok(NewQueuedRun {
            tenant: plan.tenant.clone(),
            summary: self.begun_summary(plan, status),
            request: request.map_err(|error| Refusal::invalid("input", error.to_string()))?,
            priority: plan.request.priority,
            level: if self.settings.queue.ranks_tenants {
                plan.request.priority
            } else {
                0
            },
            max_waiting: self.ports.limits.of(&plan.tenant).queued_runs,
            if_busy: plan.request.if_busy,
            idempotency: key.map(|key| self.stored_key(key)),
            lease: (status == RunStatus::Running).then(|| self.lease_terms()),
        })
    }

    /// Returns the terms on which this process leases runs now.
    pub(in crate::run) fn lease_terms(&self) -> LeaseTerms {
        let now = self.lease_clock.now();
        LeaseTerms {
            worker: self.worker,
            now,
            until: now + self.settings.queue.lease,
        }
    }

    fn begin_at_once(
        self: &Arc<Self>,
        plan: RunPlan,
        run: NewQueuedRun,
        leased: Option<(Lease, OwnedSemaphorePermit)>,
    ) {
        let (Some((lease, place)), Some(terms)) = (leased, run.lease) else {
            return;
        };
        let leased = LeasedRun {
            lease,
            summary: run.summary,
            request: StoredRequest::new(run.request),
            control: None,
            moves_thread: run.if_busy != IfBusy::Fork,
            is_taken_over: false,
        };
        let attempt = Arc::clone(self).attempt(leased, terms.until, Some(Box::new(plan)), Some(place));
        self.tasks.spawn(Box::pin(attempt));
    }

    /// Finds the run of an earlier request with the key, before anything else is asked of a repeated one.
    pub(in crate::run) async fn replay(
        self: &Arc<Self>,
        tenant: &TenantId,
        key: &RequestKey,
    ) -> Result<Option<RunHandle>, Refusal> {
        let now = self.lease_clock.now();
        match self.ports.store.idempotency_lookup(tenant, &key.key, now).await? {
            Some(known) => self.known_run(tenant, Some(key), known).await.map(Some),
            None => Ok(None),
        }
    }

    /// Answers a repeated request with the run of the first one.
    async fn known_run(
        self: &Arc<Self>,
        tenant: &TenantId,
        key: Option<&RequestKey>,
        known: KnownRequest,
    ) -> Result<RunHandle, Refusal> {
        let run_id = RunId::from_uuid(known.resource_id);
        if let Some(key) = key.filter(|key| key.digest != known.digest) {
            return Err(Refusal::OtherRequest { key: key.key.clone() });
        }
        let run = self.run_wait(tenant, run_id, Duration::ZERO).await?;
        let record = run.ok_or(Refusal::UnknownRun { run_id, session: None })?;
        let handle = self.handle(tenant, record.summary.clone(), OnDeparture::GoOn);
        Ok(handle.replayed(record))
    }

    async fn refuse_full_queue(&self) -> Result<(), Refusal> {
        let limit = self.settings.queue.max_waiting;
        let waiting = match self.waiting.known() {
            Some(waiting) => waiting,
            None => self.count_waiting().await?,
        };
        if waiting < u64::from(limit) {
            return Ok(());
        }
        Err(Refusal::QueueFull {
            limit,
            retry_after: RETRY_AFTER,
        })
    }

    async fn count_waiting(&self) -> Result<u64, StoreError> {
        let waiting = self.ports.store.queue_length(self.settings.queue.max_waiting).await?;
        self.waiting.set(waiting);
        Ok(waiting)
    }
}

impl WaitingCount {
    fn known(&self) -> Option<u64> {
        let counted = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted
            .filter(|(at, _)| at.elapsed() < COUNT_AGE)
            .map(|(_, waiting)| waiting)
    }

    fn set(&self, waiting: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), waiting));
    }

    fn add(&self) {
        if let Some((_, waiting)) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            *waiting += 1;
        }
    }
}

/// An asynchronous run has no caller who could leave.
fn departure(plan: &RunPlan) -> OnDeparture {
    if plan.request.mode == RunMode::Async {
        return OnDeparture::GoOn;
    }
    OnDeparture::of(plan.request.on_disconnect, OnDeparture::EndAnywhere)
}

//! Accepts a run into the queue. An accepted run survives the loss of this process.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::attempt::{AcceptedHere, Attempts};
use super::leases::Leases;
use crate::run::base::refuse_continued;
use crate::run::error::Refusal;
use crate::run::handle::{Callers, OnDeparture, ResultSource, RunHandle};
use crate::run::idempotency::IdempotencyKeys;
use crate::run::plan::{Planner, RunPlan};
use crate::run::request::RequestKey;
use crate::run::run_slots::{QueueSlots, RunSlot};
use crate::run::tasks::RunTasks;
use agent::record::{RunMode, RunStatus};
use store::queue::{Acceptance, IfBusy, KnownRequest, Lease, LeasedRun, NewQueuedRun, StoredRequest};
use store::sessions::ConflictPolicy;
use store::{Store, StoreError};
use values::clock::Timestamp;
use values::ids::RunId;
use values::limits::Limits;
use values::tenant::TenantId;

/// When a caller may retry after a full queue.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long a count of the waiting runs is used.
const COUNT_AGE: Duration = Duration::from_millis(250);

/// Accepts runs into the queue.
#[derive(Debug)]
pub struct RunQueue {
    /// Reserves ids, and refuses a base that another run continues.
    pub planner: Arc<Planner>,
    /// Stores the queue.
    pub store: Arc<dyn Store>,
    /// Bounds the runs that wait.
    pub length: QueueLength,
    /// Slots for queued runs.
    pub slots: Arc<QueueSlots>,
    /// Provides the terms on which runs are leased.
    pub leases: Arc<Leases>,
    /// Recognizes repeated requests.
    pub keys: Arc<IdempotencyKeys>,
    /// Starts a run whose caller waits for it.
    pub attempts: Arc<Attempts>,
    /// Creates the handles of callers.
    pub callers: Arc<Callers>,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// Runs the acceptance, also after the caller disconnects.
    pub tasks: RunTasks,
    /// Whether a run of a higher priority also precedes runs of other tenants.
    pub ranks_tenants: bool,
}

/// Bounds the number of waiting runs. Counts them in the store from time to time, and adds the runs
/// that this process accepts in between.
#[derive(Debug)]
pub struct QueueLength {
    store: Arc<dyn Store>,
    max: u32,
    counted: Mutex<Option<(Instant, u64)>>,
}

impl RunQueue {
    /// Puts a run into the queue. If its caller waits and this process has a free slot, starts the
    /// run at once.
    ///
    /// If the caller disconnects meanwhile, the run is accepted anyway and its handle is dropped.
    pub(in crate::run) async fn accept(self: &Arc<Self>, plan: RunPlan) -> Result<RunHandle, Refusal> {
        let queue = Arc::clone(self);
        let accepting = self
            .tasks
            .runs
            .spawn(Box::pin(queue.accept_surely(plan).in_current_span()));
        accepting.await.unwrap_or(Err(Refusal::ShuttingDown))
    }

    async fn accept_surely(self: Arc<Self>, plan: RunPlan) -> Result<RunHandle, Refusal> {
        if self.tasks.closing.is_cancelled() {
            return Err(Refusal::ShuttingDown);
        }
        self.length.refuse_full().await?;
        if plan.request.conflict == ConflictPolicy::Reject {
            refuse_continued(&*self.store, &plan.tenant, &plan.base).await?;
        }
        let slot = self.slot_for(&plan);
        let status = if slot.is_some() {
            RunStatus::Running
        } else {
            RunStatus::Queued
        };
        let run = self.new_queued_run(&plan, status)?;
        match self.store.run_accept(&run).await? {
            Acceptance::Accepted { lease, interrupted } => {
                if lease.is_none() {
                    self.length.add();
                }
                if let Some(interrupted) = interrupted {
                    self.callers.controller.interrupt(&plan.tenant, interrupted);
                }
                let handle = self.callers.handle(&plan.tenant, run.summary.clone(), departure(&plan));
                Ok(match (lease, run.lease, slot) {
                    (Some(lease), Some(terms), Some(slot)) => {
                        handle.with_result(self.begin_at_once(plan, run, (lease, terms.until), slot))
                    }
                    _ => handle,
                })
            }
            Acceptance::Known(known) => {
                self.known_run(&plan.tenant, plan.request.idempotency.as_ref(), known)
                    .await
            }
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
    fn slot_for(&self, plan: &RunPlan) -> Option<RunSlot> {
        let waits = plan.request.mode != RunMode::Async;
        waits.then(|| self.slots.try_take()).flatten()
    }

    fn new_queued_run(&self, plan: &RunPlan, status: RunStatus) -> Result<NewQueuedRun, Refusal> {
        let request = plan.accepted_request().to_json();
        let key = plan.request.idempotency.as_ref();
        Ok(NewQueuedRun {
            tenant: plan.tenant.clone(),
            summary: self.planner.begun_summary(plan, status),
            request: request.map_err(|error| Refusal::invalid("input", error.to_string()))?,
            priority: plan.request.priority,
            level: if self.ranks_tenants { plan.request.priority } else { 0 },
            max_waiting: self.limits.of(&plan.tenant).queued_runs,
            if_busy: plan.request.if_busy,
            answer: plan.answer(),
            idempotency: key.map(|key| self.keys.stored(key)),
            lease: (status == RunStatus::Running).then(|| self.leases.terms()),
        })
    }

    fn begin_at_once(
        &self,
        plan: RunPlan,
        run: NewQueuedRun,
        (lease, until): (Lease, Timestamp),
        slot: RunSlot,
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
        let attempt = Arc::clone(&self.attempts).make(leased, until, Some(accepted), Some(slot));
        self.tasks.runs.spawn(Box::pin(attempt));
        ResultSource::TaskOrStore(result)
    }

    /// Finds the run of an earlier request with the key, before a repeated request is checked.
    pub(in crate::run) async fn replay(
        &self,
        tenant: &TenantId,
        key: &RequestKey,
    ) -> Result<Option<RunHandle>, Refusal> {
        let now = self.leases.now();
        match self.store.idempotency_lookup(tenant, &key.key, now).await? {
            Some(known) => self.known_run(tenant, Some(key), known).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the run of the first request to a repeated one.
    async fn known_run(
        &self,
        tenant: &TenantId,
        key: Option<&RequestKey>,
        known: KnownRequest,
    ) -> Result<RunHandle, Refusal> {
        let run_id = RunId::from_uuid(known.resource_id);
        key.map_or(Ok(()), |key| key.check(known.digest))?;
        let run = self.callers.reader.run_wait(tenant, run_id, Duration::ZERO).await?;
        let record = run.ok_or(Refusal::UnknownRun { run_id, session: None })?;
        let handle = self.callers.handle(tenant, record.summary.clone(), OnDeparture::GoOn);
        Ok(handle.replayed(record))
    }
}

impl QueueLength {
    /// Bounds the runs that wait.
    pub fn new(store: Arc<dyn Store>, max: u32) -> Self {
        Self {
            store,
            max,
            counted: Mutex::default(),
        }
    }

    async fn refuse_full(&self) -> Result<(), Refusal> {
        let waiting = match self.known() {
            Some(waiting) => waiting,
            None => self.count().await?,
        };
        if waiting < u64::from(self.max) {
            return Ok(());
        }
        Err(Refusal::QueueFull {
            limit: self.max,
            retry_after: RETRY_AFTER,
        })
    }

    async fn count(&self) -> Result<u64, StoreError> {
        let waiting = self.store.queue_length(self.max).await?;
        *self.counted.lock() = Some((Instant::now(), waiting));
        Ok(waiting)
    }

    fn known(&self) -> Option<u64> {
        let counted = self.counted.lock().filter(|(at, _)| at.elapsed() < COUNT_AGE);
        counted.map(|(_, waiting)| waiting)
    }

    fn add(&self) {
        if let Some((_, waiting)) = &mut *self.counted.lock() {
            *waiting += 1;
        }
    }
}

/// Returns the effect of a disconnection. An asynchronous run has no caller that could disconnect.
fn departure(plan: &RunPlan) -> OnDeparture {
    if plan.request.mode == RunMode::Async {
        return OnDeparture::GoOn;
    }
    OnDeparture::of(plan.request.on_disconnect, OnDeparture::EndAnywhere)
}

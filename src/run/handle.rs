//! The caller's side of a run: its result, and the effect of a disconnection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::context::{ActiveRun, RunContext};
use super::control::control_run;
use super::read::{Followed, Follower, end_of};
use super::request::RunRequest;
use super::work::Failure;
use agent::record::{RunControl, RunRecord, RunStatus, RunSummary};
use store::StoreError;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

/// The caller's handle of a run. Dropped before the end, it counts as the disconnection of the
/// caller, unless it was detached.
#[derive(Debug)]
pub struct RunHandle {
    /// The id of the run.
    pub run_id: RunId,
    /// The id of the session that the run publishes.
    pub session_id: SessionId,
    /// Whether an earlier request with the same key started the run.
    pub is_replay: bool,
    /// The record of the run at acceptance; for a repeated request, the current record.
    accepted: Arc<RunRecord>,
    caller: CallerGuard,
    source: ResultSource,
}

/// Where the result of a run comes from.
#[derive(Debug)]
pub(super) enum ResultSource {
    /// The task of a light run, which exists in this process only.
    Task(oneshot::Receiver<Arc<RunRecord>>),
    /// The task of a queued run that began here at once. If the task leaves the run to another
    /// worker, the result comes from the store.
    TaskOrStore(oneshot::Receiver<Arc<RunRecord>>),
    /// The store.
    Store,
}

/// Represents a connected caller. Dropped before the end of the run, it counts as the disconnection
/// of the caller.
#[derive(Debug)]
pub struct CallerGuard {
    ctx: Arc<RunContext>,
    tenant: TenantId,
    run_id: RunId,
    /// Whether a disconnection no longer matters: the caller knows the end, or the run continues
    /// without the caller.
    is_done: AtomicBool,
    departure: OnDeparture,
}

/// The effect of a disconnection on the run.
#[derive(Debug)]
pub(super) enum OnDeparture {
    /// None: the run continues.
    GoOn,
    /// Ends a run of this process with the control.
    EndHere(Arc<ActiveRun>, RunControl),
    /// Ends a run in any process with the control.
    EndAnywhere(RunControl),
}

impl CallerGuard {
    /// Records an item that is sent to the caller. After the end of the run, a disconnection has no
    /// effect. It also has none after the reader was dropped, since the reader may reconnect.
    pub fn note_sent(&self, followed: &Followed) {
        let is_done = match followed {
            Followed::Event(event) => event.payload.is_terminal(),
            Followed::Dropped { .. } => true,
        };
        if is_done {
            self.done();
        }
    }

    fn done(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// Waits until the store has the end of the run.
    async fn stored_end(&self, accepted: &Arc<RunRecord>) -> Result<Option<Arc<RunRecord>>, StoreError> {
        if accepted.summary.status.is_terminal() {
            return Ok(Some(Arc::clone(accepted)));
        }
        match end_of(&self.ctx, &self.tenant, self.run_id).await {
            // The store can't be reached, so the record at acceptance is the best one known.
            Err(error) if error.is_transient() => Ok(Some(Arc::clone(accepted))),
            ended => ended,
        }
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        if self.is_done.load(Ordering::Relaxed) {
            return;
        }
        match &self.departure {
            OnDeparture::GoOn => (),
            OnDeparture::EndHere(active, control) => active.control(*control),
            // At shutdown the process cuts off its callers, which is not a disconnection by them.
            OnDeparture::EndAnywhere(_) if self.ctx.process.tasks.closing.is_cancelled() => (),
            OnDeparture::EndAnywhere(control) => {
                let control = *control;
                let (ctx, tenant, run_id) = (Arc::clone(&self.ctx), self.tenant.clone(), self.run_id);
                self.ctx.process.tasks.runs.spawn(async move {
                    if let Err(error) = control_run(&ctx, &tenant, run_id, control).await {
                        tracing::warn!(%run_id, error = &error as &dyn std::error::Error, "a run whose caller left can't be ended");
                    }
                });
            }
        }
    }
}

impl OnDeparture {
    /// Returns the effect of a disconnection that the caller has requested.
    pub(super) fn of(request: &RunRequest, end: impl FnOnce(RunControl) -> Self) -> Self {
        let control = request.on_disconnect.control();
        // Otherwise the readers of the events count, of whom the caller is one.
        let at_once = control.filter(|_| request.reader_grace.is_none());
        at_once.map_or(Self::GoOn, end)
    }
}

impl RunHandle {
    /// Creates the handle of an accepted run. Its result comes from the store.
    pub(super) fn new(ctx: &Arc<RunContext>, tenant: &TenantId, accepted: RunSummary, departure: OnDeparture) -> Self {
        Self {
            run_id: accepted.run_id,
            session_id: accepted.session_id,
            is_replay: false,
            caller: CallerGuard {
                ctx: Arc::clone(ctx),
                tenant: tenant.clone(),
                run_id: accepted.run_id,
                is_done: AtomicBool::new(false),
                departure,
            },
            accepted: Arc::new(RunRecord::without_output(accepted)),
            source: ResultSource::Store,
        }
    }

    /// Sets where the result comes from.
    pub(super) fn with_result(self, source: ResultSource) -> Self {
        Self { source, ..self }
    }

    /// Turns this into the handle of a repeated request, whose disconnection has no effect.
    pub(super) fn replayed(self, record: Arc<RunRecord>) -> Self {
        Self {
            is_replay: true,
            accepted: record,
            ..self
        }
    }

    /// Returns the run at acceptance; for a repeated request, the current one.
    pub fn summary(&self) -> &RunSummary {
        &self.accepted.summary
    }

    /// Returns whether the run had already ended, since an earlier request with the same key
    /// started it.
    pub fn has_ended(&self) -> bool {
        self.accepted.summary.status.is_terminal()
    }

    /// Returns whether the caller has deleted the response of the run, which an earlier request
    /// with the same key started.
    pub fn is_hidden(&self) -> bool {
        self.accepted.is_hidden
    }

    /// Waits for the end of the run. If this process ends first and the run continues elsewhere,
    /// returns the current record.
    pub async fn result(self) -> Result<Arc<RunRecord>, StoreError> {
        let Self {
            accepted,
            caller,
            source,
            ..
        } = self;
        let from_task = match source {
            ResultSource::Task(result) => Some(Ok(result.await.ok())),
            ResultSource::TaskOrStore(result) => result.await.ok().map(|record| Ok(Some(record))),
            ResultSource::Store => None,
        };
        let ended = match from_task {
            Some(ended) => ended,
            None => caller.stored_end(&accepted).await,
        };
        // Also if the record can't be read: the caller has not disconnected, and the run continues.
        caller.done();
        let record = ended?;
        // A run's task is dropped without a result only if the process ends.
        Ok(record.unwrap_or_else(|| {
            let error = Some(Failure::panicked().into_error());
            let mut failed = RunRecord::clone(&accepted);
            failed.summary.status = RunStatus::Failed;
            failed.summary.error = error;
            Arc::new(failed)
        }))
    }

    /// Follows the events from the first to the terminal one. The caller counts as connected as
    /// long as the guard exists. Record each sent item with the guard.
    pub fn into_events(self) -> (CallerGuard, Follower) {
        let events = Follower::new(&self.caller.ctx, &self.caller.tenant, self.run_id, 0);
        (self.caller, events)
    }

    /// Follows the events like [`into_events`](Self::into_events), but begins once a light run of
    /// this process has ended: reading all of them at once costs less than reading each one as it
    /// comes. Only for runs that publish their session, which has what the early events had if
    /// these are no longer kept.
    pub async fn into_ended_events(mut self) -> (CallerGuard, Follower) {
        if let ResultSource::Task(result) = &mut self.source
            && self.accepted.summary.publishes
        {
            // The events have the end, also that of a task that was dropped.
            let _ = result.await;
        }
        self.into_events()
    }

    /// Detaches the caller from the run. Returns the record at acceptance.
    pub fn detach(self) -> Arc<RunRecord> {
        self.caller.done();
        self.accepted
    }
}

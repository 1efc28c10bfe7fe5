//! The caller's side of a run: its result, and what happens if the caller disconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::active::ActiveRun;
use super::control::RunController;
use super::failure::Failure;
use super::follow::{Follower, Followers};
use super::followed::Followed;
use super::read::RunReader;
use super::request::OnDisconnect;
use super::tasks::RunTasks;
use crate::ids::{RunId, SessionId};
use crate::record::{RunControl, RunRecord, RunStatus, RunSummary};
use crate::store::StoreError;
use crate::tenant::TenantId;

/// Follows a run. Dropping it before the end tells the run that the caller went away, unless it was
/// detached.
#[derive(Debug)]
pub struct RunHandle {
    /// Names the run.
    pub run_id: RunId,
    /// Names the session that the run publishes.
    pub session_id: SessionId,
    /// Whether an earlier request with the same key began the run.
    pub is_replay: bool,
    /// The run as it was when it was accepted; of a repeated request, as it is now.
    accepted: Arc<RunRecord>,
    caller: CallerGuard,
    /// The result of a run that lives in this process only.
    result: Option<oneshot::Receiver<Arc<RunRecord>>>,
}

/// Makes the handles of callers.
#[derive(Debug)]
pub struct Callers {
    /// Waits for the ends of runs.
    pub reader: Arc<RunReader>,
    /// Follows runs.
    pub followers: Arc<Followers>,
    /// Ends runs whose callers went away.
    pub controller: Arc<RunController>,
    /// Where that goes on.
    pub tasks: RunTasks,
}

/// Stands for the caller while it is there. Dropping it before the end tells the run that the
/// caller went away.
#[derive(Debug)]
pub struct CallerGuard {
    callers: Arc<Callers>,
    tenant: TenantId,
    run_id: RunId,
    /// Whether the run has ended for all that the caller knows, or goes on without it.
    is_done: AtomicBool,
    departure: OnDeparture,
}

/// What the departure of a caller does to its run.
#[derive(Debug)]
pub(super) enum OnDeparture {
    /// Nothing.
    GoOn,
    /// It ends a run of this process so.
    EndHere(Arc<ActiveRun>, RunControl),
    /// It ends a run so, wherever it is.
    EndAnywhere(RunControl),
}

impl Callers {
    /// Makes the handle of a run that was accepted.
    pub(super) fn handle(
        self: &Arc<Self>,
        tenant: &TenantId,
        accepted: RunSummary,
        departure: OnDeparture,
    ) -> RunHandle {
        RunHandle {
            run_id: accepted.run_id,
            session_id: accepted.session_id,
            is_replay: false,
            caller: CallerGuard {
                callers: Arc::clone(self),
                tenant: tenant.clone(),
                run_id: accepted.run_id,
                is_done: AtomicBool::new(false),
                departure,
            },
            accepted: Arc::new(RunRecord::without_output(accepted)),
            result: None,
        }
    }
}

impl CallerGuard {
    /// Notes what the caller is sent. After the end its departure does nothing, nor does that of a
    /// reader that is dropped: it may come back, and has not gone away.
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
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        if self.is_done.load(Ordering::Relaxed) {
            return;
        }
        match &self.departure {
            OnDeparture::GoOn => (),
            OnDeparture::EndHere(active, control) => active.control(*control),
            // A process that ends cuts its callers off; they have not gone away.
            OnDeparture::EndAnywhere(_) if self.callers.tasks.closing.is_cancelled() => (),
            OnDeparture::EndAnywhere(control) => {
                let control = *control;
                let controller = Arc::clone(&self.callers.controller);
                let (tenant, run_id) = (self.tenant.clone(), self.run_id);
                self.callers.tasks.runs.spawn(async move {
                    if let Err(error) = controller.control(&tenant, run_id, control).await {
                        tracing::warn!(%run_id, error = &error as &dyn std::error::Error, "a run whose caller left can't be ended");
                    }
                });
            }
        }
    }
}

impl OnDeparture {
    /// Returns what the departure of a caller does who wanted this.
    pub(super) fn of(wanted: OnDisconnect, end: impl FnOnce(RunControl) -> Self) -> Self {
        match wanted {
            OnDisconnect::Cancel => end(RunControl::Cancel),
            OnDisconnect::Stop => end(RunControl::Stop),
            OnDisconnect::Continue => Self::GoOn,
        }
    }
}

impl RunHandle {
    /// Takes the result from the run's own task.
    pub(super) fn with_result(self, result: oneshot::Receiver<Arc<RunRecord>>) -> Self {
        Self {
            result: Some(result),
            ..self
        }
    }

    /// Makes the handle of a repeated request, whose departure does nothing.
    pub(super) fn replayed(self, record: Arc<RunRecord>) -> Self {
        Self {
            is_replay: true,
            accepted: record,
            ..self
        }
    }

    /// Tells whether the run had ended when it was accepted, since an earlier request with the same
    /// key began it.
    pub fn has_ended(&self) -> bool {
        self.accepted.summary.status.is_terminal()
    }

    /// Waits for the end of the run. Where this process ends before a run that goes on elsewhere,
    /// returns the run as it stands.
    pub async fn result(self) -> Result<Arc<RunRecord>, StoreError> {
        let Self {
            run_id,
            accepted,
            caller,
            result,
            ..
        } = self;
        let ended = match result {
            Some(result) => Ok(result.await.ok()),
            None if accepted.summary.status.is_terminal() => Ok(Some(Arc::clone(&accepted))),
            None => match caller.callers.reader.end_of(&caller.tenant, run_id).await {
                // This process can learn no more of it.
                Err(error) if error.is_transient() => Ok(Some(Arc::clone(&accepted))),
                ended => ended,
            },
        };
        // Also of a record that can't be read: the caller is there, and the run goes on.
        caller.done();
        let record = ended?;
        // Only the end of the process drops a run's task without a result.
        Ok(record.unwrap_or_else(|| {
            let error = Some(Failure::panicked().into_error());
            let mut failed = RunRecord::clone(&accepted);
            failed.summary.status = RunStatus::Failed;
            failed.summary.error = error;
            Arc::new(failed)
        }))
    }

    /// Follows the events from the first to the terminal one. The caller is there for as long as
    /// the guard is, which notes what it is sent.
    pub fn into_events(self) -> (CallerGuard, Follower) {
        let followers = &self.caller.callers.followers;
        let events = followers.events_of(&self.caller.tenant, self.run_id, 0);
        (self.caller, events)
    }

    /// Leaves the run to itself, and returns it as it was accepted.
    pub fn detach(self) -> Arc<RunRecord> {
        self.caller.done();
        self.accepted
    }
}

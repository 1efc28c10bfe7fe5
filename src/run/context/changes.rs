//! Publishes the changes of a tenant's data that the board does not see, for the readers of
//! changes. A change is published after it is stored.

use std::error::Error;

use super::RunContext;
use agent::record::{RunStatus, RunSummary, ThreadName, ThreadRecord};
use board::TenantChange;
use store::StoreError;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

impl RunContext {
    /// Publishes that a run waits in the queue, since it was accepted or handed back.
    pub(in crate::run) fn publish_queued(&self, tenant: &TenantId, run: &RunSummary) {
        let change = TenantChange::Run {
            run_id: run.run_id,
            status: RunStatus::Queued,
            session_id: None,
            thread: run.thread.clone(),
        };
        self.board.change_publish(tenant, change);
    }

    /// Publishes that a run answers the open calls of another one. A fork may answer none.
    pub(in crate::run) async fn publish_answered(&self, tenant: &TenantId, by: RunId) {
        let answered = self.store.run_lookup_by_answer(tenant, by).await;
        if let Some(run) = known(answered) {
            self.board.change_publish(tenant, TenantChange::of_run(&run));
        }
    }

    /// Publishes that the calls of a run are open again, since the run that was to answer them has
    /// ended without a session. The store had the waiting run as `answered` before.
    pub(in crate::run) fn publish_reopened(&self, tenant: &TenantId, answered: Result<Option<RunSummary>, StoreError>) {
        if let Some(mut run) = known(answered) {
            run.status = RunStatus::Waiting;
            self.board.change_publish(tenant, TenantChange::of_run(&run));
        }
    }

    /// Publishes a session that a request without a run has made, and the thread that now points to
    /// it, if there is one.
    pub(in crate::run) fn publish_session(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        thread: Option<&ThreadName>,
    ) {
        self.board
            .change_publish(tenant, TenantChange::SessionPublished { session_id });
        if let Some(thread) = thread {
            let change = TenantChange::ThreadChanged {
                thread: thread.clone(),
                session_id: Some(session_id),
            };
            self.board.change_publish(tenant, change);
        }
    }

    /// Publishes that a request has removed a session.
    pub(in crate::run) fn publish_session_removed(&self, tenant: &TenantId, session_id: SessionId) {
        self.board
            .change_publish(tenant, TenantChange::SessionRemoved { session_id });
    }

    /// Publishes that a request has created, moved or changed a thread.
    pub fn publish_thread(&self, tenant: &TenantId, thread: &ThreadRecord) {
        let change = TenantChange::ThreadChanged {
            thread: thread.name.clone(),
            session_id: thread.session_id,
        };
        self.board.change_publish(tenant, change);
    }

    /// Publishes that a request has taken a thread away.
    pub fn publish_thread_removed(&self, tenant: &TenantId, thread: &ThreadName) {
        let thread = thread.clone();
        self.board
            .change_publish(tenant, TenantChange::ThreadRemoved { thread });
    }
}

/// Returns the run whose calls are answered; `None` with a warning if it can't be read.
fn known(answered: Result<Option<RunSummary>, StoreError>) -> Option<RunSummary> {
    answered.unwrap_or_else(|error| {
        let error = &error as &dyn Error;
        tracing::warn!(error, "the change of a waiting run is not published");
        None
    })
}

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

    /// Publishes that the run `by` answers the open calls of another one. A fork may answer none.
    /// If the store can't be read now, readers are told to look at the other one.
    pub(in crate::run) async fn publish_answered(&self, tenant: &TenantId, other: RunId, by: RunId) {
        let change = match self.store.run_lookup_by_answer(tenant, by).await {
            Ok(Some(answered)) => TenantChange::of_run(&answered),
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "what a run has answered can't be read");
                TenantChange::Run {
                    run_id: other,
                    status: RunStatus::Answered,
                    session_id: None,
                    thread: None,
                }
            }
        };
        self.board.change_publish(tenant, change);
    }

    /// Publishes that the calls of a run are open again, since the run that was to answer them has
    /// ended without a session. The store had the waiting run as `answered` before.
    pub(in crate::run) fn publish_reopened(&self, tenant: &TenantId, answered: Result<Option<RunSummary>, StoreError>) {
        match answered {
            Ok(Some(mut run)) => {
                run.status = RunStatus::Waiting;
                self.board.change_publish(tenant, TenantChange::of_run(&run));
            }
            Ok(None) => (),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "the change of a waiting run is not published"
                );
            }
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

//! Publishes the changes of a tenant's data that the board does not see, for the readers of
//! changes. A change is published after it is stored.

use super::RunContext;
use agent::record::{RunStatus, RunSummary, ThreadName, ThreadRecord};
use board::TenantChange;
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

    /// Publishes that another run answers the open calls of a run. The thread of that run is not
    /// known here.
    pub(in crate::run) fn publish_answered(&self, tenant: &TenantId, run_id: RunId, session_id: Option<SessionId>) {
        let change = TenantChange::Run {
            run_id,
            status: RunStatus::Answered,
            session_id,
            thread: None,
        };
        self.board.change_publish(tenant, change);
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

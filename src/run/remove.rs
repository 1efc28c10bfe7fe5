//! Removes a session for a caller, unless it is in use.
//!
//! Light runs hold no lock in the database, so the board is asked whether one of them uses the
//! session. A tenant removes one session at a time, since each removal occupies a connection.

use std::sync::Arc;

use super::tasks::RunTasks;
use crate::board::Board;
use crate::ids::{RunId, SessionId};
use crate::store::{SessionRemoval, Sessions, StoreError};
use crate::tenant::TenantId;

const OPERATION: &str = "remove sessions";

/// What became of a session that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// A thread or a run needs it, or one of those that would go with it: this run, where it is
    /// known.
    InUse(Option<RunId>),
}

/// Removes sessions.
#[derive(Debug)]
pub struct SessionRemover {
    /// Removes them from the store and its cache.
    pub sessions: Arc<Sessions>,
    /// Knows which ones light runs continue.
    pub board: Arc<Board>,
    /// Where removals go on after their callers have gone.
    pub tasks: RunTasks,
}

impl SessionRemover {
    /// Removes a session of any age with its subagents' sessions and, if wanted, all that continues
    /// it. A caller that leaves while it waits for its turn has removed nothing.
    pub async fn remove(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
    ) -> Result<Removal, StoreError> {
        // The turn may take long, so live runs are read after it.
        let turn = self.sessions.removal_turn(tenant).await;
        let live = self.board.run_list(tenant).await;
        let user = live
            .iter()
            .find(|live| live.summary.base_session_id == Some(session_id));
        if let Some(user) = user {
            return Ok(Removal::InUse(Some(user.summary.run_id)));
        }
        let (sessions, owner) = (Arc::clone(&self.sessions), tenant.clone());
        // No caller cancels it: the transaction goes on without its caller, and so its turn lasts.
        let work = async move { sessions.remove(turn, &owner, session_id, descendants).await };
        let removing = self.tasks.cancellation.clone().run_until_cancelled_owned(work);
        let removed = self.tasks.runs.spawn(removing).await;
        let removed = removed.map_err(|error| StoreError::Failed {
            operation: OPERATION,
            source: error.into(),
        })?;
        let removal = removed.ok_or_else(|| StoreError::Unavailable {
            operation: OPERATION,
            source: "the process ends".into(),
        })??;
        Ok(match removal {
            SessionRemoval::Removed(_) => Removal::Removed,
            SessionRemoval::NotFound => Removal::NotFound,
            SessionRemoval::HasDescendants => Removal::HasDescendants,
            SessionRemoval::InUse => Removal::InUse(None),
        })
    }
}

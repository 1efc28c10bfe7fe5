//! Removing a session for a caller. Runs at work hold no lock, so those that live in one process are asked of the board.

use super::read::shown;
use super::service::RunService;
use crate::ids::{RunId, SessionId};
use crate::store::{SessionRemoval, StoreError};
use crate::tenant::TenantId;

/// What became of a session that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// A thread or a run needs it, or one of those that would go with it: this run, where it is known.
    InUse(Option<RunId>),
}

impl RunService {
    /// Removes a session, whatever its age, with its subagents' sessions and, if wanted, all that continues it.
    pub async fn session_remove(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
    ) -> Result<Removal, StoreError> {
        let live = shown(self.ports.board.run_list(tenant)).await;
        let user = live
            .iter()
            .find(|live| live.summary.base_session_id == Some(session_id));
        if let Some(user) = user {
            return Ok(Removal::InUse(Some(user.summary.run_id)));
        }
        let removal = self.ports.sessions.remove(tenant, session_id, descendants).await?;
        Ok(match removal {
            SessionRemoval::Removed(_) => Removal::Removed,
            SessionRemoval::NotFound => Removal::NotFound,
            SessionRemoval::HasDescendants => Removal::HasDescendants,
            SessionRemoval::InUse => Removal::InUse(None),
        })
    }
}

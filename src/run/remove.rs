//! Removes a session for a caller, unless it is in use.
//!
//! Light runs hold no lock in the database, so this checks the board for a light run that uses the
//! session. A tenant removes one session at a time, since each removal occupies a connection.

use std::sync::Arc;

use super::context::RunContext;
use store::audit::Requester;
use store::retention::SessionRemoval;
use store::{StoreError, Unavailability};
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

const OPERATION: &str = "remove sessions";

/// The result of removing a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The session was removed.
    Removed,
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// A thread or a run uses it, or uses a session that would be removed with it. Contains the
    /// run, if it is known.
    InUse(Option<RunId>),
}

/// Removes a session of any age with its subagents' sessions and, if requested, its
/// descendants. A caller that is cancelled while it waits for its turn removes nothing.
pub async fn remove_session(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
    descendants: bool,
    by: Requester,
) -> Result<Removal, StoreError> {
    // Reads live runs after the wait for the turn, which may take long.
    let turn = ctx.sessions.removal_turn(tenant).await;
    let live = ctx.board.run_list(tenant).await;
    let user = live
        .iter()
        .find(|live| live.summary.base_session_id == Some(session_id));
    if let Some(user) = user {
        return Ok(Removal::InUse(Some(user.summary.run_id)));
    }
    let (sessions, owner) = (Arc::clone(&ctx.sessions), tenant.clone());
    // Runs in a separate task that no caller can cancel. So the turn lasts as long as the
    // transaction.
    let work = async move { sessions.remove(turn, &owner, session_id, descendants, &by).await };
    let removing = ctx.process.tasks.cancellation.clone().run_until_cancelled_owned(work);
    let removed = ctx.process.tasks.runs.spawn(removing).await;
    let removed = removed.map_err(|error| StoreError::Failed {
        operation: OPERATION,
        source: error.into(),
    })?;
    let removal = removed.ok_or_else(|| StoreError::Unavailable {
        operation: OPERATION,
        reason: Unavailability::Unreachable,
        source: "the process ends".into(),
    })??;
    if matches!(removal, SessionRemoval::Removed(_)) {
        ctx.publish_session_removed(tenant, session_id);
    }
    Ok(match removal {
        SessionRemoval::Removed(_) => Removal::Removed,
        SessionRemoval::NotFound => Removal::NotFound,
        SessionRemoval::HasDescendants => Removal::HasDescendants,
        SessionRemoval::InUse => Removal::InUse(None),
    })
}

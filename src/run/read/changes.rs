//! Follows the changes of a tenant's runs, sessions and threads, in all processes.

use std::sync::Arc;

use super::followed::SHUTTING_DOWN;
use crate::run::context::RunContext;
use board::{ChangeReader, ChangesLost, TenantChange};
use values::tenant::TenantId;

/// An item that a follower of changes passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedChange {
    /// The next change.
    Change(TenantChange),
    /// The reader is dropped and the stream ends. It may have missed changes.
    Dropped {
        /// The reason, in words for the reader.
        reason: &'static str,
    },
}

/// A reader of the changes of a tenant.
#[derive(Debug)]
pub struct ChangeFollower {
    ctx: Arc<RunContext>,
    changes: ChangeReader,
    is_over: bool,
}

impl ChangeFollower {
    /// Follows the changes of a tenant from now on.
    pub fn new(ctx: &Arc<RunContext>, tenant: &TenantId) -> Self {
        Self {
            ctx: Arc::clone(ctx),
            changes: ctx.board.change_reader(tenant),
            is_over: false,
        }
    }

    /// Waits for the next change or the end.
    pub async fn next(&mut self) -> Option<FollowedChange> {
        if self.is_over {
            return None;
        }
        let next = tokio::select! {
            () = self.ctx.process.tasks.closing.cancelled() => Err(SHUTTING_DOWN),
            next = self.changes.next() => next.map_err(reason_of),
        };
        self.is_over = next.is_err();
        Some(match next {
            Ok(change) => FollowedChange::Change(change),
            Err(reason) => FollowedChange::Dropped { reason },
        })
    }
}

fn reason_of(lost: ChangesLost) -> &'static str {
    match lost {
        ChangesLost::Lag => "the reader is too slow: changes are missing",
        ChangesLost::Gap => "changes of other replicas may be missing",
    }
}

//! Waits for a run to change its status, or to end. All who wait for the same run share one read.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep_until};

use super::read::{ON_ITS_WAY, RunReader};
use crate::ids::RunId;
use crate::record::RunRecord;
use crate::store::StoreError;
use crate::tenant::TenantId;

/// How long a notification is waited for before the run is read without one.
const POLL: Duration = Duration::from_secs(1);

impl RunReader {
    /// Reads a run; where it has not ended, waits for a change of its status, at most so long and
    /// until the service closes.
    pub async fn run_wait(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        wait: Duration,
    ) -> Result<Option<Arc<RunRecord>>, StoreError> {
        let until = Instant::now() + wait;
        let slot = self.reads.slot((tenant.clone(), run_id));
        let (mut shown, mut after, mut unknown_until) = (None, None, None);
        loop {
            let change = self.board.run_change(run_id);
            let now = Instant::now();
            let read = slot
                .read(tenant, after.unwrap_or(now), self.read_shared(tenant, run_id))
                .await;
            let Some(run) = read.value.map_err(|error| StoreError::shared(&error))? else {
                // It may have begun elsewhere just now. Nobody else waits for this: the read is
                // over.
                let patience = if wait.is_zero() {
                    ON_ITS_WAY
                } else {
                    ON_ITS_WAY.min(wait)
                };
                let on_its_way = *unknown_until.get_or_insert(read.at + patience);
                if !self.board.is_shared() || Instant::now() >= on_its_way {
                    return Ok(None);
                }
                tokio::select! {
                    () = change => (),
                    () = sleep_until(on_its_way) => (),
                }
                after = None;
                continue;
            };
            let status = run.summary.status;
            let has_changed = shown.is_some_and(|shown| shown != status);
            if status.is_terminal() || has_changed || now >= until || self.tasks.closing.is_cancelled() {
                return Ok(Some(run));
            }
            shown = Some(status);
            // Whichever comes first: the next read is of the run itself. Without a notification
            // another caller's read will do.
            after = tokio::select! {
                () = change => None,
                () = sleep_until(until) => None,
                () = self.tasks.closing.cancelled() => None,
                () = sleep_until(read.at + POLL) => Some(read.at),
            };
        }
    }

    /// Waits for the end of a run. Returns the run as it stands when this process ends and lets go
    /// of it, and `None` when it is gone without an end.
    pub(super) async fn end_of(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<Arc<RunRecord>>, StoreError> {
        let slot = self.reads.slot((tenant.clone(), run_id));
        let mut after = None;
        loop {
            let change = self.board.run_change(run_id);
            // Before the read, which so finds an end that came before.
            let is_let_go = self.has_let_go(tenant, run_id);
            let now = Instant::now();
            let read = slot
                .read(tenant, after.unwrap_or(now), self.read_shared(tenant, run_id))
                .await;
            let change = match read.value {
                Ok(Some(run)) if !run.summary.status.is_terminal() && !is_let_go => change,
                // The run goes on without the store for a while, and so does its caller.
                Err(error) if error.is_transient() && !is_let_go => pending().boxed(),
                ended => return ended.map_err(|error| StoreError::shared(&error)),
            };
            after = tokio::select! {
                () = change => None,
                () = self.let_go(tenant, run_id) => None,
                () = sleep_until(read.at + POLL) => Some(read.at),
            };
        }
    }

    /// Returns whether readers of the run have to go on elsewhere: this process ends, and does not
    /// work on it.
    pub(super) fn has_let_go(&self, tenant: &TenantId, run_id: RunId) -> bool {
        self.tasks.ended.is_cancelled()
            || self.tasks.closing.is_cancelled() && self.active.find(tenant, run_id).is_none()
    }

    /// Waits until that may be so.
    pub(super) async fn let_go(&self, tenant: &TenantId, run_id: RunId) {
        match self.active.find(tenant, run_id) {
            Some(_) => self.tasks.ended.cancelled().await,
            None => self.tasks.closing.cancelled().await,
        }
    }
}

//! Waits for a run to change its status, or to end. All callers that wait for the same run share
//! one read.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep_until};

use super::{ON_ITS_WAY, read_shared};
use crate::run::context::RunContext;
use agent::record::RunRecord;
use store::StoreError;
use values::ids::RunId;
use values::tenant::TenantId;

/// How long to wait for a notification before the run is read without one.
const POLL: Duration = Duration::from_secs(1);

/// Reads a run. If it has not ended, waits for a change of its status, up to `wait` or until
/// the shutdown.
pub async fn run_wait(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
    wait: Duration,
) -> Result<Option<Arc<RunRecord>>, StoreError> {
    let until = Instant::now() + wait;
    let slot = ctx.process.run_reads.slot((tenant.clone(), run_id));
    let (mut shown, mut after, mut unknown_until) = (None, None, None);
    loop {
        let change = ctx.board.run_change(run_id);
        let now = Instant::now();
        let read = slot
            .read(tenant, after.unwrap_or(now), read_shared(ctx, tenant, run_id))
            .await;
        let Some(run) = read.value.map_err(|error| StoreError::shared(&error))? else {
            // The run may just have begun in another process. Other callers do not wait for
            // this one, since the shared read is over.
            let patience = if wait.is_zero() {
                ON_ITS_WAY
            } else {
                ON_ITS_WAY.min(wait)
            };
            let on_its_way = *unknown_until.get_or_insert(read.at + patience);
            if !ctx.board.is_shared() || Instant::now() >= on_its_way {
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
        if status.is_terminal() || has_changed || now >= until || ctx.process.tasks.closing.is_cancelled() {
            return Ok(Some(run));
        }
        shown = Some(status);
        // Waits for the first of these, and then reads the run again. Without a notification,
        // another caller's recent read is new enough.
        after = tokio::select! {
            () = change => None,
            () = sleep_until(until) => None,
            () = ctx.process.tasks.closing.cancelled() => None,
            () = sleep_until(read.at + POLL) => Some(read.at),
        };
    }
}

/// Waits for the end of a run. Returns the current record if this process ends and hands the
/// run over. Returns `None` if the run disappeared without an end.
pub(in crate::run) async fn end_of(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<Arc<RunRecord>>, StoreError> {
    let slot = ctx.process.run_reads.slot((tenant.clone(), run_id));
    let mut after = None;
    loop {
        let change = ctx.board.run_change(run_id);
        // Checked before the read, so that the read finds any earlier end.
        let is_let_go = has_let_go(ctx, tenant, run_id);
        let now = Instant::now();
        let read = slot
            .read(tenant, after.unwrap_or(now), read_shared(ctx, tenant, run_id))
            .await;
        let change = match read.value {
            Ok(Some(run)) if !run.summary.status.is_terminal() && !is_let_go => change,
            // The run can continue without the store for a while, so its caller keeps waiting.
            Err(error) if error.is_transient() && !is_let_go => pending().boxed(),
            ended => return ended.map_err(|error| StoreError::shared(&error)),
        };
        after = tokio::select! {
            () = change => None,
            () = let_go(ctx, tenant, run_id) => None,
            () = sleep_until(read.at + POLL) => Some(read.at),
        };
    }
}

/// Returns whether readers of the run must move to another process: this one is shutting down
/// and does not execute the run.
pub(in crate::run) fn has_let_go(ctx: &RunContext, tenant: &TenantId, run_id: RunId) -> bool {
    ctx.process.tasks.ended.is_cancelled()
        || ctx.process.tasks.closing.is_cancelled() && ctx.process.active.find(tenant, run_id).is_none()
}

/// Waits until readers may have to move to another process.
pub(in crate::run) async fn let_go(ctx: &RunContext, tenant: &TenantId, run_id: RunId) {
    match ctx.process.active.find(tenant, run_id) {
        Some(_) => ctx.process.tasks.ended.cancelled().await,
        None => ctx.process.tasks.closing.cancelled().await,
    }
}

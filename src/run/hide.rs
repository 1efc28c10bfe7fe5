//! Hides a run whose caller deletes the response that an interface made of it. The record stays
//! for operators, unless it goes with the session.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::context::RunContext;
use super::control::control_run;
use super::read::end_of;
use super::refusal::Refusal;
use super::remove::{Removal, remove_session};
use agent::record::{RunControl, RunSummary};
use values::ids::RunId;
use values::tenant::TenantId;

/// How long to wait for the end of a run that is cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// Hides a run. Cancels it first, unless it has ended. If nothing needs its session, and the run
/// was on no thread, removes the session with the record.
///
/// Refuses a run whose end takes too long, or is not stored yet. The run is cancelled then, so a
/// later request hides it.
pub async fn hide_run(ctx: &Arc<RunContext>, tenant: &TenantId, run: RunSummary) -> Result<(), Refusal> {
    let run_id = run.run_id;
    let run = if run.status.is_terminal() {
        run
    } else {
        cancelled(ctx, tenant, run_id).await?
    };
    // A conversation keeps its messages.
    let may_go = run.has_session() && run.thread.is_none();
    let is_removed = may_go && remove_session(ctx, tenant, run.session_id, false).await? == Removal::Removed;
    if is_removed || ctx.store.run_hide(tenant, run_id).await? {
        // Its end is stored, and readers in this process have to find the stored record.
        ctx.board.run_close(tenant, run_id);
        return Ok(());
    }
    Err(if run.has_session() {
        // Another request has removed it.
        Refusal::UnknownRun { run_id, session: None }
    } else {
        Refusal::Unreachable { run_id }
    })
}

/// Cancels a run, and returns its summary once it has ended.
async fn cancelled(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId) -> Result<RunSummary, Refusal> {
    let run = control_run(ctx, tenant, run_id, RunControl::Cancel).await?.run.summary;
    if run.status.is_terminal() {
        return Ok(run);
    }
    let ended = timeout(CANCEL_PATIENCE, end_of(ctx, tenant, run_id)).await;
    // At the shutdown of this process, the run may continue elsewhere.
    let ended = ended.unwrap_or(Ok(None))?.map(|run| run.summary.clone());
    let ended = ended.filter(|run| run.status.is_terminal());
    ended.ok_or(Refusal::Unreachable { run_id })
}

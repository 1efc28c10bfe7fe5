//! Hides a run whose caller deletes the response that an interface made of it. The record stays
//! for operators, unless it goes with the session.

use std::sync::Arc;

use super::context::RunContext;
use super::control::end_run;
use super::refusal::Refusal;
use super::remove::{Removal, remove_session};
use agent::record::{RunControl, RunSummary};
use store::audit::Requester;
use values::tenant::TenantId;

/// Hides a run. Cancels it first, unless it has ended. If nothing needs its session, and the run
/// was on no thread, removes the session with the record.
///
/// Refuses a run whose end takes too long, or is not stored yet. The run is cancelled then, so a
/// later request hides it.
pub async fn hide_run(ctx: &Arc<RunContext>, tenant: &TenantId, run: RunSummary, by: Requester) -> Result<(), Refusal> {
    let run_id = run.run_id;
    let run = if run.status.is_terminal() {
        run
    } else {
        end_run(ctx, tenant, run_id, RunControl::Cancel).await?
    };
    if !run.status.is_terminal() {
        return Err(Refusal::Unreachable { run_id });
    }
    // A conversation keeps its messages.
    let may_go = run.has_session() && run.thread.is_none();
    let is_removed = may_go && remove_session(ctx, tenant, run.session_id, false, by).await? == Removal::Removed;
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

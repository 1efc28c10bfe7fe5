//! Ends a run whose events nobody reads. A page that is loaded again is away for some seconds, and
//! may come back at another process.
//!
//! The process that executes the run knows its own readers. A reader that leaves another process
//! is reported (`read/follow.rs`), and the others are asked before the end. If they can't be asked,
//! the run goes on.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::run::context::{ActiveRun, RunContext};
use crate::run::request::ReaderGrace;
use board::ControlMessage;

/// How long other processes have to respond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends a run once its events had no reader for as long as its request says.
pub(super) async fn end_unread(ctx: &RunContext, grace: Option<ReaderGrace>, active: &ActiveRun) -> Infallible {
    let Some(grace) = grace else { return pending().await };
    let seconds = Duration::from_secs(grace.seconds.into());
    loop {
        sleep_until(active.last_read() + seconds).await;
        let is_due = || active.last_read() + seconds <= Instant::now();
        if ctx.process.event_readers.has(active.run_id) {
            active.note_reader();
        } else if is_due() && !may_have_reader_elsewhere(ctx, active).await && is_due() {
            tracing::debug!("a run ends whose events nobody reads");
            active.control(grace.control);
            return pending().await;
        }
    }
}

/// Asks the other processes for readers. A response counts as a reader of this moment, and so does
/// a reader that has come to this process meanwhile.
async fn may_have_reader_elsewhere(ctx: &RunContext, active: &ActiveRun) -> bool {
    let before = active.last_read();
    if !ctx.store.is_shared() {
        return false;
    }
    let asking = ctx
        .board
        .control_ask(&active.tenant, active.run_id, ControlMessage::HasReaders);
    match asking.await {
        Some(false) => return false,
        Some(true) => sleep(PATIENCE).await,
        None => active.note_reader(),
    }
    if ctx.process.event_readers.has(active.run_id) {
        active.note_reader();
    }
    active.last_read() > before
}

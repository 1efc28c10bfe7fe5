//! The tasks of runs, and the tokens that end them in order.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::active::Handover;

/// The tasks of runs in this process.
#[derive(Debug, Default)]
pub(in crate::run) struct RunTasks {
    /// The tasks of runs, and work that continues after its callers disconnect.
    pub(in crate::run) runs: TaskTracker,
    /// The loops that serve runs, and the short work that they start.
    pub(in crate::run) background: TaskTracker,
    /// Cancelled when the shutdown begins: no more runs may begin.
    pub(in crate::run) closing: CancellationToken,
    /// Hands over the queued runs.
    pub(in crate::run) handover: Handover,
    /// Cancels all light runs, which exist in this process only.
    pub(in crate::run) cancellation: CancellationToken,
    /// Cancelled when all runs have ended, to end the loops that serve them.
    pub(in crate::run) ended: CancellationToken,
}

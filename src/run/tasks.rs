//! The tasks of runs, and the tokens that end them in order. All parts of this module share them.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::active::Handover;

/// The tasks of runs in this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunTasks {
    /// The tasks of runs, and work that continues after its callers disconnect.
    pub(super) runs: TaskTracker,
    /// The loops that serve runs, and the short work that they start.
    pub(super) background: TaskTracker,
    /// Cancelled when the shutdown begins: no more runs may begin.
    pub(super) closing: CancellationToken,
    /// Hands over the queued runs.
    pub(super) handover: Handover,
    /// Cancels all light runs, which exist in this process only.
    pub(super) cancellation: CancellationToken,
    /// Cancelled when all runs have ended, to end the loops that serve them.
    pub(super) ended: CancellationToken,
}

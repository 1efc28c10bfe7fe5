//! The tasks of runs, and the tokens that end them in order. It is all that the parts of this
//! module share.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::active::Handover;

/// The tasks of runs in this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunTasks {
    /// The runs, and what callers have left to be done.
    pub(super) runs: TaskTracker,
    /// The loops that serve runs, and the short work that they start.
    pub(super) background: TaskTracker,
    /// Cancelled when no run begins any more.
    pub(super) closing: CancellationToken,
    /// Hands over the runs of the queue.
    pub(super) handover: Handover,
    /// Cancels all runs that live in this process only.
    pub(super) cancellation: CancellationToken,
    /// Cancelled when all runs have ended, and what serves them ends as well.
    pub(super) ended: CancellationToken,
}

//! What a follower of a run passes on.

use std::sync::Arc;

use crate::record::RunEvent;

/// Why readers are dropped, in words for them.
pub const DROP_REASONS: [&str; 4] = [TOO_FAR_BEHIND, UNREADABLE, UNKNOWN, SHUTTING_DOWN];
pub(super) const TOO_FAR_BEHIND: &str = "the reader is too far behind: what follows is no longer kept";
pub(super) const UNREADABLE: &str = "the store can't be read now";
pub(super) const UNKNOWN: &str =
    "nothing is known of the run: the process that works on it is gone, or can't be reached";
pub(super) const SHUTTING_DOWN: &str = "this replica is shutting down: another one has what follows";

/// What a follower passes on.
#[derive(Debug, Clone)]
pub enum Followed {
    /// The next event. After the terminal one the stream ends.
    Event(Arc<RunEvent>),
    /// The reader is dropped, and the stream ends. A reader that comes back may go on after the
    /// last event that it has.
    Dropped {
        /// Why: one of [`DROP_REASONS`].
        reason: &'static str,
    },
}

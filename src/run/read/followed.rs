//! The items that a follower of a run passes on.

use std::sync::Arc;

use agent::record::RunEvent;

/// The reasons for dropping readers, as readers see them.
pub const DROP_REASONS: [&str; 5] = [TOO_FAR_BEHIND, UNREADABLE, UNKNOWN, SHUTTING_DOWN, LOGIN_ENDED];
pub(in crate::run) const TOO_FAR_BEHIND: &str = "the reader is too far behind: what follows is no longer kept";
pub(in crate::run) const UNREADABLE: &str = "the store can't be read now";
pub(in crate::run) const UNKNOWN: &str =
    "nothing is known of the run: the process that works on it is gone, or can't be reached";
pub(in crate::run) const SHUTTING_DOWN: &str = "this replica is shutting down: another one has what follows";
/// The reason that the interface finds, not the follower.
pub const LOGIN_ENDED: &str = "the API key or the login of the reader is no longer valid";

/// An item that a follower passes on.
#[derive(Debug, Clone)]
pub enum Followed {
    /// The next event. After the terminal one the stream ends.
    Event(Arc<RunEvent>),
    /// The reader is dropped and the stream ends. The reader may reconnect and continue after its
    /// last event.
    Dropped {
        /// The reason: one of [`DROP_REASONS`].
        reason: &'static str,
    },
}

//! The result of an attempt to accept a run.

use crate::queue::Acceptance;
use values::ids::RunId;

/// The result of an attempt to accept a run.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The run is in the queue.
    Accepted {
        /// Whether it is leased.
        is_leased: bool,
        /// The active run that is asked to stop for it.
        interrupted: Option<RunId>,
    },
    /// The run is refused, unless the request is a repeated one.
    Refused(Acceptance),
    /// Another run became active on the thread at the same moment. The next attempt finds it.
    ThreadRaced,
    /// An earlier request has the key.
    KeyTaken,
    /// A run with this id exists, or a run that has reserved the same session.
    Exists,
}

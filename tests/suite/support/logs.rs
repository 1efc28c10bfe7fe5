//! Listening to the log lines of the test's own thread.

use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Subscriber};

/// Listens until it is dropped.
pub(crate) struct Listening {
    _guard: DefaultGuard,
    _second: Dispatch,
}

/// Sends the log lines of this thread to the subscriber.
///
/// With a single subscriber in the process, a line that another thread reaches first would be switched off for this one as well, so
/// there is a second one that listens to nothing.
#[must_use]
pub(crate) fn listen(subscriber: impl Subscriber + Send + Sync) -> Listening {
    let second = Dispatch::new(NoSubscriber::new());
    Listening {
        _guard: tracing::subscriber::set_default(subscriber),
        _second: second,
    }
}

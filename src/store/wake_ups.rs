//! Wake-ups for workers. Any number of readers may listen. A reader that is busy receives several
//! wake-ups as one.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// Wakes the readers of its streams. The streams end when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct WakeUps(watch::Sender<()>);

impl WakeUps {
    /// Wakes all readers.
    pub(crate) fn send(&self) {
        self.0.send_replace(());
    }

    /// Returns the wake-ups from now on.
    pub(crate) fn stream(&self) -> BoxStream<'static, ()> {
        WatchStream::from_changes(self.0.subscribe()).boxed()
    }
}

//! Wake-ups of workers, for any number of readers. Those that come while a reader is busy count as
//! one.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// Wakes the readers of its streams, which end with it.
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

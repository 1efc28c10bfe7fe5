//! Signs that somebody may have something to do: any number of readers, and none is told twice what it has not looked at yet.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

/// Gives signs to all who wait for them. The streams end with it.
#[derive(Debug, Default)]
pub(crate) struct Signs(watch::Sender<()>);

impl Signs {
    /// Gives a sign.
    pub(crate) fn give(&self) {
        self.0.send_replace(());
    }

    /// Returns the signs from now on.
    pub(crate) fn stream(&self) -> BoxStream<'static, ()> {
        WatchStream::from_changes(self.0.subscribe()).boxed()
    }
}

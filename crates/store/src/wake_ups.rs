//! Wake-ups for workers, and for callers that wait for commands. Any number of readers may listen.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::{broadcast, watch};
use tokio_stream::wrappers::{BroadcastStream, WatchStream};

use super::commands::CommandWakeUp;

/// How many wake-ups a reader may fall behind.
const CAPACITY: usize = 1_024;

/// Wakes the readers of its streams. The streams end when it is dropped. A reader that is busy
/// receives several wake-ups as one.
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

/// Wakes workers that run commands, and callers that wait for them. A reader that falls behind
/// receives [`CommandWakeUp::Missed`].
#[derive(Debug)]
pub(crate) struct CommandWakeUps(broadcast::Sender<CommandWakeUp>);

impl Default for CommandWakeUps {
    fn default() -> Self {
        Self(broadcast::channel(CAPACITY).0)
    }
}

impl CommandWakeUps {
    /// Wakes all readers.
    pub(crate) fn send(&self, wake_up: CommandWakeUp) {
        // Without readers, no wake-up is needed.
        let _ = self.0.send(wake_up);
    }

    /// Returns the wake-ups from now on.
    pub(crate) fn stream(&self) -> BoxStream<'static, CommandWakeUp> {
        let received = BroadcastStream::new(self.0.subscribe());
        received
            .map(|received| received.unwrap_or(CommandWakeUp::Missed))
            .boxed()
    }
}

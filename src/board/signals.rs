//! Signals to runs within this process.

use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::BoxStream;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;

use super::AddressedSignal;

/// The most signals that wait for one who hears them.
const MAX_WAITING: usize = 4096;

/// Passes signals to all who hear them.
#[derive(Debug)]
pub(super) struct Signals(broadcast::Sender<AddressedSignal>);

impl Default for Signals {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_WAITING))
    }
}

impl Signals {
    /// Passes a signal on. Tells whether anybody hears it.
    pub(super) fn send(&self, signal: AddressedSignal) -> bool {
        self.0.send(signal).is_ok()
    }

    /// Hears signals from now on.
    pub(super) fn hear(&self) -> BoxStream<'static, AddressedSignal> {
        let heard = BroadcastStream::new(self.0.subscribe());
        let heard = heard.filter_map(|signal| {
            if signal.is_err() {
                tracing::warn!("signals to runs came faster than they were heard; some are lost");
            }
            ready(signal.ok())
        });
        Box::pin(heard)
    }
}

//! Control messages to runs, within this process.

use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;

use agent::record::{RunControl, SteeringMessage};
use values::ids::RunId;
use values::tenant::TenantId;

/// The most messages that wait for one subscriber.
const MAX_WAITING: usize = 4096;

/// A message about a run: to the process that executes it, or a question to all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum ControlMessage {
    /// The store has a control or a message for the run.
    Refresh,
    /// A control for a run that is not in the queue.
    Control(RunControl),
    /// A message to a run that is not in the queue.
    Message(Box<SteeringMessage>),
    /// Asks the other processes for readers of the run's events.
    HasReaders,
    /// The run has a reader at another process.
    IsRead,
}

/// A control message with its run.
pub type AddressedMessage = (TenantId, RunId, ControlMessage);

/// Sends control messages to all subscribers.
#[derive(Debug)]
pub(super) struct ControlMessages(broadcast::Sender<AddressedMessage>);

impl Default for ControlMessages {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_WAITING))
    }
}

impl ControlMessages {
    /// Sends a message. Returns whether there is a subscriber.
    pub(super) fn send(&self, message: AddressedMessage) -> bool {
        self.0.send(message).is_ok()
    }

    /// Subscribes to all messages sent from now on.
    pub(super) fn subscribe(&self) -> BoxStream<'static, AddressedMessage> {
        let messages = BroadcastStream::new(self.0.subscribe());
        let messages = messages.filter_map(|message| {
            if message.is_err() {
                tracing::warn!("a subscriber of control messages lags; some are lost");
            }
            ready(message.ok())
        });
        Box::pin(messages)
    }
}

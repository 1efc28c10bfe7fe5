//! A transport that observes the messages in their order.
//!
//! The library handles each message in a task of its own, so that its handlers see them in any
//! order, and a response may come before the caller has the id of its request. Here a request is
//! known before it is sent, and its progress is shown before its response is passed on. A server
//! whose own requests wait for too many responses loses its connection.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::requests::Requests;

/// The most requests of a server that wait for their responses.
const MAX_INBOUND: usize = 64;
/// How long a transport may take to close, which includes ending a session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Observes the messages of another transport. Dropping it ends the connection.
pub(super) struct ObservedTransport<T> {
    transport: T,
    requests: Arc<Requests>,
    room: Arc<Semaphore>,
    /// The requests of the server that wait for their responses.
    inbound: Vec<(RequestId, OwnedSemaphorePermit)>,
    /// Whether the server has sent too many requests.
    is_flooded: bool,
    _closed: DropGuard,
}

impl<T> ObservedTransport<T> {
    pub(super) fn new(transport: T, requests: &Arc<Requests>) -> Self {
        Self {
            transport,
            requests: Arc::clone(requests),
            room: Arc::new(Semaphore::new(MAX_INBOUND)),
            inbound: Vec::new(),
            is_flooded: false,
            _closed: requests.closed.clone().drop_guard(),
        }
    }

    /// Takes the permit of a request of the server, which ends.
    fn take_inbound(&mut self, id: Option<&RequestId>) -> Option<OwnedSemaphorePermit> {
        let at = self.inbound.iter().position(|(other, _)| Some(other) == id)?;
        Some(self.inbound.swap_remove(at).1)
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ObservedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.requests.note_sent(&mut message);
        let permit = match &message {
            JsonRpcMessage::Response(response) => self.take_inbound(Some(&response.id)),
            JsonRpcMessage::Error(error) => self.take_inbound(error.id.as_ref()),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let sending = self.transport.send(message);
        async move {
            let _until_sent = permit;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        match &message {
            JsonRpcMessage::Response(response) => {
                let whole = self.requests.end(&response.id);
                return Some(whole.unwrap_or(message));
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.requests.end(id);
                }
            }
            JsonRpcMessage::Request(request) => {
                let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
                    tracing::warn!(
                        max = MAX_INBOUND,
                        "the connection to an MCP server ends, since too many of its requests wait for responses"
                    );
                    self.is_flooded = true;
                    return None;
                };
                self.inbound.push((request.id.clone(), permit));
            }
            JsonRpcMessage::Notification(sent) => match &sent.notification {
                ServerNotification::ProgressNotification(progress) => self.requests.show(&progress.params),
                // The library sends no response to a cancelled request.
                ServerNotification::CancelledNotification(cancelled) => {
                    drop(self.take_inbound(cancelled.params.request_id.as_ref()));
                }
                _ => (),
            },
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A transport over HTTP does not close while it has unreceived messages. It ends when it is
        // dropped.
        let limit = if self.is_flooded {
            Duration::ZERO
        } else {
            CLOSE_PATIENCE
        };
        timeout(limit, self.transport.close()).await.unwrap_or(Ok(()))
    }
}

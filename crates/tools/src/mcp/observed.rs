//! A transport that observes the messages in their order.
//!
//! The library handles each message in a task of its own, so that its handlers see them in any
//! order, and a response may come before the caller has the id of its request. Here a request is
//! known before it is sent, and its progress is shown before its response is passed on. A server
//! whose own requests wait for too many responses loses its connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    GetExtensions as _, GetMeta as _, JsonRpcMessage, JsonRpcNotification, RequestId, ServerNotification,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::timeout;

use super::in_flight::{Observer, Requests};

/// The most requests of a server that wait for their responses.
const MAX_INBOUND: usize = 64;
/// How long a transport may take to close, which includes ending a session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Observes the messages of another transport. A request has its observer, an `Arc<Observer>`,
/// among its extensions.
pub(super) struct ObservedTransport<T> {
    transport: T,
    requests: Arc<Requests>,
    inbound: Arc<Inbound>,
    /// Whether the server has sent too many requests.
    is_flooded: bool,
}

/// The requests of the server that wait for their responses.
#[derive(Debug, Default)]
struct Inbound(Mutex<Vec<RequestId>>);

/// A response that is being sent.
struct Responding {
    inbound: Arc<Inbound>,
    id: RequestId,
}

impl<T> ObservedTransport<T> {
    pub(super) fn new(transport: T, requests: &Arc<Requests>) -> Self {
        Self {
            transport,
            requests: Arc::clone(requests),
            inbound: Arc::default(),
            is_flooded: false,
        }
    }
}

impl Inbound {
    /// Adds a request. Returns whether the server may have so many.
    fn add(&self, id: &RequestId) -> bool {
        let mut waiting = self.0.lock();
        waiting.push(id.clone());
        waiting.len() <= MAX_INBOUND
    }

    fn remove(&self, id: &RequestId) {
        let mut waiting = self.0.lock();
        if let Some(at) = waiting.iter().position(|other| other == id) {
            waiting.swap_remove(at);
        }
    }
}

impl Drop for Responding {
    fn drop(&mut self) {
        self.inbound.remove(&self.id);
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ObservedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(sent) = &mut message
            && let Some(observer) = sent.request.extensions_mut().remove::<Arc<Observer>>()
        {
            let token = sent.request.get_meta().get_progress_token();
            self.requests.add(sent.id.clone(), token, &observer);
        }
        self.requests.open.note_sent(&message);
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let inbound = Arc::clone(&self.inbound);
        let responding = id.map(|id| Responding { inbound, id });
        let sending = self.transport.send(message);
        async move {
            let _responding = responding;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.requests.whole(self.transport.receive().await?);
        match &message {
            JsonRpcMessage::Response(response) => self.requests.open.end(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.requests.open.end(id);
                }
            }
            JsonRpcMessage::Request(request) if !self.inbound.add(&request.id) => {
                tracing::warn!(
                    max = MAX_INBOUND,
                    "the connection to an MCP server ends, since too many of its requests wait for responses"
                );
                self.is_flooded = true;
                return None;
            }
            JsonRpcMessage::Notification(JsonRpcNotification { notification, .. }) => match notification {
                ServerNotification::ProgressNotification(progress) => self.requests.show(&progress.params),
                // The library sends no response to a cancelled request.
                ServerNotification::CancelledNotification(cancelled) => {
                    if let Some(id) = &cancelled.params.request_id {
                        self.inbound.remove(id);
                    }
                }
                _ => (),
            },
            JsonRpcMessage::Request(_) => (),
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A transport over HTTP does not close while it has messages that nobody receives. It ends
        // when it is dropped.
        let limit = if self.is_flooded {
            Duration::ZERO
        } else {
            CLOSE_PATIENCE
        };
        timeout(limit, self.transport.close()).await.unwrap_or(Ok(()))
    }
}

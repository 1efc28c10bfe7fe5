//! A transport that observes the messages in their order.
//!
//! The library handles each message in a task of its own, so that its handlers see them in any
//! order, and a response may come before the caller has the id of its request. Here a request is
//! known before it is sent, and its progress is shown before its response is passed on.

use std::sync::Arc;

use rmcp::model::{GetExtensions as _, GetMeta as _, JsonRpcMessage, JsonRpcNotification, ServerNotification};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::in_flight::{Observer, Requests};

/// Observes the messages of another transport. A request has its observer, an `Arc<Observer>`,
/// among its extensions.
pub(super) struct ObservedTransport<T> {
    pub(super) transport: T,
    pub(super) requests: Arc<Requests>,
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
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        if let JsonRpcMessage::Notification(JsonRpcNotification { notification, .. }) = &message
            && let ServerNotification::ProgressNotification(progress) = notification
        {
            self.requests.show(&progress.params);
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

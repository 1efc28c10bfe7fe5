//! Messages to receivers outside, in the form that the Standard Webhooks specification recommends.
//! The outbox sends them.

use std::error::Error;

use serde::Serialize;

use agent::ports::WebhookEvent;
use agent::record::NewDelivery;
use values::clock::Timestamp;
use values::ids::{DeliveryId, IdSource};
use values::tenant::TenantId;

/// A message.
#[derive(Serialize)]
pub(super) struct WebhookMessage<'a, D> {
    #[serde(rename = "type")]
    pub(super) event: WebhookEvent,
    /// When it happened.
    pub(super) timestamp: Timestamp,
    pub(super) tenant: &'a TenantId,
    pub(super) data: D,
}

impl<D: Serialize> WebhookMessage<'_, D> {
    /// Returns the delivery of the message, with a new id. `None` if it can't be written as JSON.
    pub(super) fn delivery(&self, url: &str, secret: Option<&str>, ids: &dyn IdSource) -> Option<NewDelivery> {
        let body = serde_json::to_string(self);
        let body = body
            .inspect_err(|error| tracing::error!(error = error as &dyn Error, "a webhook's message can't be written"));
        Some(NewDelivery {
            delivery_id: DeliveryId::generate(ids),
            event: self.event,
            url: url.to_owned(),
            secret: secret.map(str::to_owned),
            body: body.ok()?,
            trace: None,
            created_at: self.timestamp,
        })
    }
}

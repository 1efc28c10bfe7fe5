//! Webhook messages of runs, and the state of their delivery.

use serde::Serialize;
use url::Url;

use super::named::named_values;
use crate::ports::WebhookEvent;
use values::clock::Timestamp;
use values::ids::{DeliveryId, RunId};
use values::trace_context::TraceContext;

/// A message to send, stored in the transaction that ends the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// The id of the message, by which receivers recognize a repeated one.
    pub delivery_id: DeliveryId,
    /// The reported end of the run.
    pub event: WebhookEvent,
    /// The address of the receiver.
    pub url: String,
    /// The name of the secret that signs it; `None` for an unsigned message.
    pub secret: Option<String>,
    /// The message: JSON.
    pub body: String,
    /// The span of the run that it is about, if its receiver gets it.
    pub trace: Option<TraceContext>,
    /// When it was stored, and is first due.
    pub created_at: Timestamp,
}

/// Returns the host of the address, in lower case and without a port; empty if the address has no
/// host.
///
/// Messages to one host share its slots, however their addresses are written.
pub fn receiver_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

named_values! {
    /// The status of a delivery.
    DeliveryStatus {
        /// The message is sent, or sent again, when it is due.
        Pending = "pending",
        /// The receiver has replied with success.
        Delivered = "delivered",
        /// All attempts have failed.
        Dead = "dead",
    }
}

/// A message to a webhook, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryRecord {
    /// The id of the message, which is its `webhook-id`.
    pub delivery_id: DeliveryId,
    /// The run that the message reports; null for a message about a limit of spending.
    pub run_id: Option<RunId>,
    /// What the message reports.
    pub event: WebhookEvent,
    /// The address of the message.
    pub url: String,
    /// The name of the secret that signs the message.
    pub secret: Option<String>,
    /// Whether the message is `pending`, `delivered` or `dead`.
    pub status: DeliveryStatus,
    /// The number of attempts since the end of the run, or since the last redelivery.
    pub attempts: u32,
    /// The status of the last reply.
    #[schema(minimum = 100, maximum = 999)]
    pub response_status: Option<u16>,
    /// The error of the last attempt.
    pub error: Option<String>,
    /// When the run ended, or when so much of the limit was spent.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub created_at: Timestamp,
    /// When the message is sent next. During an attempt: when another worker sends it, if this
    /// worker is lost. Null once the message is delivered or dead.
    #[serde(rename = "next_attempt_at")]
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    pub due_at: Option<Timestamp>,
    /// When the message was delivered.
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    pub delivered_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_its_host_however_the_address_is_written() {
        for (url, expected) in [
            ("https://example.org", "example.org"),
            ("http://EXAMPLE.org:8080/a/b?c#d", "example.org"),
            ("https://example.org.:443/x", "example.org"),
            ("HTTPS://example.org?run=1", "example.org"),
            ("https://zürich.example", "xn--zrich-kva.example"),
            ("https://0x7f.1/", "127.0.0.1"),
            ("https://[0:0::1]:1/#x", "[::1]"),
            ("a/b", ""),
            ("", ""),
        ] {
            assert_eq!(receiver_of(url), expected, "{url}");
        }
    }
}

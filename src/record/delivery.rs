//! Webhook messages of runs: what is to be sent, and the state of its delivery.

use url::Url;

use super::named::named_values;
use crate::agent::WebhookEvent;
use crate::clock::Timestamp;
use crate::ids::{DeliveryId, RunId};

/// A message to be sent, written in the transaction of what it reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Names it; receivers know a repeated message by it.
    pub delivery_id: DeliveryId,
    /// What it reports.
    pub event: WebhookEvent,
    /// Where it goes.
    pub url: String,
    /// The name of the secret that signs it; unsigned without.
    pub secret: Option<String>,
    /// The message: JSON.
    pub body: String,
    /// When it was written, and is due first.
    pub created_at: Timestamp,
}

/// Returns the host that receives what is sent to the address, in lower case and without a port.
/// Empty if the address has none.
///
/// Messages to one host share its slots, however their addresses are written.
pub fn receiver_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

named_values! {
    /// Where a delivery stands.
    DeliveryStatus {
        /// It is sent, or sent again, when it is due.
        Pending = "pending",
        /// The receiver has answered with success.
        Delivered = "delivered",
        /// All attempts have failed.
        Dead = "dead",
    }
}

/// A delivery without its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Names it.
    pub delivery_id: DeliveryId,
    /// The run that it reports on.
    pub run_id: RunId,
    /// What it reports.
    pub event: WebhookEvent,
    /// Where it goes.
    pub url: String,
    /// The name of the secret that signs it.
    pub secret: Option<String>,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// How often it was sent.
    pub attempts: u32,
    /// The status of the last answer.
    pub response_status: Option<u16>,
    /// Why the last attempt failed, in words for the caller.
    pub error: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it is sent next; none once it is over.
    pub due_at: Option<Timestamp>,
    /// When it was delivered.
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

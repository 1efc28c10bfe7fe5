//! Webhook messages of runs: what is to be sent, and the state of its delivery.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::agent::WebhookEvent;
use crate::clock::Timestamp;
use crate::ids::{DeliveryId, RunId};

/// A message to be sent, written in the transaction of what it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Names it; receivers know a repeated message by it.
    pub delivery_id: DeliveryId,
    /// What it tells of.
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

/// Returns the host that receives what is sent to the address, in lower case and without a port. Empty if the address has none.
///
/// Messages to one host share its slots, however their addresses are written.
pub fn receiver_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It is sent, or sent again, when it is due.
    Pending,
    /// The receiver has answered with success.
    Delivered,
    /// All attempts have failed.
    Dead,
}

/// A delivery without its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Names it.
    pub delivery_id: DeliveryId,
    /// The run that it tells of.
    pub run_id: RunId,
    /// What it tells of.
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

impl DeliveryStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

impl FromStr for DeliveryStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is none of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
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

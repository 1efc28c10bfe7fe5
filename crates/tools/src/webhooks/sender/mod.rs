//! Sends signed JSON to callers' addresses, by the Standard Webhooks specification 1.0. Knows
//! nothing of hooks.
//!
//! Callers choose the address, so `outgoing` guards the operator's network. The sender follows no
//! redirects and limits the bytes that it reads.

mod endpoint;
mod signature;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

pub use self::endpoint::{Endpoint, EndpointFault};
pub use self::signature::{SigningKeyError, SigningKeys};
use net::outgoing::{
    AddressRules, ClientError, ClientSettings, HeaderMap, HeaderValue, Method, NameResolver, OutgoingClient,
    OutgoingError, OutgoingRequest, PrivateAddresses, RuleKeys, SystemResolver, within,
};
use net::trace_header::trace_header;
use values::clock::Timestamp;
use values::http_headers::parse_retry_after;
use values::settings::{duration, integer};
use values::trace_context::TraceContext;

/// The limits of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SenderSettings {
    /// How long connecting may take.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// How long a whole delivery may take, unless it asks for less.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub timeout: Duration,
    /// The most bytes of a response.
    #[serde(deserialize_with = "integer::<_, 1_024, 1_073_741_824, _>")]
    pub max_response_bytes: usize,
    /// Whether the sender may connect to addresses that are not public.
    pub allow_private_addresses: bool,
    /// Whether messages may be sent unencrypted.
    pub allow_http: bool,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            max_response_bytes: 1 << 20,
            allow_private_addresses: false,
            allow_http: false,
        }
    }
}

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client for webhooks can't be made")]
pub struct SenderError(#[source] ClientError);

/// One message. A retry has the same id and a new time.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Where it goes.
    pub endpoint: &'a Endpoint,
    /// The id of the message: printable ASCII without dots. A receiver recognises a retry by this
    /// id.
    pub id: &'a str,
    /// When it is sent.
    pub timestamp: Timestamp,
    /// The message, as JSON.
    pub body: &'a Bytes,
    /// The signing keys; `None` for no signature.
    pub keys: Option<&'a SigningKeys>,
    /// Headers in addition to the headers of the specification.
    pub headers: Option<&'a HeaderMap>,
    /// The span of the run that sends it.
    pub trace: Option<TraceContext>,
    /// The timeout, at most the sender's own limit.
    pub timeout: Option<Duration>,
}

/// A response with a status of success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The status, from 200 to 299.
    pub status: u16,
    pub body: Bytes,
}

/// A message that was not delivered, or that the receiver refused.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The host name has no public address.
    #[error("its address is not public")]
    NotPublic,
    /// The receiver could not be reached.
    #[error("it can't be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The connection broke.
    #[error("the connection to it broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// The request took too long.
    #[error("it did not answer in time")]
    Timeout,
    /// The response is a redirect.
    #[error("it answered with a redirect (status {status}), which is not followed")]
    Redirect { status: u16 },
    /// The status of the response is an error.
    #[error("it answered with status {status}")]
    Status {
        status: u16,
        /// When the receiver wants the message again.
        retry_after: Option<Duration>,
    },
    /// The response has too many bytes.
    #[error("its response has more than {max} bytes")]
    TooLarge {
        /// The most bytes that are read.
        max: usize,
    },
    /// The id of the message is no valid header value.
    #[error("the message has an id that can't be sent")]
    Id,
}

/// Sends messages. It makes one attempt; callers retry.
#[derive(Debug, Clone)]
pub struct WebhookSender {
    client: OutgoingClient,
    settings: SenderSettings,
}

impl WebhookSender {
    /// Makes a sender.
    pub fn new(settings: SenderSettings) -> Result<Self, SenderError> {
        Self::with_resolver(settings, Arc::new(SystemResolver))
    }

    /// Makes a sender that resolves names by the resolver.
    pub fn with_resolver(settings: SenderSettings, resolver: Arc<dyn NameResolver>) -> Result<Self, SenderError> {
        let client_settings = ClientSettings {
            connect_timeout: settings.connect_timeout,
            decompress: false,
        };
        let client = OutgoingClient::new(rules(&settings), client_settings, resolver).map_err(SenderError)?;
        Ok(Self { client, settings })
    }

    /// Checks an address as far as that is possible before its name is resolved.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, EndpointFault> {
        let target = self.client.target(url)?;
        Ok(Endpoint::new(target))
    }

    /// Returns how long a whole delivery may take.
    pub fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// Returns the timeout of a delivery that requests the timeout `asked`.
    pub fn limit(&self, asked: Option<Duration>) -> Duration {
        let own = self.settings.timeout;
        asked.map_or(own, |timeout| timeout.min(own))
    }

    /// Sends a message once and reads the response.
    pub async fn send(&self, delivery: &Delivery<'_>) -> Result<Delivered, SendError> {
        let limit = self.limit(delivery.timeout);
        let request = OutgoingRequest {
            method: Method::POST,
            target: delivery.endpoint.target().clone(),
            headers: delivery.headers.cloned().unwrap_or_default(),
            origin_headers: headers(delivery)?,
            body: Some(delivery.body.clone()),
            max_redirects: 0,
        };
        let answered = within(limit, async {
            let response = self.client.send(request).await?;
            let status = response.status();
            let retry_after = retry_after(response.headers(), delivery.timestamp);
            let body = match status {
                200..=299 => Some(response.read(self.settings.max_response_bytes).await?),
                _ => None,
            };
            Ok((status, retry_after, body))
        });
        match answered.await? {
            (status, _, Some(body)) if body.is_complete => Ok(Delivered {
                status,
                body: body.bytes,
            }),
            (_, _, Some(_)) => Err(SendError::TooLarge {
                max: self.settings.max_response_bytes,
            }),
            (status @ 300..=399, ..) => Err(SendError::Redirect { status }),
            (status, retry_after, None) => Err(SendError::Status { status, retry_after }),
        }
    }
}

fn rules(settings: &SenderSettings) -> AddressRules {
    let private = if settings.allow_private_addresses {
        PrivateAddresses::All
    } else {
        PrivateAddresses::In(Vec::new())
    };
    AddressRules {
        allow_http: settings.allow_http,
        private,
        ..AddressRules::public(RuleKeys {
            allow_http: "webhooks.allow_http",
            private: "webhooks.allow_private_addresses",
        })
    }
}

/// Returns the headers of the specification.
fn headers(delivery: &Delivery<'_>) -> Result<HeaderMap, SendError> {
    let mut headers = HeaderMap::new();
    let id = HeaderValue::from_str(delivery.id).map_err(|_| SendError::Id)?;
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", id);
    headers.insert("webhook-timestamp", delivery.timestamp.timestamp().into());
    headers.extend(delivery.trace.and_then(trace_header));
    if let Some(keys) = delivery.keys {
        let signature = keys.sign(delivery.id, delivery.timestamp, delivery.body);
        let signature = HeaderValue::from_str(&signature).map_err(|_| SendError::Id)?;
        headers.insert("webhook-signature", signature);
    }
    Ok(headers)
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get("retry-after")?;
    parse_retry_after(value.to_str().ok()?, now)
}

impl From<OutgoingError> for SendError {
    fn from(error: OutgoingError) -> Self {
        match error {
            OutgoingError::NotPublic | OutgoingError::Redirect(_) | OutgoingError::TooManyRedirects { .. } => {
                Self::NotPublic
            }
            OutgoingError::Unreachable(cause) => Self::Unreachable(cause),
            OutgoingError::Broken(cause) => Self::Broken(cause),
            OutgoingError::Timeout => Self::Timeout,
        }
    }
}

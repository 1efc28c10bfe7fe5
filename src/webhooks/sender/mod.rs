//! Sends signed JSON to callers' addresses, by the Standard Webhooks specification 1.0. Knows
//! nothing of hooks.
//!
//! Callers choose the address, so the sender must not give them access to the operator's network.
//! By default it connects only to public addresses. It follows no redirects, uses no proxy and
//! limits the bytes that it reads.

mod endpoint;
mod public_address;
mod resolver;
mod signature;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};

pub use self::endpoint::{Endpoint, EndpointFault};
use self::resolver::{GuardedResolver, NotPublic};
pub use self::signature::{SigningKeyError, SigningKeys};
use crate::clock::Timestamp;
use crate::http_client::{client_builder, with_body};
use crate::http_headers::parse_retry_after;

/// The limits of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderSettings {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a whole delivery may take, unless it asks for less.
    pub timeout: Duration,
    /// The most bytes of a response.
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
pub struct SenderError(#[source] Box<dyn Error + Send + Sync>);

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
    /// Headers in addition to those of the specification.
    pub headers: Option<&'a HeaderMap>,
    /// The timeout, at most the sender's own limit.
    pub timeout: Option<Duration>,
}

/// A response with a status of success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The status, from 200 to 299.
    pub status: u16,
    /// The body.
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
    Unreachable(#[source] reqwest::Error),
    /// The connection broke.
    #[error("the connection to it broke")]
    Broken(#[source] reqwest::Error),
    /// It took too long.
    #[error("it did not answer in time")]
    Timeout,
    /// The response is a redirect.
    #[error("it answered with a redirect (status {status}), which is not followed")]
    Redirect {
        /// The status.
        status: u16,
    },
    /// The status of the response is an error.
    #[error("it answered with status {status}")]
    Status {
        /// The status.
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
    client: Client,
    settings: SenderSettings,
}

impl WebhookSender {
    /// Makes a sender.
    pub fn new(settings: SenderSettings) -> Result<Self, SenderError> {
        let client = client(&settings).map_err(SenderError)?;
        Ok(Self { client, settings })
    }

    /// Checks an address as far as that is possible before its name is resolved.
    pub fn endpoint(&self, url: &str) -> Result<Endpoint, EndpointFault> {
        Endpoint::parse(url, &self.settings)
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
        let sent = tokio::time::timeout(limit, self.send_unbounded(delivery)).await;
        sent.unwrap_or(Err(SendError::Timeout))
    }

    async fn send_unbounded(&self, delivery: &Delivery<'_>) -> Result<Delivered, SendError> {
        let request = self
            .client
            .post(delivery.endpoint.url.clone())
            .headers(delivery.headers.cloned().unwrap_or_default())
            .headers(headers(delivery)?);
        let request = with_body(request, delivery.body.clone());
        let response = request.send().await.map_err(not_sent)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(SendError::Redirect {
                status: status.as_u16(),
            });
        }
        if !status.is_success() {
            return Err(SendError::Status {
                status: status.as_u16(),
                retry_after: retry_after(response.headers(), delivery.timestamp),
            });
        }
        let body = read(response, self.settings.max_response_bytes).await?;
        Ok(Delivered {
            status: status.as_u16(),
            body,
        })
    }
}

/// Makes the HTTP client. It uses no proxy, since a proxy would resolve names without the checks.
fn client(settings: &SenderSettings) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let resolver = GuardedResolver {
        allow_private_addresses: settings.allow_private_addresses,
    };
    let builder = client_builder()?
        .connect_timeout(settings.connect_timeout)
        .dns_resolver(Arc::new(resolver))
        // The limit counts the bytes that are read, so decompression must not enlarge them
        // afterwards.
        .no_gzip();
    Ok(builder.build()?)
}

/// Returns the headers of the specification.
fn headers(delivery: &Delivery<'_>) -> Result<HeaderMap, SendError> {
    let mut headers = HeaderMap::new();
    let id = HeaderValue::from_str(delivery.id).map_err(|_| SendError::Id)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("webhook-id", id);
    headers.insert("webhook-timestamp", delivery.timestamp.timestamp().into());
    if let Some(keys) = delivery.keys {
        let signature = keys.sign(delivery.id, delivery.timestamp, delivery.body);
        let signature = HeaderValue::from_str(&signature).map_err(|_| SendError::Id)?;
        headers.insert("webhook-signature", signature);
    }
    Ok(headers)
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    parse_retry_after(value.to_str().ok()?, now)
}

/// Reads the body up to the limit.
async fn read(mut response: Response, max: usize) -> Result<Bytes, SendError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(broken)? {
        if body.len() + bytes.len() > max {
            return Err(SendError::TooLarge { max });
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body.into())
}

fn not_sent(error: reqwest::Error) -> SendError {
    let outermost: &(dyn Error + 'static) = &error;
    let mut causes = std::iter::successors(Some(outermost), |cause| (*cause).source());
    let is_refused = causes.any(<dyn Error>::is::<NotPublic>);
    if is_refused {
        SendError::NotPublic
    } else if error.is_timeout() {
        SendError::Timeout
    } else if error.is_connect() {
        SendError::Unreachable(error.without_url())
    } else {
        SendError::Broken(error.without_url())
    }
}

fn broken(error: reqwest::Error) -> SendError {
    SendError::Broken(error.without_url())
}

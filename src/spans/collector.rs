//! Sends spans to the collector, with the client for addresses that others choose. Here the
//! operator chooses the address, so it may be a private one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use parking_lot::Mutex;

use net::outgoing::{
    AddressRules, ClientError, ClientSettings, HeaderMap, Method, OutgoingClient, OutgoingRequest, SystemResolver,
    within,
};
use values::causes::with_causes;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a response. A collector responds with a few.
const MAX_RESPONSE: usize = 64 << 10;

/// The client of a collector.
pub(super) struct Collector {
    client: OutgoingClient,
    /// Whether it took the last spans; `None` before the first ones.
    took: Mutex<Option<bool>>,
}

impl Collector {
    pub(super) fn new() -> Result<Self, ClientError> {
        let settings = ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            decompress: false,
        };
        let client = OutgoingClient::new(AddressRules::of_operator(), settings, Arc::new(SystemResolver))?;
        let took = Mutex::default();
        Ok(Self { client, took })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = OutgoingRequest {
            method: Method::POST,
            target: self.client.target(&parts.uri.to_string())?,
            headers: parts.headers,
            origin_headers: HeaderMap::new(),
            body: Some(body),
            max_redirects: 0,
        };
        let sending = async {
            let response = self.client.send(request).await?;
            let status = response.status();
            Ok((status, response.read(MAX_RESPONSE).await?.bytes))
        };
        let (status, body) = within(TIMEOUT, sending).await?;
        Ok(Response::builder().status(status).body(body)?)
    }

    /// Logs the beginning and the end of an outage, with the address but none of its secrets.
    fn log(&self, host: &str, sent: &Result<Response<Bytes>, HttpError>) {
        let error = match sent {
            Err(error) => Some(with_causes(error.as_ref())),
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it responded with {}", response.status())),
        };
        if self.took.lock().replace(error.is_none()) == Some(error.is_none()) {
            return;
        }
        if let Some(error) = error {
            tracing::warn!(host, error, "the collector does not take spans");
        } else {
            tracing::info!(host, "the collector takes spans");
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (name, port) = (request.uri().host(), request.uri().port_u16());
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let host = name.unwrap_or_default().to_owned() + &port;
        let sent = self.send(request).await;
        self.log(&host, &sent);
        sent
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").finish_non_exhaustive()
    }
}

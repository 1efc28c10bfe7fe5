//! Sends spans to the collector, with the client for addresses that others choose. Here the
//! operator chooses the address, so it may be a private one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};

use net::outgoing::{
    AddressRules, ClientError, ClientSettings, HeaderMap, Method, OutgoingClient, OutgoingRequest, PrivateAddresses,
    RuleKeys, SystemResolver, within,
};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a response. A collector responds with a few.
const MAX_RESPONSE: usize = 64 << 10;

/// The client of a collector.
pub(super) struct Collector(OutgoingClient);

impl Collector {
    pub(super) fn new() -> Result<Self, ClientError> {
        let rules = AddressRules {
            allow_http: true,
            private: PrivateAddresses::All,
            ..AddressRules::public(RuleKeys::default())
        };
        let settings = ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            decompress: false,
        };
        OutgoingClient::new(rules, settings, Arc::new(SystemResolver)).map(Self)
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = OutgoingRequest {
            method: Method::POST,
            target: self.0.target(&parts.uri.to_string())?,
            headers: parts.headers,
            origin_headers: HeaderMap::new(),
            body: Some(body),
            max_redirects: 0,
        };
        let sending = async {
            let response = self.0.send(request).await?;
            let status = response.status();
            Ok((status, response.read(MAX_RESPONSE).await?.bytes))
        };
        let (status, body) = within(TIMEOUT, sending).await?;
        Ok(Response::builder().status(status).body(body)?)
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.send(request).await
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").finish_non_exhaustive()
    }
}

//! The HTTP client behind the guard, and a request to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response};
use serde::Deserialize;

use super::error::{ClientError, OutgoingError};
use super::redirects;
use super::resolver::{GuardedResolver, NameResolver};
use super::response::OutgoingResponse;
use super::rules::AddressRules;
use super::target::{Target, UrlFault};
use crate::http_client::{client_builder, with_body};
use values::settings::duration;

/// The most bytes of the headers of a response over HTTP/2. Over HTTP/1 a response has at most 100
/// headers and 400 KiB of them, by hyper's defaults.
const MAX_HEADER_BYTES: u32 = 64 << 10;
/// The most unused connections to one host.
const MAX_IDLE: usize = 8;
/// The longest time that a connection is unused before another request. Many servers close a
/// connection that has been unused for five seconds, possibly at the moment of a request.
const MAX_IDLE_TIME: Duration = Duration::from_secs(4);

/// Settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ClientSettings {
    /// How long connecting may take.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub connect_timeout: Duration,
    /// Whether responses may be compressed. Limits of bytes then count decompressed bytes.
    #[serde(skip)]
    pub decompress: bool,
}

/// A request.
#[derive(Debug, Clone)]
pub struct OutgoingRequest {
    pub method: Method,
    /// The checked URL.
    pub target: Target,
    /// Headers that may go to any origin.
    pub headers: HeaderMap,
    /// Headers that go only to the origin of the target, such as credentials. A redirect to another
    /// origin drops them.
    pub origin_headers: HeaderMap,
    /// The body; `None` for none.
    pub body: Option<Bytes>,
    /// How many redirects are followed. Only GET and HEAD follow any.
    pub max_redirects: usize,
}

/// Sends requests to addresses that its rules permit.
#[derive(Debug, Clone)]
pub struct OutgoingClient {
    client: Client,
    rules: Arc<AddressRules>,
}

impl OutgoingClient {
    /// Makes a client.
    pub fn new(
        rules: AddressRules,
        settings: ClientSettings,
        resolver: Arc<dyn NameResolver>,
    ) -> Result<Self, ClientError> {
        let rules = Arc::new(rules);
        let guarded = GuardedResolver {
            rules: Arc::clone(&rules),
            resolver,
        };
        let builder = client_builder().map_err(|error| ClientError(error.into()))?;
        let client = builder
            .connect_timeout(settings.connect_timeout)
            .dns_resolver(Arc::new(guarded))
            .pool_max_idle_per_host(MAX_IDLE)
            .pool_idle_timeout(MAX_IDLE_TIME)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .referer(false)
            .gzip(settings.decompress)
            .build();
        let client = client.map_err(|error| ClientError(error.into()))?;
        Ok(Self { client, rules })
    }

    /// Checks a URL as far as that is possible before its name is resolved.
    pub fn target(&self, url: &str) -> Result<Target, UrlFault> {
        Target::parse(url, &self.rules)
    }

    /// Sends a request, follows its redirects, and returns the head of the last response.
    pub async fn send(&self, request: OutgoingRequest) -> Result<OutgoingResponse, OutgoingError> {
        let OutgoingRequest {
            method,
            mut target,
            headers,
            mut origin_headers,
            body,
            max_redirects,
        } = request;
        let mut followed = 0;
        loop {
            let headers = merged(&headers, &origin_headers);
            let response = self.send_once(&method, &target, headers, body.clone()).await;
            let response = response.map_err(|error| self.named(error, followed))?;
            let next = redirects::next(&method, &target, &response).filter(|_| max_redirects > 0);
            let Some(next) = next else {
                return Ok(OutgoingResponse::new(response, target));
            };
            if followed == max_redirects {
                return Err(OutgoingError::TooManyRedirects { max: max_redirects });
            }
            followed += 1;
            let next = Target::check(next, &self.rules).map_err(OutgoingError::Redirect)?;
            if !next.is_same_origin(&target) {
                origin_headers.clear();
            }
            target = next;
        }
    }

    /// Names the redirect if a name that it leads to is refused. The caller knows the first host
    /// only.
    fn named(&self, error: OutgoingError, followed: usize) -> OutgoingError {
        match error {
            OutgoingError::NotPublic if followed > 0 => OutgoingError::Redirect(UrlFault::NotPublic {
                key: self.rules.keys.private,
            }),
            other => other,
        }
    }

    async fn send_once(
        &self,
        method: &Method,
        target: &Target,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, OutgoingError> {
        let request = self
            .client
            .request(method.clone(), target.url().clone())
            .headers(headers);
        let request = match body {
            Some(body) => with_body(request, body),
            None => request,
        };
        request.send().await.map_err(OutgoingError::not_sent)
    }
}

fn merged(headers: &HeaderMap, origin_headers: &HeaderMap) -> HeaderMap {
    let mut merged = headers.clone();
    merged.extend(origin_headers.clone());
    merged
}

//! Reads documents of identity providers over HTTP.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::{Host, Url};

use net::outgoing::{
    AddressRules, ClientError, ClientSettings, HeaderMap, Method, NameResolver, OutgoingClient, OutgoingError,
    OutgoingRequest, PrivateAddresses, RuleKeys, UrlFault, within,
};

/// How long a document may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The most bytes of a document.
const MAX_BYTES: usize = 256 << 10;

/// Reads a document.
#[async_trait]
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Returns the body of a successful response.
    async fn get(&self, url: &str) -> Result<Bytes, FetchError>;
}

/// Why the keys of an issuer can't be read, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is neither `https` nor on this machine.
    #[error("the address is not https")]
    NotEncrypted,
    /// The address can't be used.
    #[error("the address can't be used")]
    Url(#[source] UrlFault),
    /// There is no response.
    #[error("the identity provider can't be read")]
    Outgoing(#[source] OutgoingError),
    /// The response is no success. Redirects are not followed.
    #[error("the identity provider responds with the status {0}")]
    Status(u16),
    /// The document is too large.
    #[error("the document has more than 256 KiB")]
    TooLarge,
    /// The document is no JSON.
    #[error("the document is not JSON")]
    Json(#[source] serde_json::Error),
    /// The document lacks something.
    #[error("the document can't be used: {0}")]
    Form(&'static str),
}

/// Reads documents from the addresses that the operator has chosen, which may be private.
#[derive(Debug)]
pub struct HttpFetch(OutgoingClient);

impl HttpFetch {
    /// Makes the client.
    pub fn new(resolver: Arc<dyn NameResolver>) -> Result<Self, ClientError> {
        let rules = AddressRules {
            private: PrivateAddresses::All,
            allow_http: true,
            ..AddressRules::public(RuleKeys::default())
        };
        let settings = ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            decompress: false,
        };
        OutgoingClient::new(rules, settings, resolver).map(Self)
    }
}

#[async_trait]
impl Fetch for HttpFetch {
    async fn get(&self, url: &str) -> Result<Bytes, FetchError> {
        if !is_secure(url) {
            return Err(FetchError::NotEncrypted);
        }
        let request = OutgoingRequest {
            method: Method::GET,
            target: self.0.target(url).map_err(FetchError::Url)?,
            headers: HeaderMap::new(),
            origin_headers: HeaderMap::new(),
            body: None,
            max_redirects: 0,
        };
        let reading = async {
            let response = self.0.send(request).await?;
            let status = response.status();
            Ok::<_, OutgoingError>((status, response.read(MAX_BYTES).await?))
        };
        let (status, body) = within(TIMEOUT, reading).await.map_err(FetchError::Outgoing)?;
        if status != 200 {
            return Err(FetchError::Status(status));
        }
        if !body.is_complete {
            return Err(FetchError::TooLarge);
        }
        Ok(body.bytes)
    }
}

/// Returns whether nobody can change a document on its way: over `https`, or on this machine.
pub fn is_secure(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        for (url, expected) in [
            ("https://login.example.org/jwks", true),
            ("https://10.0.0.1/jwks", true),
            ("http://127.0.0.1:8080/jwks", true),
            ("http://[::1]/jwks", true),
            ("http://localhost/jwks", true),
            ("http://login.example.org/jwks", false),
            ("http://10.0.0.1/jwks", false),
            ("http://localhost.example.org/jwks", false),
            ("file:///etc/jwks", false),
            ("login.example.org", false),
        ] {
            assert_eq!(is_secure(url), expected, "{url}");
        }
    }
}

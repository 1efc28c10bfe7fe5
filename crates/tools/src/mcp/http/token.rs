//! Access tokens by the client credentials grant (RFC 6749, section 4.4).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::fault::DefinitionFault;
use crate::mcp::definition::OAuthDefinition;
use crate::{Redactor, SecretValue};
use net::outgoing::{HeaderMap, HeaderValue, Method, OutgoingClient, OutgoingError, OutgoingRequest, Target};

/// The largest response of a token endpoint.
const MAX_RESPONSE: usize = 64 << 10;
/// How long a token without an expiry is used.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(5);
/// How long a token is used at most.
const MAX_LIFETIME: Duration = Duration::from_hours(24);
/// How long before its expiry a token is renewed.
const MARGIN: Duration = Duration::from_secs(30);

/// Gets a token when it is needed, and renews it before it expires.
#[derive(Debug)]
pub(super) struct AccessToken {
    client: OutgoingClient,
    target: Target,
    authorization: HeaderValue,
    body: String,
    /// Removes the tokens from the messages of the server.
    redactor: Redactor,
    /// How long getting a token may take.
    limit: Duration,
    current: Mutex<Option<Current>>,
}

/// A token, as it is sent.
#[derive(Debug, Clone)]
struct Current {
    header: HeaderValue,
    expires_at: Instant,
}

/// The response of a token endpoint.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: SecretString,
    #[serde(default)]
    expires_in: Option<f64>,
}

/// The token endpoint gave no token. Its response is not shown, since it may contain secrets.
#[derive(Debug, thiserror::Error)]
pub(in crate::mcp) enum TokenError {
    #[error("the token endpoint did not respond within {0:?}")]
    Timeout(Duration),
    #[error("the token endpoint responded with HTTP {0}")]
    Status(u16),
    #[error("the token endpoint responded with something else than a token")]
    Response,
}

impl AccessToken {
    /// Adds its tokens to the redactor. `limit` is how long getting a token may take.
    pub(super) fn new(
        oauth: &OAuthDefinition,
        secret: &SecretValue,
        client: OutgoingClient,
        redactor: Redactor,
        limit: Duration,
    ) -> Result<Self, DefinitionFault> {
        let target = client.target(&oauth.token_url);
        let target = target.map_err(|fault| DefinitionFault::new("oauth.token_url", fault.to_string()))?;
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("grant_type", "client_credentials");
        if !oauth.scope.is_empty() {
            body.append_pair("scope", &oauth.scope);
        }
        // The id and the secret are encoded before they are joined (RFC 6749, section 2.3.1).
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&oauth.client_id), encoded(&secret.exposed()));
        let authorization = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        let mut authorization =
            authorization.map_err(|_| DefinitionFault::new("oauth.client_secret", "can't be sent in a header"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            client,
            target,
            authorization,
            body: body.finish(),
            redactor,
            limit,
            current: Mutex::default(),
        })
    }

    /// Returns the token. Requests that need one at the same time share it, so all of them fail
    /// within the limit if the endpoint does not respond.
    pub(super) async fn get(&self) -> Result<HeaderValue, OutgoingError> {
        let got = timeout(self.limit, self.current_or_new()).await;
        got.unwrap_or_else(|_| Err(OutgoingError::Broken(TokenError::Timeout(self.limit).into())))
    }

    async fn current_or_new(&self) -> Result<HeaderValue, OutgoingError> {
        let mut current = self.current.lock().await;
        if let Some(current) = current.as_ref().filter(|current| current.expires_at > Instant::now()) {
            return Ok(current.header.clone());
        }
        let new = self.request().await?;
        Ok(current.insert(new).header.clone())
    }

    /// Forgets a refused token. Returns whether there was one, so that a new one may be accepted.
    pub(super) async fn forget(&self, refused: Option<&HeaderValue>) -> bool {
        let mut current = self.current.lock().await;
        if current.as_ref().map(|current| &current.header) == refused {
            *current = None;
        }
        refused.is_some()
    }

    async fn request(&self) -> Result<Current, OutgoingError> {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        headers.insert("accept", HeaderValue::from_static("application/json"));
        headers.insert("authorization", self.authorization.clone());
        let request = OutgoingRequest {
            method: Method::POST,
            target: self.target.clone(),
            headers: HeaderMap::new(),
            origin_headers: headers,
            body: Some(self.body.clone().into()),
            max_redirects: 0,
        };
        let response = self.client.send(request).await?;
        let status = response.status();
        let failed = |error: TokenError| OutgoingError::Broken(error.into());
        if status != 200 {
            return Err(failed(TokenError::Status(status)));
        }
        let body = response.read(MAX_RESPONSE).await?;
        let token = serde_json::from_slice::<TokenResponse>(&body.bytes).ok();
        let token = token.ok_or_else(|| failed(TokenError::Response))?;
        // Before a server can repeat it.
        self.redactor.add(&token.access_token);
        token.into_current().ok_or_else(|| failed(TokenError::Response))
    }
}

impl TokenResponse {
    fn into_current(self) -> Option<Current> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", self.access_token.expose_secret())).ok()?;
        header.set_sensitive(true);
        let lifetime = self
            .expires_in
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
        let until_renewal = lifetime.saturating_sub(MARGIN).max(lifetime / 2);
        Some(Current {
            header,
            expires_at: Instant::now() + until_renewal,
        })
    }
}

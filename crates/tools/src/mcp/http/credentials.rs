//! The headers of every request: the headers of the definition, and an access token.

use super::token::AccessToken;
use crate::fault::DefinitionFault;
use crate::mcp::definition::McpDefinition;
use crate::{Redactor, SecretValue, ToolSecrets, ValueSource, header_name};
use net::outgoing::{HeaderMap, HeaderName, HeaderValue, OutgoingClient, OutgoingError};

/// Headers that the protocol sets.
const PROTOCOL_HEADERS: [&str; 5] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-session-id",
    "mcp-protocol-version",
];

/// The headers and the token by which the server recognises the caller.
#[derive(Debug)]
pub(super) struct Credentials {
    headers: HeaderMap,
    token: Option<AccessToken>,
}

impl Credentials {
    /// Reads the credentials of a definition. Also returns the filter that removes them from texts.
    pub(super) fn of(
        definition: &McpDefinition,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
    ) -> Result<(Self, Redactor), DefinitionFault> {
        let mut headers = HeaderMap::new();
        let mut used = Vec::new();
        for (name, source) in &definition.headers {
            let (name, value) = header(name, source, secrets, &mut used)?;
            headers.insert(name, value);
        }
        let secret_of_token = match &definition.oauth {
            None => None,
            Some(_) if headers.contains_key("authorization") => {
                let problem = "a server has either the header Authorization or `oauth`";
                return Err(DefinitionFault::new("oauth", problem));
            }
            Some(oauth) => {
                let secret = SecretValue::find(secrets, "oauth.client_secret", &oauth.client_secret, "")?;
                Some((oauth, secret))
            }
        };
        let redactor = Redactor::new(used.iter().chain(secret_of_token.as_ref().map(|(_, secret)| secret)));
        let limit = definition.connect_timeout();
        let token = secret_of_token
            .map(|(oauth, secret)| AccessToken::new(oauth, &secret, client.clone(), redactor.clone(), limit));
        let token = token.transpose()?;
        Ok((Self { headers, token }, redactor))
    }

    /// Returns the headers of a request.
    pub(super) async fn headers(&self) -> Result<HeaderMap, OutgoingError> {
        let mut headers = self.headers.clone();
        if let Some(token) = &self.token {
            headers.insert("authorization", token.get().await?);
        }
        Ok(headers)
    }

    /// Forgets the token of refused headers, unless there is a newer one. Returns whether another
    /// request may succeed.
    pub(super) async fn renew(&self, refused: &HeaderMap) -> bool {
        match &self.token {
            Some(token) => token.forget(refused.get("authorization")).await,
            None => false,
        }
    }
}

fn header(
    name: &str,
    source: &ValueSource,
    secrets: &ToolSecrets,
    used: &mut Vec<SecretValue>,
) -> Result<(HeaderName, HeaderValue), DefinitionFault> {
    let key = format!("headers.{name}");
    let fault = |problem: &str| DefinitionFault::new(&key, problem);
    let parsed = header_name(&key, name, source)?;
    if PROTOCOL_HEADERS.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
        return Err(fault("the service sets this header itself"));
    }
    let value = source.resolve(&key, secrets, used)?;
    let sent = HeaderValue::from_str(&value).ok().filter(|_| value.is_ascii());
    let mut sent = sent.ok_or_else(|| fault("can't be sent in a header"))?;
    sent.set_sensitive(true);
    Ok((parsed, sent))
}

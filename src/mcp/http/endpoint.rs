//! A server at an address.

use std::sync::Arc;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio_util::sync::DropGuard;

use super::client::GuardedHttp;
use super::credentials::Credentials;
use crate::mcp::definition::McpDefinition;
use crate::mcp::fault::McpFault;
use crate::outgoing::OutgoingClient;
use crate::tools::{Redactor, ToolSecrets};

/// The most requests to a server at the same time, for each tenant.
const MAX_REQUESTS: usize = 16;

/// How a server over HTTP is reached.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct HttpEndpoint {
    http: GuardedHttp,
    url: Arc<str>,
}

/// The transport of a connection over HTTP.
pub(in crate::mcp) type HttpTransport = StreamableHttpClientTransport<GuardedHttp>;

impl HttpEndpoint {
    /// Checks the address and the credentials of a definition. Also returns what removes the
    /// credentials from texts.
    pub(in crate::mcp) fn new(
        definition: &McpDefinition,
        url: &str,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
    ) -> Result<(Self, Redactor), McpFault> {
        let target = client.target(url);
        let target = target.map_err(|fault| McpFault::new("url", fault.to_string()))?;
        let (credentials, redactor) = Credentials::of(definition, secrets, client)?;
        let url = target.url().as_str().into();
        let http = GuardedHttp::new(client.clone(), target, credentials, definition.max_response_bytes);
        Ok((Self { http, url }, redactor))
    }

    /// Makes the transport of a new connection. Its requests end when the guard is dropped.
    pub(in crate::mcp) fn transport(&self) -> (HttpTransport, DropGuard) {
        let config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url));
        let config = config.max_concurrent_requests(MAX_REQUESTS);
        let (http, guard) = self.http.connection();
        (StreamableHttpClientTransport::with_client(http, config), guard)
    }
}

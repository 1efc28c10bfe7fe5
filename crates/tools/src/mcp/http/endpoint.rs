//! A server at an address.

use std::sync::Arc;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::client::{GuardedHttp, HttpServer};
use super::credentials::Credentials;
use crate::fault::DefinitionFault;
use crate::mcp::definition::McpDefinition;
use crate::mcp::incoming::Incoming;
use crate::mcp::requests::Requests;
use crate::{Redactor, ToolSecrets};
use net::outgoing::OutgoingClient;
use values::tenant::TenantId;

/// How a server over HTTP is reached.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct HttpEndpoint {
    name: String,
    server: Arc<HttpServer>,
    redactor: Redactor,
    url: Arc<str>,
}

/// The transport of a connection over HTTP.
pub(in crate::mcp) type HttpTransport = StreamableHttpClientTransport<GuardedHttp>;

impl HttpEndpoint {
    /// Checks the address and the credentials of a definition.
    pub(in crate::mcp) fn new(
        definition: &McpDefinition,
        url: &str,
        secrets: &ToolSecrets,
        client: &OutgoingClient,
    ) -> Result<Self, DefinitionFault> {
        let target = client.target(url);
        let target = target.map_err(|fault| DefinitionFault::new("url", fault.to_string()))?;
        let (credentials, redactor) = Credentials::of(definition, secrets, client)?;
        let url = target.url().as_str().into();
        let server = Arc::new(HttpServer {
            client: client.clone(),
            target,
            credentials,
            max_response_bytes: definition.max_response_bytes,
        });
        Ok(Self {
            name: definition.name.clone(),
            server,
            redactor,
            url,
        })
    }

    /// Makes the transport of a tenant's new connection.
    pub(in crate::mcp) fn transport(&self, tenant: &TenantId, requests: &Arc<Requests>) -> HttpTransport {
        let config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url));
        // The connection has a limit of its own, which also counts requests whose responses are
        // streams.
        let config = config.max_concurrent_requests(usize::MAX);
        let incoming = Incoming::new(&self.name, &self.redactor, tenant, requests);
        let http = GuardedHttp::new(&self.server, incoming);
        StreamableHttpClientTransport::with_client(http, config)
    }
}

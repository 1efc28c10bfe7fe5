//! A server as one tenant calls it, and the errors that models read.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, GetMeta as _};

use super::connection::Reply;
use super::observer::Observer;
use super::request_error::RequestError;
use super::server::McpServer;
use agent::ports::ToolError;
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// How long the executor waits beyond the timeout, so that the tool's own error comes first.
const GRACE: Duration = Duration::from_secs(1);

/// A server, and the tenant that sends it requests.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) server: Arc<McpServer>,
    pub(super) tenant: TenantId,
}

/// Adds the span of a call to a request, as the protocol has it.
pub(super) fn traced(mut request: ClientRequest, trace: Option<TraceContext>) -> ClientRequest {
    if let Some(trace) = trace {
        request.get_meta_mut().set_traceparent(trace.to_string());
    }
    request
}

impl Caller {
    /// Returns the timeout of a call for the executor.
    pub(super) fn timeout(&self) -> Duration {
        let definition = &self.server.definition;
        definition.timeout + definition.connect_timeout() + GRACE
    }

    /// Sends a request. The error is for the model.
    pub(super) async fn request(&self, request: ClientRequest, observer: Observer) -> Result<Reply, ToolError> {
        let reply = self.server.request(&self.tenant, request, observer).await;
        reply.map_err(|error| self.failed(&error))
    }

    /// Makes the error of a request.
    pub(super) fn failed(&self, error: &RequestError) -> ToolError {
        self.error(&error.to_string())
    }

    /// Makes an error about the server.
    pub(super) fn error(&self, words: &str) -> ToolError {
        let server = &self.server.definition.name;
        tracing::info!(server, error = words, "a call of an MCP server failed");
        ToolError::new(format!("the MCP server {server:?} gave no result: {words}"))
    }
}

//! The span of a tool call. Its context is in the message, beside that of the HTTP request.

use std::sync::Arc;

use rmcp::model::CallToolResponse;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::server::McpServer;
use crate::spans::{McpCall, McpCallSpan, Traces};

/// The recording of a call. Ends with the call, also if the client does not wait for it.
pub(super) struct CallTrace<'a> {
    traces: Arc<Traces>,
    span: McpCallSpan,
    call: McpCall<'a>,
}

impl<'a> CallTrace<'a> {
    /// Begins the span of a call, and makes the runs of the server a part of it. `None` if nothing
    /// is recorded.
    pub(super) fn begin(server: &mut McpServer, tool: &'a str, context: &RequestContext<RoleServer>) -> Option<Self> {
        let traces = server.call.api.runs.traces.clone()?;
        let origin = server.call.origin.as_mut()?;
        let caller = context.meta.get_traceparent();
        let span = traces.begin_mcp_call(origin.trace?, caller.and_then(|text| text.parse().ok()));
        origin.trace = Some(span.context);
        let call = McpCall {
            tool,
            request_id: context.id.to_string(),
            protocol_version: context.protocol_version().map(|version| version.to_string()),
            error: Some("cancelled".into()),
        };
        Some(Self { traces, span, call })
    }

    /// Notes the response.
    pub(super) fn responded(&mut self, response: &Result<CallToolResponse, ErrorData>) {
        self.call.error = match response {
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => Some("tool_error".into()),
            Ok(_) => None,
            Err(error) => Some(error.code.0.to_string().into()),
        };
    }
}

impl Drop for CallTrace<'_> {
    fn drop(&mut self) {
        self.traces.end_mcp_call(&self.span, &self.call);
    }
}

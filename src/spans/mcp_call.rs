//! The span of a tool call that a client makes over MCP. One HTTP request has one message, but the
//! message has a trace context of its own.

use std::borrow::Cow;

use opentelemetry::trace::SpanKind;

use super::genai;
use super::span::{SpanDraft, ids, linked};
use super::traces::Traces;
use values::clock::Timestamp;
use values::trace_context::TraceContext;

/// A tool call in progress.
#[derive(Debug)]
pub struct McpCallSpan {
    /// The position of the call, for the run that it starts.
    pub context: TraceContext,
    parent: TraceContext,
    /// The other one of the caller's span and the request's span.
    link: Option<TraceContext>,
    began: Timestamp,
}

/// What the span has of a call that has ended.
#[derive(Debug)]
pub struct McpCall<'a> {
    /// The agent.
    pub tool: &'a str,
    /// The id of the message.
    pub request_id: String,
    /// The revision of the protocol, if the client names one.
    pub protocol_version: Option<String>,
    /// The kind of the failure.
    pub error: Option<Cow<'static, str>>,
}

impl Traces {
    /// Begins the span of a call within an HTTP request. It is below the caller's span, with a link
    /// to the request, if callers are trusted. Otherwise it is below the request, with a link to
    /// the caller.
    pub fn begin_mcp_call(&self, request: TraceContext, caller: Option<TraceContext>) -> McpCallSpan {
        let trusted = self.trusted(caller);
        let parent = trusted.unwrap_or(request);
        let is_sampled = match trusted {
            Some(caller) => self.is_sampled(ids(&caller).0, Some(caller)),
            None => request.is_sampled,
        };
        McpCallSpan {
            context: TraceContext {
                trace_id: parent.trace_id,
                span_id: self.fresh().span_id,
                is_sampled,
            },
            parent,
            link: trusted.map(|_| request).or(caller),
            began: self.now(),
        }
    }

    /// Ends the span of a call.
    pub fn end_mcp_call(&self, span: &McpCallSpan, call: &McpCall<'_>) {
        if !span.context.is_sampled {
            return;
        }
        let (trace_id, span_id) = ids(&span.context);
        let mut draft = SpanDraft::new(trace_id, span_id, ids(&span.parent).1, span.began, self.now());
        draft.kind = SpanKind::Server;
        draft.name = format!("{} {}", genai::MCP_TOOLS_CALL, call.tool).into();
        draft.links.links.extend(span.link.as_ref().map(linked));
        draft.error = call.error.as_deref().map(str::to_owned);
        draft.set(genai::OPERATION, Some(genai::EXECUTE_TOOL));
        draft.set(genai::TOOL_NAME, Some(call.tool.to_owned()));
        draft.set(genai::MCP_METHOD, Some(genai::MCP_TOOLS_CALL));
        draft.set(genai::MCP_VERSION, call.protocol_version.clone());
        draft.set(genai::JSONRPC_ID, Some(call.request_id.clone()));
        self.add(draft);
    }
}

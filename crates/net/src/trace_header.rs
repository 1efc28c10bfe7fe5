//! The header that names the span of a request, so that its receiver continues the trace.
//!
//! Source: W3C Trace Context, <https://www.w3.org/TR/trace-context/>.

use reqwest::header::{HeaderName, HeaderValue};

use values::trace_context::TraceContext;

/// The name of the header.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Makes the header.
pub fn trace_header(trace: TraceContext) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(&trace.to_string());
    value.ok().map(|value| (TRACEPARENT, value))
}

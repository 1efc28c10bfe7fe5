//! The span of a run in the log.

use tracing::Span;
use tracing::field::{Empty, display};

use crate::run::RequestOrigin;
use values::ids::RunId;
use values::tenant::TenantId;

/// Creates the span of one attempt at a run. Every log line within it has these fields.
///
/// The span has no parent, since a run outlives its request. Its level is `ERROR`, so that every
/// filter that passes a line of the run also includes the span.
pub(in crate::run) fn run_span(tenant: &TenantId, run_id: RunId, attempt: u32, origin: Option<&RequestOrigin>) -> Span {
    let span = tracing::error_span!(
        parent: None, "run.execute", %run_id, %tenant, attempt, request_id = Empty, trace_id = Empty
    );
    if let Some(origin) = origin {
        record(&span, origin);
    }
    span
}

/// Adds the request to the current run's span. A worker knows it only after it has read the request
/// of the run.
pub(in crate::run) fn record_origin(origin: &RequestOrigin) {
    record(&Span::current(), origin);
}

fn record(span: &Span, origin: &RequestOrigin) {
    span.record("request_id", origin.request_id.as_str());
    if let Some(trace) = origin.trace {
        span.record("trace_id", display(trace.trace_id));
    }
}

//! The span of a run in the log.

use tracing::Span;

use values::ids::RunId;
use values::tenant::TenantId;

/// Creates the span of one attempt at a run. Every log line within it has these fields.
///
/// The span has no parent, since a run outlives its request. Its level is `ERROR`, so that every
/// filter that passes a line of the run also includes the span.
pub(in crate::run) fn run_span(tenant: &TenantId, run_id: RunId, attempt: u32, request_id: Option<&str>) -> Span {
    tracing::error_span!(parent: None, "run.execute", %run_id, %tenant, attempt, request_id)
}

/// Adds the request id to the current run's span. A worker knows it only after it has read the
/// request.
pub(in crate::run) fn record_request(request_id: &str) {
    Span::current().record("request_id", request_id);
}

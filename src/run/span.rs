//! The span of a run in the log.

use tracing::Span;

use crate::ids::RunId;
use crate::tenant::TenantId;

/// Makes the span of one attempt at a run. Every line that is logged within it has these fields.
///
/// It has no parent, since a run outlives its request. Its level is that of errors, so no filter
/// that lets a line of the run pass leaves the span out.
pub(super) fn run_span(tenant: &TenantId, run_id: RunId, attempt: u32, request_id: Option<&str>) -> Span {
    tracing::error_span!(parent: None, "run.execute", %run_id, %tenant, attempt, request_id)
}

/// Adds the request to the span of the run at work here. A worker knows it once it has read what
/// was asked.
pub(super) fn record_request(request_id: &str) {
    Span::current().record("request_id", request_id);
}

//! The span of a run in the log, and its spans for a collector.

use std::sync::Arc;

use tracing::Span;
use tracing::field::{Empty, display};

use crate::run::RequestOrigin;
use crate::run::context::RunContext;
use crate::spans::RunTrace;
use agent::record::RunSummary;
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

/// Begins the spans of an attempt at a run that are sent to a collector.
pub(in crate::run) fn run_trace(
    ctx: &RunContext,
    tenant: &TenantId,
    run: &RunSummary,
    origin: Option<&RequestOrigin>,
) -> Option<Arc<RunTrace>> {
    let request = origin.and_then(|origin| origin.trace.as_ref());
    ctx.traces.as_ref()?.run(run, tenant, request).map(Arc::new)
}

fn record(span: &Span, origin: &RequestOrigin) {
    span.record("request_id", origin.request_id.as_str());
    if let Some(trace) = origin.trace {
        span.record("trace_id", display(trace.trace_id));
    }
}

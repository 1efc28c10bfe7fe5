//! Starts the runs of these routes.

use tracing::Span;
use tracing::field::display;

use crate::http::auth::Call;
use crate::http::problem::Problem;
use crate::run::{self, OnDisconnect, RequestKey, RunHandle, RunRequest};
use values::limits::TenantShare;

/// The parts of a request that its body does not have.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The idempotency key.
    pub(super) key: Option<RequestKey>,
    /// The name of the request in the log.
    pub(super) request_id: Option<String>,
}

/// Returns the run of an earlier request with the key. It is found before anything is read that the
/// earlier run may have changed.
pub(super) async fn earlier(call: &Call, envelope: &Envelope) -> Result<Option<RunHandle>, Problem> {
    let Some(key) = &envelope.key else { return Ok(None) };
    let replayed = run::replay(&call.api.runs, &call.tenant, key).await;
    replayed.map_err(|refusal| call.problem(refusal))
}

/// Starts a run. A run with a key continues without its caller, who can repeat the request.
pub(super) async fn start(call: &Call, envelope: Envelope, request: RunRequest) -> Result<RunHandle, Problem> {
    let on_disconnect = if envelope.key.is_some() {
        OnDisconnect::Continue
    } else {
        OnDisconnect::Cancel
    };
    let request = RunRequest {
        idempotency: envelope.key,
        request_id: envelope.request_id,
        limits: call.run_limits(),
        on_disconnect,
        ..request
    };
    let started = run::start(&call.api.runs, call.tenant.clone(), request).await;
    let handle = started.map_err(|refusal| call.problem(refusal))?;
    Span::current().record("run_id", display(handle.run_id));
    Ok(handle)
}

/// Counts a caller that repeats a request, and so reads the run of another one.
pub(super) fn counted(call: &Call, handle: &RunHandle) -> Result<Option<TenantShare>, Problem> {
    let reads = handle.is_replay && !handle.has_ended();
    reads.then(|| call.api.take_reader(&call.tenant)).transpose()
}

//! Starts the runs of these routes.

use tracing::Span;
use tracing::field::display;

use super::body::no_response;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::ids::response_id;
use crate::http::problem::Problem;
use crate::run::refusal::Refusal;
use crate::run::{self, OnDisconnect, RequestKey, RequestOrigin, RunHandle, RunRequest};
use agent::FormatError;
use values::limits::TenantShare;

/// The parts of a request that its body does not have.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The idempotency key.
    pub(super) key: Option<RequestKey>,
    /// The name of the request in the log.
    pub(super) origin: Option<RequestOrigin>,
}

/// Starts a run, unless an earlier request with the key has started it. `prepare` makes the request
/// for the run; it reads what the earlier run may have changed. Refuses a key whose response was
/// deleted.
///
/// A run with a key continues without its caller, who can repeat the request.
pub(super) async fn start(
    call: &Call,
    envelope: Envelope,
    prepare: impl Future<Output = Result<RunRequest, Problem>>,
) -> Result<RunHandle, Problem> {
    let (runs, tenant) = (&call.api.runs, &call.tenant);
    let on_disconnect = match &envelope.key {
        None => OnDisconnect::Cancel,
        Some(key) => {
            let earlier = run::replay(runs, tenant, key).await;
            if let Some(handle) = earlier.map_err(|refusal| call.problem(refusal))? {
                Span::current().record("run_id", display(handle.run_id));
                if handle.is_hidden() {
                    return Err(no_response(&response_id(handle.run_id)));
                }
                return Ok(handle);
            }
            OnDisconnect::Continue
        }
    };
    let request = RunRequest {
        idempotency: envelope.key,
        origin: envelope.origin,
        limits: call.run_limits(),
        created_by: call.creator(),
        on_disconnect,
        ..prepare.await?
    };
    let started = run::start_new(runs, tenant.clone(), request).await;
    let handle = started.map_err(|refusal| refused(call, refusal))?;
    Span::current().record("run_id", display(handle.run_id));
    Ok(handle)
}

/// Makes the problem of a refused request. An agent has no invalid format, so the request has it.
fn refused(call: &Call, refusal: Refusal) -> Problem {
    match refusal {
        Refusal::ResponseFormat(error) => {
            let pointer = match &error {
                FormatError::Name { .. } => "/response_format/name",
                FormatError::Schema(_) => "/response_format/schema",
            };
            Problem::of_field(ProblemCode::InvalidResponseFormat, pointer, error.to_string())
        }
        refusal => call.problem(refusal),
    }
}

/// Counts a caller that repeats a request, and so reads the run of another one.
pub(super) fn counted(call: &Call, handle: &RunHandle) -> Result<Option<TenantShare>, Problem> {
    let reads = handle.is_replay && !handle.has_ended();
    reads.then(|| call.api.take_reader(&call.tenant)).transpose()
}

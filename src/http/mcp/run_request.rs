//! Makes the requests for runs. The fields are the fields of `POST /v1/runs`.

use crate::http::auth::Call;
use crate::run::{InputMessage, OnDisconnect, RequestKey, RunRequest};
use agent::answers::Answers;
use agent::record::{RunMode, RunRecord};
use values::ids::SessionId;
use values::message::ContentPart;

/// Makes the request for a run of an agent.
pub(super) fn new_run(
    call: &Call,
    agent: &str,
    input: String,
    session: Option<SessionId>,
    mode: RunMode,
) -> RunRequest {
    RunRequest {
        base_session_id: session,
        agent: Some(agent.to_owned()),
        input: vec![InputMessage::of_user(vec![ContentPart::text(input)])],
        limits: call.run_limits(),
        created_by: call.creator(),
        origin: call.origin.clone(),
        ..RunRequest::new(mode)
    }
}

/// Makes the request for the run that answers the open calls of another one. Like every request
/// with an idempotency key, it continues without its caller.
pub(super) fn answering_run(
    call: &Call,
    waiting: &RunRecord,
    answers: Answers,
    key: RequestKey,
    mode: RunMode,
) -> RunRequest {
    let waiting = &waiting.summary;
    RunRequest {
        base_session_id: Some(waiting.session_id),
        thread: waiting.moved_thread().cloned(),
        answers,
        idempotency: Some(key),
        on_disconnect: OnDisconnect::Continue,
        limits: call.run_limits(),
        created_by: call.creator(),
        origin: call.origin.clone(),
        ..RunRequest::new(mode)
    }
}

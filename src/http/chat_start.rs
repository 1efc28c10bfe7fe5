//! Starts the runs of pages.

use super::auth::Call;
use super::chat_thread::ChatThread;
use super::checks::check_agent_name;
use super::codes::ProblemCode;
use super::faces::chat::ChatEcho;
use super::parameters::{QueryParameters, invalid};
use super::problem::Problem;
use crate::run::refusal::Refusal;
use crate::run::{
    self, InputMessage, OnDisconnect, ReaderGrace, RequestKey, RequestOrigin, RunHandle, RunRequest, ThreadFrom,
    offered_lookup,
};
use agent::answers::{Answer, Answers};
use agent::definition::DurabilityChoice;
use agent::record::{RunControl, RunMode, ThreadName};
use store::queue::IfBusy;
use values::ids::SessionId;

/// How long a run goes on without any reader, in seconds, unless the request says something else.
const GRACE: u32 = 15;
/// The most runs that a request ends.
const MAX_ENDED: usize = 100;

/// The parts of a request for a run that its body does not have.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The name of the agent.
    pub(super) agent: String,
    /// The thread, if it has one.
    pub(super) thread: Option<ThreadName>,
    /// The idempotency key.
    pub(super) key: Option<RequestKey>,
    /// How the run ends without the caller.
    pub(super) on_disconnect: OnDisconnect,
    /// How the run ends without any reader for a while.
    pub(super) reader_grace: Option<ReaderGrace>,
    /// The name of the request in the log.
    pub(super) origin: Option<RequestOrigin>,
}

/// Starts a run.
pub(super) async fn start(call: &Call, envelope: Envelope, request: RunRequest) -> Result<RunHandle, Refusal> {
    let request = RunRequest {
        agent: Some(envelope.agent),
        thread: envelope.thread,
        idempotency: envelope.key,
        durability: Some(DurabilityChoice::Step),
        on_disconnect: envelope.on_disconnect,
        reader_grace: envelope.reader_grace,
        limits: call.run_limits(),
        created_by: call.creator(),
        origin: envelope.origin,
        ..request
    };
    run::start_new(&call.api.runs, call.tenant.clone(), request).await
}

/// What a request finds on its thread.
pub(super) enum Way {
    /// Nothing at work.
    Free,
    /// The run at work was ended. The thread may have moved.
    Cleared,
    /// The run of an earlier request with the same key.
    Known(RunHandle),
}

/// Ends the run at work, and those in the queue, which are in the way of a request with a key.
pub(super) async fn make_way(
    thread: &ChatThread<'_>,
    key: Option<&RequestKey>,
    control: RunControl,
) -> Result<Way, Problem> {
    let mut way = Way::Free;
    // The newest first: the end of an older one would let it begin.
    for _ in 0..MAX_ENDED {
        let Some(active) = thread.last_active_run().await? else {
            break;
        };
        // The same request may have come several times at once.
        if let Some(key) = key
            && let Some(known) = thread.known_run(key).await?
        {
            return Ok(Way::Known(known));
        }
        thread.end(&active, control).await?;
        way = Way::Cleared;
    }
    Ok(way)
}

/// Makes the request for a run that answers messages of the user, which come after a session. Open
/// calls of the session are denied: the user goes on without an answer, perhaps once more.
pub(super) fn message_request(base: Option<SessionId>, input: Vec<InputMessage>) -> RunRequest {
    RunRequest {
        thread_from: Some(ThreadFrom { session_id: base }),
        if_busy: IfBusy::Interrupt,
        echo: Some(ChatEcho::of_request(&input).stored()),
        input,
        answers: Answers {
            deny_open: true,
            is_fork: true,
            ..Answers::default()
        },
        ..RunRequest::new(RunMode::Stream)
    }
}

/// Makes the request for a run that goes on after answers to open calls of a session. New messages
/// of the user deny the others, and so does a request without answers.
pub(super) fn answer_request(base: Option<SessionId>, answers: Vec<Answer>, input: Vec<InputMessage>) -> RunRequest {
    RunRequest {
        base_session_id: base,
        echo: Some(ChatEcho::of_request(&input).stored()),
        answers: Answers {
            deny_open: !input.is_empty() || answers.is_empty(),
            answers,
            ..Answers::default()
        },
        input,
        ..RunRequest::new(RunMode::Stream)
    }
}

/// Refuses an agent that does not exist, before a message for it interrupts another one.
pub(super) async fn check_agent(call: &Call, name: &str) -> Result<(), Problem> {
    check_agent_name(name, "agent")?;
    let found = offered_lookup(&call.api.runs, &call.tenant, &call.run_limits(), name).await?;
    let missing = || Problem::new(ProblemCode::AgentNotFound, format!("there is no agent named {name:?}"));
    found.map(|_| ()).ok_or_else(missing)
}

/// Takes how a run ends without a reader.
pub(super) fn take_grace(mut query: QueryParameters) -> Result<Option<ReaderGrace>, Problem> {
    let on_disconnect = match query.text("on_disconnect")?.as_deref() {
        None | Some("stop") => OnDisconnect::Stop,
        Some("cancel") => OnDisconnect::Cancel,
        Some("continue") => OnDisconnect::Continue,
        Some(_) => return Err(invalid("on_disconnect", "none of `stop`, `cancel` and `continue`")),
    };
    // Other parameters are the page's own, like unknown fields of the body.
    let grace = query.number::<u32>("grace_seconds")?.unwrap_or(GRACE);
    if !(1..=ReaderGrace::MAX_SECONDS).contains(&grace) {
        let words = format!("not between 1 and {}", ReaderGrace::MAX_SECONDS);
        return Err(invalid("grace_seconds", words));
    }
    Ok(ReaderGrace::new(on_disconnect, grace))
}

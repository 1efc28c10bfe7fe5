//! The reasons why a run is refused before it begins. Later errors are part of the run's record.

mod conflict;
mod unusable_agent;

pub use self::conflict::{ConflictPart, EnvironmentConflict};
pub use self::unusable_agent::{AgentFilesError, UnusableAgent};

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent::FormatError;
use agent::hooks::HookConfigError;
use agent::ports::{ModelLookupError, UnknownTool};
use agent::prompt::PromptError;
use agent::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, RunStatus, ThreadName};
use store::StoreError;
use store::spend::SpendStanding;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::limits::SpendScope;
use values::model_ref::ModelRef;
use values::session::{Hash, HistoryFault, PartTooLarge, SessionHead, WaitingStep};
use workspace::TreeError;

/// The open calls of a session.
#[derive(Debug)]
pub struct OpenCalls {
    /// The session.
    pub session_id: SessionId,
    /// The open step, which may be large.
    pub step: Arc<WaitingStep>,
    /// When the request was refused. Calls that had expired by then need no answer.
    pub at: Timestamp,
}

/// The reason why a request is refused. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No agent has the name.
    #[error("there is no agent named {name:?}{}", suggestion(similar.as_deref()))]
    UnknownAgent {
        /// The name.
        name: String,
        /// An agent that the caller may use and may have meant.
        similar: Option<String>,
    },
    /// A subagent that an agent names does not exist.
    #[error("the agent {above:?} has a subagent {name:?}, and there is no agent of that name")]
    UnknownSubagent {
        /// The name.
        name: String,
        /// The agent that names the subagent.
        above: String,
    },
    /// No session has the id.
    #[error("{}", no_session(*session_id, *of_run))]
    UnknownSession {
        /// The id.
        session_id: SessionId,
        /// If the id is a run's, the session of that run.
        of_run: Option<SessionId>,
    },
    /// A run has reserved the session but not committed it.
    #[error("the session {session_id} is not committed; the run {run_id} has reserved it")]
    SessionNotCommitted {
        /// The session.
        session_id: SessionId,
        /// The run.
        run_id: RunId,
        /// The status of the run.
        run_status: RunStatus,
    },
    /// The run publishes no session.
    #[error("the run {run_id} publishes no session, so no run can continue it")]
    Unpublished {
        /// The run.
        run_id: RunId,
    },
    /// Another run continues or has continued the base, and the caller wants no fork.
    #[error("another run continues the base session")]
    Conflict {
        /// The other run; `None` if the other session was imported.
        run_id: Option<RunId>,
    },
    /// The base session waits for answers, and the request has none.
    #[error("{}", answers_required(_0))]
    AnswersRequired(OpenCalls),
    /// The answers do not fit the open calls of the base session.
    #[error("{}", invalid_answers(faults))]
    InvalidAnswers {
        /// The open calls.
        open: OpenCalls,
        /// JSON pointers into the request, each with the fault there; at least one.
        faults: Vec<(String, String)>,
    },
    /// The request answers calls, and its base session has no open calls.
    #[error("{}", not_waiting(*session_id))]
    SessionNotWaiting {
        /// The base session, if there is one.
        session_id: Option<SessionId>,
    },
    /// The request answers a run whose thread points to another session now.
    #[error("the thread no longer points to the session {answered}, which the request answers")]
    ThreadMovedOn {
        /// The session of the run.
        answered: SessionId,
        /// The session to which the thread points.
        session_id: Option<SessionId>,
    },
    /// Another run has answered the calls.
    #[error(
        "the run {by} has answered the calls already: to answer them once more, in a branch, send `\"conflict\": \"fork\"`"
    )]
    Answered {
        /// The other run.
        by: RunId,
    },
    /// The run does not wait for answers.
    #[error("the run {run_id} does not wait for answers: its status is {status}")]
    RunNotWaiting {
        /// The run.
        run_id: RunId,
        /// The status.
        status: RunStatus,
    },
    /// The model can't be used.
    #[error(transparent)]
    Model(#[from] ModelLookupError),
    /// The agent names a tool that does not exist.
    #[error(transparent)]
    Tool(#[from] UnknownTool),
    /// The agent attaches a hook that does not exist, or with an invalid configuration.
    #[error(transparent)]
    Hook(#[from] HookConfigError),
    /// The agent's prompt is not a valid template.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The response format can't be enforced.
    #[error("response_format: {0}")]
    ResponseFormat(#[from] FormatError),
    /// A value is out of range.
    #[error("{field}: {message}")]
    Invalid {
        /// The field.
        field: Cow<'static, str>,
        /// The mistake.
        message: String,
    },
    /// The caller may not use the agent or the model.
    #[error("the {what} {name:?} is not among those that the {whose} may use")]
    NotAllowed {
        /// `agent` or `model`.
        what: &'static str,
        /// The name.
        name: String,
        /// The owner of the limits that forbid it.
        whose: &'static str,
    },
    /// The cost of the caller's runs is limited, which can't be enforced for a model without a
    /// price.
    #[error("no price is known for the model {model}, and limits of cost allow only models with a price")]
    Unpriced {
        /// The model.
        model: ModelRef,
    },
    /// The request asks for more than its caller may spend.
    #[error("{field}: {asked} is above the ceiling of {ceiling}")]
    AboveCeiling {
        /// The field.
        field: &'static str,
        /// The requested value.
        asked: String,
        /// The highest allowed value.
        ceiling: String,
    },
    /// No model would accept the messages.
    #[error("the messages can't be used: {0}")]
    History(HistoryFault),
    /// The agent is built in or comes from a file, and can't be deleted by a request.
    #[error("the agent {name:?} is built in or defined in a configuration file")]
    AgentIsConfigured {
        /// The name.
        name: String,
    },
    /// The thread has another active run, and the caller does not want to wait for it.
    #[error(
        "the thread has another active run: wait for it, or say with `if_busy` whether to `queue`, to `interrupt` it or to `fork`"
    )]
    ThreadBusy {
        /// The active run.
        run_id: RunId,
    },
    /// A caller moves or deletes a thread on which a run is active, or changes its files.
    #[error(
        "the run {run_id} is active on the thread \"{name}\", and moves it when it ends: wait for it, or cancel it first"
    )]
    ThreadAtWork {
        /// The thread.
        name: ThreadName,
        /// The active run.
        run_id: RunId,
    },
    /// A caller creates a thread, and there is one with this name.
    #[error("there is a thread named \"{name}\" already")]
    ThreadExists {
        /// The name.
        name: ThreadName,
    },
    /// No thread has the name.
    #[error("there is no thread named \"{name}\"")]
    UnknownThread {
        /// The name.
        name: ThreadName,
    },
    /// The thread points to no session yet, so it has no files.
    #[error("the thread \"{name}\" points to no session yet, so it has no files")]
    ThreadWithoutSession {
        /// The thread.
        name: ThreadName,
    },
    /// Each time a thread was about to change, another request had moved it.
    #[error("other requests have moved the thread \"{name}\" meanwhile, again and again")]
    ThreadMoved {
        /// The thread.
        name: ThreadName,
    },
    /// Another request had the same idempotency key.
    #[error("another request was sent with the idempotency key {key:?}")]
    OtherRequest {
        /// The key.
        key: String,
    },
    /// No run has the id.
    #[error("{}", no_run(*run_id, session.as_deref()))]
    UnknownRun {
        /// The id.
        run_id: RunId,
        /// The session with this id, if the id is a session's.
        session: Option<Box<SessionHead>>,
    },
    /// The run has reached its limit of messages.
    #[error(
        "the run {run_id} takes no more messages: at most {MAX_RUN_MESSAGES} of together {MAX_RUN_MESSAGES_BYTES} bytes"
    )]
    TooMuchSaid {
        /// The run.
        run_id: RunId,
    },
    /// The run is active in another process that can't be reached now.
    #[error("the process that works on the run {run_id} can't be reached")]
    Unreachable {
        /// The run.
        run_id: RunId,
    },
    /// The session would be larger than allowed.
    #[error(transparent)]
    SessionTooLarge(PartTooLarge),
    /// The queue has reached its limit of waiting runs.
    #[error("{limit} runs wait in the queue, as many as are allowed")]
    QueueFull {
        /// The limit.
        limit: u32,
        /// When a retry may help.
        retry_after: Duration,
    },
    /// The tenant has reached its limit of waiting runs.
    #[error("{limit} runs of the tenant wait in the queue, as many as it may have there")]
    TenantQueueFull {
        /// The limit.
        limit: u32,
        /// When a retry may help.
        retry_after: Duration,
    },
    /// The tenant has reached its limit of active light runs.
    #[error("{limit} runs of the tenant are active, as many as it may have at once")]
    TooManyTenantRuns {
        /// The limit.
        limit: u32,
        /// When a retry may help.
        retry_after: Duration,
    },
    /// The process has reached its limit of active light runs.
    #[error("{limit} runs are active, as many as are allowed")]
    TooManyRuns {
        /// The limit.
        limit: usize,
        /// When a retry may help.
        retry_after: Duration,
    },
    /// Too little is left of a limit of spending.
    #[error("{}", limit_reached(_0))]
    SpendLimitReached(Box<SpendStanding>),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    ShuttingDown,
    /// The files of a session can't be read, changed or merged.
    #[error(transparent)]
    Files(#[from] TreeError),
    /// A change of a file is not possible.
    #[error("changes.{index}: {error}")]
    FileChange {
        /// The index of the change.
        index: usize,
        /// The reason.
        error: TreeError,
    },
    /// No blob has the hash.
    #[error("there is no blob {hash}; upload it first")]
    UnknownBlob {
        /// The index of the change that names it.
        index: usize,
        /// The hash.
        hash: Hash,
    },
    /// Two sessions belong to different lines.
    #[error("the sessions {one} and {other} have no common ancestor")]
    NoCommonAncestor {
        /// The one session.
        one: SessionId,
        /// The other session.
        other: SessionId,
    },
    /// The common ancestor of two sessions was removed, and with it its files.
    #[error("the common ancestor {session_id} was removed")]
    RemovedAncestor {
        /// The ancestor.
        session_id: SessionId,
    },
    /// Two sessions changed the same; at least one conflict.
    #[error("{}", both_changed(_0))]
    MergeConflicts(Vec<EnvironmentConflict>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refusal {
    /// Returns the refusal of the value of a field.
    pub(super) fn invalid(field: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            message: message.into(),
        }
    }

    /// Returns the refusal of an object because of one of its fields.
    pub(super) fn within(object: &str, (field, message): (&str, impl Into<String>)) -> Self {
        Self::invalid(format!("{object}.{field}"), message)
    }
}

/// Returns the message that a limit is reached.
pub(in crate::run) fn limit_reached(standing: &SpendStanding) -> String {
    let limit = &standing.limit;
    let whose = match &limit.scope {
        SpendScope::Tenant => "the tenant".to_owned(),
        SpendScope::Agent(name) => format!("the agent {name:?}"),
        SpendScope::Key(_) => "the API key".to_owned(),
    };
    format!(
        "{whose} may spend {} dollars in a {}, and too little of it is left",
        limit.most.dollars(),
        limit.period.as_str()
    )
}

/// Returns the message that a session does not exist. If the id is a run's, names the session of
/// that run.
pub fn no_session(session_id: SessionId, of_run: Option<SessionId>) -> String {
    let whose = of_run.map(|session| format!(": it is the id of a run, whose session is {session}"));
    format!("there is no session {session_id}{}", whose.unwrap_or_default())
}

/// Returns the message that a run does not exist. If the id is a session's, says so.
pub fn no_run(run_id: RunId, session: Option<&SessionHead>) -> String {
    let whose = match session.map(|session| session.run_id) {
        Some(Some(run)) => format!(": it is the id of a session, which the run {run} has made"),
        Some(None) => ": it is the id of a session".to_owned(),
        None => String::new(),
    };
    format!("there is no run {run_id}{whose}")
}

fn answers_required(open: &OpenCalls) -> String {
    let (session_id, count) = (open.session_id, open.step.open_calls.len());
    let calls = if count == 1 { "an open call" } else { "open calls" };
    format!("the session {session_id} has {calls}: send `answers`, or deny what is open with `deny_open`")
}

fn invalid_answers(faults: &[(String, String)]) -> String {
    let faults: Vec<_> = faults
        .iter()
        .map(|(pointer, message)| format!("{pointer}: {message}"))
        .collect();
    faults.join("; ")
}

fn not_waiting(session_id: Option<SessionId>) -> String {
    match session_id {
        Some(session_id) => format!("the session {session_id} has no open calls that could be answered"),
        None => "a new session has no open calls that could be answered".to_owned(),
    }
}

fn both_changed(conflicts: &[EnvironmentConflict]) -> String {
    let first = conflicts.first().map_or("the same", |conflict| conflict.name.as_str());
    match conflicts.len() {
        0 | 1 => format!("both sessions changed {first}"),
        count => format!("both sessions changed {first} and {} more", count - 1),
    }
}

/// Returns a hint with a similar name, if there is one.
pub fn suggestion(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |name| format!(", did you mean {name:?}?"))
}

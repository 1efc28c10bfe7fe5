//! Why a run is refused before it begins. Later errors are part of the run's record.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use crate::agent::hooks::HookConfigError;
use crate::agent::ports::{ModelLookupError, UnknownTool};
use crate::agent::{FormatError, PromptError};
use crate::ids::{RunId, SessionId};
use crate::model_ref::ModelRef;
use crate::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, RunStatus};
use crate::session::{HistoryFault, PartTooLarge, SessionHead};
use crate::store::StoreError;

/// Why the agents of configuration files can't be used. None of them is taken over.
#[derive(Debug, thiserror::Error)]
pub enum AgentFilesError {
    /// They can't be read.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
    /// One of them could never run.
    #[error(transparent)]
    Unusable(#[from] UnusableAgent),
}

/// An agent of a configuration file that could never run.
#[derive(Debug, thiserror::Error)]
#[error("{location}: the agent {name:?} can't work")]
pub struct UnusableAgent {
    /// Where it is defined.
    pub location: String,
    /// The agent.
    pub name: String,
    /// Why.
    #[source]
    pub source: Refusal,
}

/// A request that starts no run. Nothing was written.
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
    /// No agent has the name of one that shall work for another.
    #[error("the agent {above:?} has a subagent {name:?}, and there is no agent of that name")]
    UnknownSubagent {
        /// The name.
        name: String,
        /// The agent that names it.
        above: String,
    },
    /// No session has the id.
    #[error("{}", no_session(*session_id, *of_run))]
    UnknownSession {
        /// The id.
        session_id: SessionId,
        /// The session of the run that has the id, if one has.
        of_run: Option<SessionId>,
    },
    /// The session is reserved by a run that has not committed it.
    #[error("the session {session_id} is not committed; the run {run_id} has reserved it")]
    SessionNotCommitted {
        /// The session.
        session_id: SessionId,
        /// The run.
        run_id: RunId,
        /// How the run stands.
        run_status: RunStatus,
    },
    /// Another run continues or has continued the base, and the caller wants no fork.
    #[error("another run continues the base session")]
    Conflict {
        /// That run; none when the other session was imported.
        run_id: Option<RunId>,
    },
    /// The model can't be used.
    #[error(transparent)]
    Model(#[from] ModelLookupError),
    /// The agent names a tool that does not exist.
    #[error(transparent)]
    Tool(#[from] UnknownTool),
    /// The agent attaches a hook that does not exist, or not so.
    #[error(transparent)]
    Hook(#[from] HookConfigError),
    /// The agent's prompt is no valid template.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// No answer can be held to the shape that is demanded.
    #[error("response_format: {0}")]
    ResponseFormat(#[from] FormatError),
    /// A value is out of range.
    #[error("{field}: {message}")]
    Invalid {
        /// The field.
        field: Cow<'static, str>,
        /// What is wrong with it.
        message: String,
    },
    /// The caller may not have an agent or a model work.
    #[error("the {what} {name:?} is not among those that the {whose} may use")]
    NotAllowed {
        /// `agent` or `model`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Whose limits say so.
        whose: &'static str,
    },
    /// The caller's runs have a ceiling of cost, which could not hold for the model.
    #[error(
        "no price is known for the model {model}, and a ceiling of cost (`max_cost`) allows only models with a price"
    )]
    Unpriced {
        /// The model.
        model: ModelRef,
    },
    /// The request asks for more than its caller may spend.
    #[error("{field}: {asked} is above the ceiling of {ceiling}")]
    AboveCeiling {
        /// The field.
        field: &'static str,
        /// What it asks for.
        asked: String,
        /// What is allowed.
        ceiling: String,
    },
    /// The messages are none that a model accepts.
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
        /// That run.
        run_id: RunId,
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
        /// The session that has the id, if one has.
        session: Option<Box<SessionHead>>,
    },
    /// The run has as many messages of its callers as it takes.
    #[error(
        "the run {run_id} takes no more messages: at most {MAX_RUN_MESSAGES} of together {MAX_RUN_MESSAGES_BYTES} bytes"
    )]
    TooMuchSaid {
        /// The run.
        run_id: RunId,
    },
    /// The run is at work in another process that can't be reached now.
    #[error("the process that works on the run {run_id} can't be reached")]
    Unreachable {
        /// The run.
        run_id: RunId,
    },
    /// The session would be larger than allowed.
    #[error(transparent)]
    SessionTooLarge(PartTooLarge),
    /// As many runs as are allowed wait in the queue.
    #[error("{limit} runs wait in the queue, as many as are allowed")]
    QueueFull {
        /// The limit.
        limit: u32,
        /// When trying again may help.
        retry_after: Duration,
    },
    /// As many runs of the tenant as are allowed wait in the queue.
    #[error("{limit} runs of the tenant wait in the queue, as many as it may have there")]
    TenantQueueFull {
        /// The limit.
        limit: u32,
        /// When trying again may help.
        retry_after: Duration,
    },
    /// As many light runs of the tenant as are allowed are active.
    #[error("{limit} runs of the tenant are active, as many as it may have at once")]
    TooManyTenantRuns {
        /// The limit.
        limit: u32,
        /// When trying again may help.
        retry_after: Duration,
    },
    /// As many runs as are allowed are active.
    #[error("{limit} runs are active, as many as are allowed")]
    TooManyRuns {
        /// The limit.
        limit: usize,
        /// When trying again may help.
        retry_after: Duration,
    },
    /// The service is shutting down.
    #[error("the service is shutting down")]
    ShuttingDown,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refusal {
    /// Refuses the value of a field.
    pub(super) fn invalid(field: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            message: message.into(),
        }
    }

    /// Refuses a value by what is wrong with a field inside it.
    pub(super) fn within(object: &str, (field, message): (&str, impl Into<String>)) -> Self {
        Self::invalid(format!("{object}.{field}"), message)
    }
}

/// Says that there is no such session, and whose id it is if it is a run's, with this session.
pub fn no_session(session_id: SessionId, of_run: Option<SessionId>) -> String {
    let whose = of_run.map(|session| format!(": it is the id of a run, whose session is {session}"));
    format!("there is no session {session_id}{}", whose.unwrap_or_default())
}

/// Says that there is no such run, and whose id it is if it is a session's.
pub fn no_run(run_id: RunId, session: Option<&SessionHead>) -> String {
    let whose = match session.map(|session| session.run_id) {
        Some(Some(run)) => format!(": it is the id of a session, which the run {run} has made"),
        Some(None) => ": it is the id of a session".to_owned(),
        None => String::new(),
    };
    format!("there is no run {run_id}{whose}")
}

/// Says which name may have been meant.
pub fn suggestion(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |name| format!(", did you mean {name:?}?"))
}

//! Sessions on the wire.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::http::auth::Call;
use crate::http::parameters::{QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::ids::{RunId, SessionId};
use crate::json::Object;
use crate::message::Message;
use crate::session::{Bundle, ContextState, EnvironmentState, Hash, History, SessionHead};
use crate::store::Ancestor;

/// A session without its states.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SessionSummary)]
pub struct SessionSummaryView {
    /// Names the session.
    session_id: SessionId,
    /// The session that it continues.
    parent_session_id: Option<SessionId>,
    /// The run that published it; none for an imported session.
    run_id: Option<RunId>,
    /// The session of the agent that started this one; none unless it is a subagent's.
    subagent_of: Option<SessionId>,
    /// The agent's name.
    agent: String,
    /// The version of the agent's definition that was in force.
    agent_version: Option<Hash>,
    /// The number of ancestors.
    depth: u64,
    /// The number of executions of the agent.
    execution_count: u64,
    /// The number of messages in the whole history.
    message_count: u64,
    /// Covers all of the session and, through its parent's, the whole line.
    root_hash: Hash,
    /// The key-value pairs of the context.
    metadata: Object,
    /// When the session was made.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    created_at: Timestamp,
}

/// A session with the states that were asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// All but the states.
    #[serde(flatten)]
    summary: SessionSummaryView,
    /// Variables and resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_state: Option<Arc<EnvironmentState>>,
    /// The agent's session data.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_state: Option<ContextState>,
    /// The messages of the whole line.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_history_state: Option<MessageHistory>,
}

/// The messages of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MessageHistory {
    /// Oldest first.
    #[schema(value_type = Vec<Message>)]
    messages: History,
}

/// A session of a line.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Ancestor)]
pub(in crate::http) enum AncestorView {
    /// One with a retained part.
    Kept(SessionSummaryView),
    /// One that was removed.
    Removed(RemovedSessionView),
}

/// What is left of a session that was removed while others continue it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RemovedSession)]
pub(in crate::http) struct RemovedSessionView {
    /// Names the session.
    session_id: SessionId,
    /// The session that it continued.
    parent_session_id: Option<SessionId>,
    /// The number of ancestors.
    depth: u64,
    /// The number of messages in its whole history.
    message_count: u64,
    /// Its root hash, which those of its children cover.
    root_hash: Hash,
    /// When it was removed.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    removed_at: Timestamp,
}

/// Which states are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Include {
    environment: bool,
    context: bool,
    messages: bool,
}

impl Include {
    pub(super) const ALL: Self = Self {
        environment: true,
        context: true,
        messages: true,
    };

    /// Takes the parameter `include`.
    pub(super) fn take(query: &mut QueryParameters) -> Result<Self, Problem> {
        let Some(text) = query.text("include")? else {
            return Ok(Self::ALL);
        };
        let mut include = Self {
            environment: false,
            context: false,
            messages: false,
        };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                "environment_state" => include.environment = true,
                "context_state" => include.context = true,
                "message_history_state" => include.messages = true,
                _ => {
                    return Err(invalid(
                        "include",
                        "none of environment_state, context_state, message_history_state",
                    ));
                }
            }
        }
        Ok(include)
    }

    /// Leaves the messages out.
    pub(super) fn without_messages(self) -> Self {
        Self {
            messages: false,
            ..self
        }
    }

    /// Returns whether the messages are requested.
    pub(super) fn messages(self) -> bool {
        self.messages
    }

    /// Returns whether the session's row has all requested parts.
    pub(super) fn is_nothing(self) -> bool {
        !(self.environment || self.context || self.messages)
    }
}

impl SessionView {
    /// Shows a bundle. Where the messages are shown, the bundle must hold all of them.
    pub(super) fn new(bundle: &Bundle, include: Include) -> Self {
        Self {
            summary: bundle.head.clone().into(),
            environment_state: include.environment.then(|| Arc::clone(&bundle.environment)),
            context_state: include.context.then(|| bundle.context_state()),
            message_history_state: include.messages.then(|| MessageHistory {
                messages: bundle.history.clone(),
            }),
        }
    }

    /// Shows all of a bundle, which must hold all of its messages.
    pub fn whole(bundle: &Bundle) -> Self {
        Self::new(bundle, Include::ALL)
    }

    /// Shows a session without its states.
    pub(super) fn bare(head: SessionHead) -> Self {
        Self {
            summary: head.into(),
            environment_state: None,
            context_state: None,
            message_history_state: None,
        }
    }
}

impl From<SessionHead> for SessionSummaryView {
    fn from(head: SessionHead) -> Self {
        Self {
            session_id: head.session_id,
            parent_session_id: head.parent_session_id,
            run_id: head.run_id,
            subagent_of: head.subagent_of,
            agent: head.agent,
            agent_version: head.agent_version,
            depth: head.depth,
            execution_count: head.execution_count,
            message_count: head.message_count,
            root_hash: head.root_hash,
            metadata: head.metadata,
            created_at: head.created_at,
        }
    }
}

impl From<Ancestor> for AncestorView {
    fn from(ancestor: Ancestor) -> Self {
        match ancestor {
            Ancestor::Kept(head) => Self::Kept(head.into()),
            Ancestor::Removed(removed) => Self::Removed(RemovedSessionView {
                session_id: removed.session_id,
                parent_session_id: removed.parent_session_id,
                depth: removed.depth,
                message_count: removed.message_count,
                root_hash: removed.root_hash,
                removed_at: removed.removed_at,
            }),
        }
    }
}

/// Returns the value, or the problem of an id that is reserved or unknown.
pub(super) async fn found<T>(call: &Call, session_id: SessionId, value: Option<T>) -> Result<T, Problem> {
    match value {
        Some(value) => Ok(value),
        None => Err(absent_session(call, session_id).await),
    }
}

/// Makes the problem of a session id that is reserved or leads nowhere.
pub(in crate::http) async fn absent_session(call: &Call, session_id: SessionId) -> Problem {
    call.service
        .runs
        .reader
        .absent_session(&call.tenant, session_id)
        .await
        .into()
}

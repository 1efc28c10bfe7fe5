//! Sessions on the wire.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::auth::Call;
use crate::http::idempotency::mark_replay;
use crate::http::parameters::{QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::run;
use values::ids::SessionId;
use values::message::Message;
use values::session::{Bundle, ContextState, EnvironmentState, History, SessionHead};

/// A session with the states that were asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    /// All but the states.
    #[serde(flatten)]
    summary: SessionHead,
    /// `variables`, and opaque `resources`. Unknown keys are stored as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_state: Option<Arc<EnvironmentState>>,
    /// The agent's session data: prompt, response format and metadata. Also `overrides` of the
    /// agent's settings, `waiting` and `remembered_approvals` of calls, and the accepted
    /// `tool_pins` of MCP servers, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_state: Option<ContextState>,
    /// All messages, oldest first, with tool calls and results.
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

/// The requested states.
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

    pub(super) const ENVIRONMENT: Self = Self {
        environment: true,
        context: false,
        messages: false,
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

    /// Returns the same without the messages.
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

    /// Returns whether no state is requested, so that the session's row suffices.
    pub(super) fn is_nothing(self) -> bool {
        !(self.environment || self.context || self.messages)
    }
}

impl SessionView {
    /// Makes a view of a bundle. If messages are requested, the bundle must hold all of them.
    pub(super) fn new(bundle: &Bundle, include: Include) -> Self {
        Self {
            summary: bundle.head.clone(),
            environment_state: include.environment.then(|| Arc::clone(&bundle.environment)),
            context_state: include.context.then(|| bundle.context_state()),
            message_history_state: include.messages.then(|| MessageHistory {
                messages: bundle.history.clone(),
            }),
        }
    }

    /// Makes a view for the response to a write. A key that may not read sessions sees neither
    /// states nor metadata, and no text of the messages.
    pub(super) fn written(call: &Call, bundle: &Bundle, include: Include) -> Self {
        if call.may_read() {
            return Self::new(bundle, include);
        }
        let mut view = Self::bare(bundle.head.clone());
        view.summary.metadata.clear();
        (view.summary.title, view.summary.preview) = (None, None);
        view
    }

    /// Makes a view with all states of a bundle, which must hold all of its messages.
    pub fn whole(bundle: &Bundle) -> Self {
        Self::new(bundle, Include::ALL)
    }

    /// Makes a view of a session without its states.
    pub(super) fn bare(head: SessionHead) -> Self {
        Self {
            summary: head,
            environment_state: None,
            context_state: None,
            message_history_state: None,
        }
    }
}

/// Completes the response to a request that has made a session.
pub(super) fn created(mut response: Response, session_id: SessionId, is_replay: bool) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(format!("/v1/sessions/{session_id}")).map_err(Problem::internal)?;
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(header::LOCATION, location);
    mark_replay(&mut response, is_replay);
    Ok(response)
}

/// Returns the value, or the problem of an id that is reserved or unknown.
pub(super) async fn found<T>(call: &Call, session_id: SessionId, value: Option<T>) -> Result<T, Problem> {
    match value {
        Some(value) => Ok(value),
        None => Err(absent_session(call, session_id).await),
    }
}

/// Makes the problem of a session id that is reserved or unknown.
pub(in crate::http) async fn absent_session(call: &Call, session_id: SessionId) -> Problem {
    let absent = run::read::absent_session(&call.api.runs, &call.tenant, session_id);
    absent.await.into()
}

//! Errors inside an execution. They are data: part of the state, of events and of run records.

use serde::{Deserialize, Serialize};

/// The part of an execution that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A tool.
    Tool,
    /// A model call.
    Model,
    /// Arguments or a completion that don't fit their schema.
    Validation,
    /// A provider's limit on requests.
    RateLimit,
    /// Something took too long.
    Timeout,
    /// A hook.
    Hook,
    /// Something else, or a kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// One error, in words that the caller may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, utoipa::ToSchema)]
#[error("{message}")]
pub struct AgentError {
    /// The part that failed.
    pub kind: ErrorKind,
    /// A stable code, such as `model_overloaded`.
    pub code: String,
    /// The message; never with a secret.
    pub message: String,
    /// The part that failed: a tool, a model or a hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
}

/// The errors of a step or an execution, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct ErrorList(Vec<AgentError>);

impl ErrorList {
    /// Adds an error.
    pub fn push(&mut self, error: AgentError) {
        self.0.push(error);
    }

    /// Returns whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of errors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the newest error.
    pub fn last(&self) -> Option<&AgentError> {
        self.0.last()
    }

    /// Iterates over the errors, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &AgentError> {
        self.0.iter()
    }
}

impl FromIterator<AgentError> for ErrorList {
    fn from_iter<I: IntoIterator<Item = AgentError>>(errors: I) -> Self {
        Self(errors.into_iter().collect())
    }
}

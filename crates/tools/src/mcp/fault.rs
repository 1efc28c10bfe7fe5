//! A mistake in the definition of a server.

/// A mistake in the definition of a server: its key, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {problem}")]
pub struct McpFault {
    key: String,
    problem: String,
}

impl McpFault {
    pub(super) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

//! A mistake in the definition of an HTTP tool.

/// A mistake in a definition: its key, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {problem}")]
pub struct HttpToolFault {
    key: String,
    problem: String,
}

impl HttpToolFault {
    /// Returns what is wrong, without the key.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    pub(super) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

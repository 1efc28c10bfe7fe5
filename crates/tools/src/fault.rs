//! A mistake in the definition of an HTTP tool or of an MCP server.

/// A mistake in a definition: its key, and the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {problem}")]
pub struct DefinitionFault {
    key: String,
    problem: String,
}

impl DefinitionFault {
    pub(crate) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            problem: problem.into(),
        }
    }
}

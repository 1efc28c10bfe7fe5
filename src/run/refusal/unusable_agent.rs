//! Errors of the agents of configuration files.

use std::error::Error;

use super::Refusal;

/// The reason why the agents of configuration files can't be used. None of them is loaded.
#[derive(Debug, thiserror::Error)]
pub enum AgentFilesError {
    /// The files can't be read.
    #[error(transparent)]
    Read(Box<dyn Error + Send + Sync>),
    /// An agent can never run.
    #[error(transparent)]
    Unusable(#[from] UnusableAgent),
}

/// An agent of a configuration file that can never run.
#[derive(Debug, thiserror::Error)]
#[error("{location}: the agent {name:?} can't work")]
pub struct UnusableAgent {
    /// A description of the file, for operators.
    pub location: String,
    /// The agent.
    pub name: String,
    /// The reason.
    #[source]
    pub source: Refusal,
}

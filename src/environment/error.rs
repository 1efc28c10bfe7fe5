//! Errors of environments.

use crate::workspace::TreeError;

/// A failed operation on an environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The variables exceed a limit; the message says which.
    #[error("{0}")]
    Variables(String),
    /// The resources exceed a limit; the message says which.
    #[error("{0}")]
    Resources(String),
    /// The files of the workspace can't be read or stored.
    #[error("the files of the workspace can't be read or stored")]
    Workspace(#[from] TreeError),
}

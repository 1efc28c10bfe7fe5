//! Errors of environments.

use crate::checkout::CheckoutError;
use crate::{ContentsError, TreeError};

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
    /// The ephemeral files of commands can't be read.
    #[error("what commands have left there can't be read here{}; read it with the shell", .0.of_files())]
    Ephemeral(#[source] CheckoutError),
    /// The directory that background jobs use can't be read or written. They are killed.
    #[error("the files of background jobs can't be read or written, so the jobs are killed{}", .0.of_files())]
    Directory(#[source] CheckoutError),
}

impl EnvironmentError {
    /// Returns the message for the caller if the tenant may not store more files.
    pub fn storage_limit(&self) -> Option<String> {
        let (Self::Workspace(error) | Self::Directory(CheckoutError::Tree(error))) = self else {
            return None;
        };
        match error {
            TreeError::Contents(full @ ContentsError::Full { .. }) => Some(full.to_string()),
            _ => None,
        }
    }
}

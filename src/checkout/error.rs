//! Errors of checkouts.

use std::io;
use std::path::PathBuf;

use crate::workspace::TreeError;

/// Why a directory can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// An operation of the file system failed.
    #[error("{operation} {} failed", path.display())]
    FileSystem {
        /// What was done.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// The underlying failure.
        #[source]
        source: io::Error,
    },
    /// The disk is full, or a quota is used up.
    #[error("{operation} {} failed: no space is left on the disk of commands", path.display())]
    NoSpace {
        /// What was done.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// The underlying failure.
        #[source]
        source: io::Error,
    },
    /// The files of the workspace can't be read or changed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Shutdown,
}

impl CheckoutError {
    /// Returns what models and callers read about the cause, after a colon: only what concerns the
    /// files of the workspace, or that the disk is full.
    pub fn of_files(&self) -> String {
        match self {
            Self::Tree(error) => format!(": {error}"),
            Self::NoSpace { .. } => ": no space is left on the disk of commands".to_owned(),
            Self::FileSystem { .. } | Self::Shutdown => String::new(),
        }
    }

    /// Returns whether the files are more or larger than the limits of a workspace allow.
    pub fn exceeds_limits(&self) -> bool {
        matches!(
            self,
            Self::Tree(TreeError::FileTooLarge { .. } | TreeError::TooManyFiles { .. } | TreeError::TooLarge { .. })
        )
    }

    /// Returns a function that adds the operation and the path to a failure.
    pub(super) fn of<E: Into<io::Error>>(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        move |source| {
            let (path, source) = (path.into(), source.into());
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace {
                    operation,
                    path,
                    source,
                },
                _ => Self::FileSystem {
                    operation,
                    path,
                    source,
                },
            }
        }
    }
}

//! Errors of checkouts.

use std::io;
use std::path::PathBuf;

use crate::TreeError;

/// Why a directory can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// An operation of the file system failed.
    #[error("{operation} {} failed{}", path.display(), of_disk(source))]
    FileSystem {
        /// The operation that failed.
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
    /// A file can't be part of a tree; the text says why.
    #[error("{0}")]
    Unusable(String),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Shutdown,
}

impl CheckoutError {
    /// Returns words about the cause for models and callers, after a colon. They are only about the
    /// files of the workspace, or say that the disk is full.
    pub fn of_files(&self) -> String {
        match self {
            Self::Tree(error) => format!(": {error}"),
            Self::Unusable(reason) => format!(": {reason}"),
            Self::FileSystem { source, .. } => of_disk(source).to_owned(),
            Self::Shutdown => String::new(),
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
        move |source| Self::FileSystem {
            operation,
            path: path.into(),
            source: source.into(),
        }
    }
}

/// Returns the words for a disk that is full, or a quota that is used up, after a colon.
fn of_disk(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": no space is left on the disk of commands",
        _ => "",
    }
}

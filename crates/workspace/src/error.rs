//! Why a tree can't be read, changed, compared or merged.

use super::contents::ContentsError;
use super::path::FilePath;
use super::path_error::PathError;

/// Why an operation on a tree failed.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Nothing is at the path.
    #[error("{path} does not exist")]
    NotFound { path: FilePath },
    /// The path leads to a directory where a file is needed.
    #[error("{path} is not a file")]
    NotAFile { path: FilePath },
    /// The path leads to a file, or a symlink to one, where a directory is needed.
    #[error("{path} is not a directory")]
    NotADirectory { path: FilePath },
    /// A file is larger than the limit.
    #[error("{path} has {size} bytes, more than the {limit} of a file")]
    FileTooLarge {
        path: FilePath,
        /// The bytes of the file.
        size: u64,
        /// The most bytes of a file.
        limit: u64,
    },
    /// The tree would have, or has, too many entries.
    #[error("the workspace has more than {limit} files and directories")]
    TooManyFiles {
        /// The most files, symlinks and directories.
        limit: u64,
    },
    /// The files would be too large together.
    #[error("the files of the workspace have more than {limit} bytes")]
    TooLarge {
        /// The most bytes of all files.
        limit: u64,
    },
    /// A path leads through too many symlinks.
    #[error("{path} leads through too many symlinks")]
    SymlinkLoop { path: FilePath },
    /// A symlink is absolute, leads out of the tree or is no valid path.
    #[error("the symlink {path} leads to {target:?}, which is not inside the workspace")]
    UnsafeSymlink {
        /// The path of the symlink.
        path: FilePath,
        target: String,
    },
    /// A directory was to be put at the path by its hash, and has none yet.
    #[error("the directory for {path} is not saved")]
    NotSaved { path: FilePath },
    /// A path is invalid, or would become so.
    #[error("the path is invalid")]
    Path(#[source] PathError),
    /// The contents can't be read or written.
    #[error("the contents of the workspace could not be read or written")]
    Contents(#[source] ContentsError),
}

impl From<PathError> for TreeError {
    fn from(error: PathError) -> Self {
        Self::Path(error)
    }
}

impl From<ContentsError> for TreeError {
    fn from(error: ContentsError) -> Self {
        Self::Contents(error)
    }
}

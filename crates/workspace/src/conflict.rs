//! The result of a merge.

use super::path::FilePath;
use super::tree::Tree;

/// The result of a merge.
#[derive(Debug, Clone)]
pub enum Merged {
    /// The changes of both sides in one tree, which may not be saved yet.
    Clean(Tree),
    /// The paths that can't be merged, sorted.
    Conflicts(Vec<MergeConflict>),
}

/// A path that can't be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    pub path: FilePath,
    pub kind: ConflictKind,
}

/// The changes of a path that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictKind {
    /// Both changed it in different ways, and its text can't be merged.
    BothChanged,
    /// One side changed it, and the other deleted it.
    ChangedAndDeleted,
    /// Both added different files or symlinks.
    BothAdded,
    /// The path would be a file or symlink and a directory.
    FileAndDirectory,
}

impl ConflictKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BothChanged => "both_changed",
            Self::ChangedAndDeleted => "changed_and_deleted",
            Self::BothAdded => "both_added",
            Self::FileAndDirectory => "file_and_directory",
        }
    }
}

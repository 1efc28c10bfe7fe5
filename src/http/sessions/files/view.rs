//! Entries of a workspace, on the wire.

use serde::Serialize;
use utoipa::ToSchema;

use values::session::Hash;
use workspace::{Entry, FileDiff, FilePath, TreeChange};

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes bodies that are no JSON")]
pub(in crate::http) struct FileBytes(Vec<u8>);

/// A file, a symlink or a directory.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FileEntry {
    /// The path, relative to the root of the workspace.
    #[schema(value_type = String)]
    path: FilePath,
    /// The version in this session.
    #[serde(flatten)]
    version: FileVersion,
}

/// How a file differs between two sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct FileChange {
    /// The path of the file.
    #[schema(value_type = String)]
    path: FilePath,
    /// The file in the left session, like a listed file without its path; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<FileVersion>,
    /// The file in the right session; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<FileVersion>,
    /// The difference in the unified format, which `patch` and `git apply` read; absent if there is
    /// no text to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Whether a version is not UTF-8 text.
    binary: bool,
    /// Whether `diff` is cut, or absent because a version or the whole comparison is too large.
    truncated: bool,
}

/// The version of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::http) struct FileVersion {
    /// Whether it is a `file`, a `symlink` or a `directory`.
    kind: FileKind,
    /// The BLAKE3 of a file, as `b3sum` prints it, or the hash of a directory, which covers
    /// everything in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<Hash>,
    /// The bytes of a file, or of all files in a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Whether a file may be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<bool>,
    /// Where a symlink leads, relative to its directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The files and symlinks in a directory, at any depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum FileKind {
    /// A file.
    File,
    /// A symlink.
    Symlink,
    /// A directory.
    Directory,
}

impl FileEntry {
    /// Makes a view of the entry at a path.
    pub fn new(path: FilePath, entry: Entry) -> Self {
        let version = entry.into();
        Self { path, version }
    }
}

impl From<(TreeChange, FileDiff)> for FileChange {
    fn from((change, diff): (TreeChange, FileDiff)) -> Self {
        Self {
            path: change.path,
            left: change.before.map(FileVersion::from),
            right: change.after.map(FileVersion::from),
            diff: Some(diff.text).filter(|text| !text.is_empty()),
            binary: diff.is_binary,
            truncated: diff.is_truncated,
        }
    }
}

impl From<Entry> for FileVersion {
    fn from(entry: Entry) -> Self {
        let empty = Self {
            kind: FileKind::File,
            hash: None,
            size: None,
            executable: None,
            target: None,
            files: None,
        };
        match entry {
            Entry::File {
                hash,
                size,
                is_executable,
                ..
            } => Self {
                hash: Some(hash),
                size: Some(size),
                executable: Some(is_executable),
                ..empty
            },
            Entry::Symlink { target } => Self {
                kind: FileKind::Symlink,
                target: Some(target),
                ..empty
            },
            Entry::Directory { hash, totals } => Self {
                kind: FileKind::Directory,
                hash,
                size: Some(totals.bytes),
                files: Some(totals.files),
                ..empty
            },
        }
    }
}

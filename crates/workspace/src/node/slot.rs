//! The slots of a loaded directory: an entry, with new bytes or a shared directory.

use std::sync::Arc;

use bytes::Bytes;

use super::directory_node::Node;
use crate::directory::StoredEntry;
use crate::entry::{Entry, Totals};
use values::session::Hash;

/// A name in a directory.
pub(crate) type Name = Arc<str>;

/// An entry of a loaded directory.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    File(File),
    Symlink(Arc<str>),
    Directory(Arc<Node>),
}

/// A file in a directory.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
    pub(crate) is_executable: bool,
    /// When its content last changed.
    pub(crate) modified: u64,
    /// The bytes of a file that is not saved.
    pub(crate) unsaved: Option<Bytes>,
}

impl Slot {
    /// Returns how much the slot adds to its directory.
    pub(crate) fn totals(&self) -> Totals {
        let (files, directories, bytes) = match self {
            Self::File(file) => (1, 0, file.size),
            Self::Symlink(_) => (1, 0, 0),
            Self::Directory(_) => (0, 1, 0),
        };
        let own = Totals {
            files,
            directories,
            bytes,
        };
        match self {
            Self::Directory(node) => own.plus(node.known_totals()),
            Self::File(_) | Self::Symlink(_) => own,
        }
    }

    /// Returns the bytes of files that are not saved.
    pub(crate) fn unsaved_bytes(&self) -> u64 {
        match self {
            Self::File(file) => file.unsaved.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Symlink(_) => 0,
            Self::Directory(node) => node.unsaved_bytes(),
        }
    }

    /// Returns whether both are known to be equal, but for times of files. Two directories with
    /// unsaved changes may be equal without this being known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one.hash == other.hash && one.is_executable == other.is_executable,
            (Self::Symlink(one), Self::Symlink(other)) => one == other,
            (Self::Directory(one), Self::Directory(other)) => one.is_same(other),
            _ => false,
        }
    }

    /// Returns the directory, if it is one.
    pub(crate) fn as_directory(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Directory(node) => Some(node),
            Self::File(_) | Self::Symlink(_) => None,
        }
    }

    /// Returns the slot if it is a file or symlink.
    pub(crate) fn as_leaf(&self) -> Option<&Self> {
        match self {
            Self::Directory(_) => None,
            Self::File(_) | Self::Symlink(_) => Some(self),
        }
    }

    /// Returns whether the slot is a directory with nothing in it.
    pub(crate) fn is_empty_directory(&self) -> bool {
        self.as_directory()
            .is_some_and(|node| node.known_totals().entries() == 0)
    }

    /// Returns the slot as callers see it.
    pub(crate) fn to_entry(&self) -> Entry {
        match self {
            Self::File(file) => Entry::File {
                hash: file.hash,
                size: file.size,
                is_executable: file.is_executable,
                modified: file.modified,
            },
            Self::Symlink(target) => Entry::Symlink {
                target: target.to_string(),
            },
            Self::Directory(node) => Entry::Directory {
                hash: node.hash(),
                totals: node.known_totals(),
            },
        }
    }

    /// Makes the slot of a stored entry.
    pub(crate) fn from_stored(entry: StoredEntry<'_>) -> Self {
        match entry {
            StoredEntry::File {
                hash,
                size,
                is_executable,
                modified,
            } => Self::File(File {
                hash,
                size,
                is_executable,
                modified,
                unsaved: None,
            }),
            StoredEntry::Symlink { target } => Self::Symlink(Arc::from(target)),
            StoredEntry::Directory { hash, totals } => Self::Directory(Node::stored(hash, Some(totals))),
        }
    }
}

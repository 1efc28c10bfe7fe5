//! Checks whether the open file is still at its path.
//!
//! A removed file exists as long as a process has it open. Data written to it is lost afterwards.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::{fs, io};

use crate::error::{StoreError, Unavailability};

/// The file of a store.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    identity: Identity,
}

/// The identity of a file: its device and its inode.
type Identity = (u64, u64);

/// The open file is no longer at its path.
#[derive(Debug, thiserror::Error)]
enum FileGone {
    #[error("the file {} was removed while it was in use", .path.display())]
    Removed { path: PathBuf },
    #[error("the file {} was replaced by another one while it was in use", .path.display())]
    Replaced { path: PathBuf },
}

impl StoreFile {
    /// Records the identity of the file at the path.
    pub(super) fn at(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&fs::metadata(&path)?);
        Ok(Self { path, identity })
    }

    /// Fails if the file is no longer at its path. The file may come back, so a retry may help.
    /// Takes about a microsecond, less than a switch to another thread.
    pub(super) fn check(&self, operation: &'static str) -> Result<(), StoreError> {
        let path = self.path.clone();
        let gone = match fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => return Ok(()),
            Ok(_) => FileGone::Replaced { path },
            Err(error) if error.kind() == io::ErrorKind::NotFound => FileGone::Removed { path },
            // SQLite has the file open and reports other errors itself.
            Err(_) => return Ok(()),
        };
        Err(StoreError::Unavailable {
            operation,
            reason: Unavailability::FileGone,
            source: gone.into(),
        })
    }
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

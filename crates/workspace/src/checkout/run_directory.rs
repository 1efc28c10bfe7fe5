//! A directory with the files of a tree, for the commands of one run.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::AtFlags;

use super::beneath::{open_file, open_root};
use super::blocking::blocking;
use super::error::CheckoutError;
use super::facts::{Facts, LiveDirectory};
use super::janitor::Directory;
use crate::Tree;

/// A directory with the files of a tree. Only one run uses it. When it is dropped, it is retained
/// if its state is known, and removed otherwise.
#[derive(Debug)]
pub struct Checkout {
    pub(super) directory: Directory,
    /// The tree that the directory has.
    pub(super) tree: Tree,
    /// The tree that the run had when it got the directory.
    pub(super) begun: Tree,
    pub(super) facts: Arc<Facts>,
    /// The topmost ephemeral files and directories that the last scan has left out.
    pub(super) ephemeral: BTreeSet<String>,
    /// Whether the directory has exactly the files of the tree, besides skipped ones.
    pub(super) is_known: bool,
    /// Set while processes may write at any time.
    pub(super) live: Option<LiveDirectory>,
}

/// The directories that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDirectories {
    pub files: PathBuf,
    /// A private directory for temporary files. It lasts as long as the run.
    pub scratch: PathBuf,
}

impl Checkout {
    pub(super) fn new(directory: Directory, tree: Tree, facts: Arc<Facts>) -> Self {
        Self {
            directory,
            begun: tree.clone(),
            tree,
            facts,
            ephemeral: BTreeSet::new(),
            is_known: true,
            live: None,
        }
    }

    /// Returns the directories for a command. Until the next scan, their state is unknown.
    pub fn for_command(&mut self) -> CommandDirectories {
        self.is_known = false;
        CommandDirectories {
            files: self.directory.files(),
            scratch: self.directory.scratch(),
        }
    }
}

impl Checkout {
    /// Reads a file that a command has left in the scratch directory, and removes it. Returns
    /// `None` if there is no such file. Reads at most `max_bytes`.
    pub async fn take_scratch_file(
        &self,
        name: &'static str,
        max_bytes: u64,
    ) -> Result<Option<Vec<u8>>, CheckoutError> {
        let scratch = self.directory.scratch();
        let take = move || read_and_unlink(&scratch, name, max_bytes).map_err(CheckoutError::of("reading", scratch));
        blocking(take).await
    }

    /// Has the directory removed, since processes may be left that use it.
    pub fn abandon(mut self) {
        self.is_known = false;
    }
}

/// Anything but a file stays as it is.
fn read_and_unlink(directory: &Path, name: &str, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let directory = open_root(directory)?;
    let file = match open_file(&directory, &CString::new(name)?) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
    Ok(Some(bytes))
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if self.is_known {
            self.directory.take().retain(&self.tree, Arc::clone(&self.facts));
        }
    }
}

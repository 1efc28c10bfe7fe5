//! The files of a directory that are part of no session, as commands see them.

use std::collections::BTreeMap;
use std::iter::successors;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType};

use super::beneath::{open_path, open_root};
use super::blocking::blocking;
use super::error::CheckoutError;
use super::facts::Fact;
use super::find::Search;
use super::run_directory::Checkout;
use super::scan::{Changed, read_one};
use crate::{FilePath, Tree, TreeError};

/// The most files and directories that are listed at a time.
const MAX_ENTRIES: u64 = 2_000;
/// The most bytes that are read at a time, unless one file may have more.
const MAX_BYTES: u64 = 32 << 20;

/// A file or a symlink that a command has left.
enum Left {
    Read(Changed),
    /// A file whose content is not read.
    Unread {
        size: u64,
        is_executable: bool,
    },
}

impl Checkout {
    /// Returns the topmost files and directories that are ephemeral.
    pub fn ephemeral(&self) -> impl Iterator<Item = &str> {
        self.ephemeral.iter().map(String::as_str)
    }

    /// Returns the tree with the directory's entries at an ephemeral path, and with the symlinks on
    /// the path. Returns the same tree if the path is not ephemeral, or leads to nothing. `is_read`
    /// decides by path and size which files are read.
    pub async fn with_ephemeral(
        &self,
        tree: &Tree,
        path: &FilePath,
        is_read: fn(&FilePath, u64) -> bool,
    ) -> Result<Tree, CheckoutError> {
        let mut tree = tree.clone();
        let mut last = None;
        // Only the tree follows symlinks, so none leads out of it. Each one found on the path leads
        // to the next path to look at.
        while let Ok(Some(real_path)) = tree.resolve(path).await
            && self.is_ephemeral(&real_path)
            && last.as_ref() != Some(&real_path)
        {
            for (found, left) in self.left_at(&real_path, is_read).await? {
                // A file tool may have made it part of the session since the last scan.
                if tree.entry(&found).await?.is_some() {
                    continue;
                }
                let is_on_path = found == real_path || real_path.is_below(&found);
                tree = match left {
                    Left::Unread { size, is_executable } => tree.with_unread_file(&found, size, is_executable).await?,
                    Left::Read(read) => match self.apply(&tree, found.as_str(), read).await? {
                        (_, Some(reason)) if is_on_path => return Err(CheckoutError::Unusable(reason)),
                        (changed, _) => changed,
                    },
                };
            }
            last = Some(real_path);
        }
        Ok(tree)
    }

    fn is_ephemeral(&self, path: &FilePath) -> bool {
        self.ephemeral().any(|root| {
            let below = path.as_str().strip_prefix(root);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }

    /// Reads the files that commands have left at a path.
    async fn left_at(
        &self,
        path: &FilePath,
        is_read: fn(&FilePath, u64) -> bool,
    ) -> Result<Vec<(FilePath, Left)>, CheckoutError> {
        let (root, start, facts) = (self.directory.files(), path.clone(), Arc::clone(&self.facts));
        let max_file_bytes = self.tree.limits().file_bytes;
        let max_bytes = MAX_BYTES.max(max_file_bytes);
        let read = move || -> Result<Vec<(FilePath, Left)>, CheckoutError> {
            let opened = open_root(&root).map_err(CheckoutError::of("opening", &root))?;
            let mut bytes_left = max_bytes;
            let mut all = Vec::new();
            for (path, fact) in files_at(&opened, &root, &start)? {
                if facts.has(&path, false) {
                    continue;
                }
                let path = FilePath::parse(&path).map_err(TreeError::from)?;
                let size = fact.size();
                if fact.kind() == FileType::RegularFile && !is_read(&path, size) {
                    let is_executable = fact.is_executable();
                    all.push((path, Left::Unread { size, is_executable }));
                    continue;
                }
                let read = read_one(&opened, path.as_str(), max_file_bytes.min(bytes_left))
                    .map_err(CheckoutError::of("reading", path.as_str()))?;
                match &read {
                    Changed::File { bytes, .. } => bytes_left -= bytes.len() as u64,
                    Changed::TooLarge { size } if *size > max_file_bytes => {
                        let (size, limit) = (*size, max_file_bytes);
                        return Err(TreeError::FileTooLarge { path, size, limit }.into());
                    }
                    Changed::TooLarge { .. } => return Err(TreeError::TooLarge { limit: max_bytes }.into()),
                    Changed::Symlink { .. } | Changed::Unusable { .. } | Changed::Gone => {}
                }
                all.push((path, Left::Read(read)));
            }
            Ok(all)
        };
        blocking(read).await
    }
}

/// Lists the entries at a path: the first symlink or file on it, or everything below the directory.
fn files_at(opened: &OwnedFd, root: &Path, path: &FilePath) -> Result<BTreeMap<String, Fact>, CheckoutError> {
    let on_path: Vec<_> = successors(Some(path.clone()), FilePath::parent).collect();
    for path in on_path.iter().rev() {
        match fact_at(opened, path) {
            Some(fact) if fact.kind() == FileType::Directory => {}
            found => {
                let found = found.map(|fact| (path.as_str().to_owned(), fact));
                return Ok(found.into_iter().collect());
            }
        }
    }
    let search = Search {
        root,
        start: path.as_str(),
        is_ephemeral: &|_, _| false,
        is_known: &|_, _| true,
        max_entries: MAX_ENTRIES,
    };
    Ok(search.find()?.files)
}

/// Returns the facts of the entry at a path that leads through directories only.
fn fact_at(root: &OwnedFd, path: &FilePath) -> Option<Fact> {
    let above = path.parent();
    let directory = open_path(root, above.as_ref().map_or("", FilePath::as_str)).ok()?;
    let stat = rustix::fs::statat(&directory, path.name(), AtFlags::SYMLINK_NOFOLLOW);
    stat.ok().map(|stat| Fact::of(&stat))
}

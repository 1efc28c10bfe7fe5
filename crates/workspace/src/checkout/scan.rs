//! Finds the changes by commands in a directory, and makes the tree of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, FileType};

use super::beneath::{open_directory, open_file, open_root};
use super::blocking::blocking;
use super::error::CheckoutError;
use super::facts::{Fact, Facts};
use super::file_clock::UNKNOWN;
use super::find::{Found, Search, SkippedFiles, is_denied, is_gone, unreadable};
use super::run_directory::Checkout;
use crate::{Entry, FilePath, Tree, TreeError};
use values::path_patterns::PathPatterns;

/// The most changed files that are read at a time.
const MAX_FILES: usize = 256;
/// The most bytes that are read at a time, unless one file has more.
const MAX_BYTES: u64 = 8 << 20;
/// More unsaved bytes than this are stored before the next files are read.
const MAX_UNSAVED_BYTES: u64 = 8 << 20;

/// The result of a scan.
#[derive(Debug)]
pub struct Scanned {
    /// The tree of the directory.
    pub tree: Tree,
    /// The files that can't be part of it.
    pub skipped: SkippedFiles,
}

/// A changed file.
pub(super) enum Changed {
    File {
        bytes: Bytes,
        is_executable: bool,
        modified: u64,
    },
    Symlink {
        target: String,
    },
    /// The file is larger than allowed.
    TooLarge {
        size: u64,
    },
    /// No tree can have it, or a command has taken the right to read it.
    Unusable {
        reason: String,
    },
    /// The file was removed or replaced meanwhile. The next scan finds its successor.
    Gone,
}

impl Checkout {
    /// Finds the changes since the last update or scan. If the directory is not live, all processes
    /// that may write have ended. New files and directories that the ephemeral patterns match, or
    /// that are in a directory which they match, are left out of the tree. Entries that are already
    /// part of the tree stay part of it.
    pub async fn scan(&mut self, ephemeral: &PathPatterns) -> Result<Scanned, CheckoutError> {
        self.is_known = false;
        // A file that changes from now on is read again by the next scan.
        let began = match &self.live {
            Some(_) => Some(self.time().await?),
            None => None,
        };
        let found = self.find(ephemeral).await?;
        let mut skipped = found.skipped;
        for path in found.ephemeral.difference(&self.ephemeral) {
            let reason = "ephemeral: what is new there lasts until the end of this run".to_owned();
            skipped.add(path.clone(), reason);
        }
        self.ephemeral = found.ephemeral;
        let mut tree = self.tree.clone();
        for path in gone(&self.facts, &found.files, &found.directories) {
            tree = tree.without(&FilePath::parse(&path).map_err(TreeError::from)?).await?;
        }
        for directory in found.directories.difference(&self.facts.directories) {
            tree = tree
                .with_directory(&FilePath::parse(directory).map_err(TreeError::from)?)
                .await?;
        }
        let is_unchanged =
            |path: &str, fact: &Fact| self.directory.has_exact_times && self.facts.is_unchanged(path, fact);
        let changed = found.files.iter();
        let changed = changed.filter(|(path, fact)| !is_unchanged(path, fact));
        let changed: Vec<_> = changed.map(|(path, fact)| (path.clone(), fact.size())).collect();
        let mut facts = Facts {
            files: found.files,
            directories: found.directories,
            ..Facts::default()
        };
        let touched = self.facts.touched.iter();
        let touched = touched.filter(|(path, _)| facts.files.get(*path).is_some_and(|fact| is_unchanged(path, fact)));
        let mut touched: BTreeMap<_, _> = touched.map(|(path, modified)| (path.clone(), *modified)).collect();
        let mut rest = changed.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_length(rest));
            rest = later;
            for (path, read) in self.read(batch).await? {
                if matches!(read, Changed::Gone) {
                    facts.files.remove(&path);
                }
                let (changed, reason) = self.apply(&tree, &path, read).await?;
                if changed.is_same(&tree) {
                    touched.extend(self.stored_time(&tree, &path, &facts).await?);
                }
                tree = changed;
                if let Some(reason) = reason {
                    facts.files.remove(&path);
                    skipped.add(path, reason);
                }
                if tree.unsaved_bytes() > MAX_UNSAVED_BYTES {
                    tree = tree.save().await?;
                }
            }
        }
        let tree = self.with_new_times(tree, &facts, &mut touched).await?.at(0);
        facts.touched = touched;
        self.facts = Arc::new(facts);
        self.tree = tree.clone();
        if let Some(began) = began {
            self.facts_mut().scanned_at = began;
        } else {
            self.wait_for_clock().await?;
            self.is_known = true;
        }
        Ok(Scanned { tree, skipped })
    }

    /// Lists the entries of the directory.
    async fn find(&self, ephemeral: &PathPatterns) -> Result<Found, CheckoutError> {
        let (root, max_entries) = (self.directory.files(), self.tree.limits().files);
        let (facts, ephemeral) = (Arc::clone(&self.facts), ephemeral.clone());
        let find = move || {
            let search = Search {
                root: &root,
                start: "",
                is_ephemeral: &|path, is_directory| ephemeral.matches(path.as_str(), is_directory) == Some(true),
                is_known: &|path, is_directory| facts.has(path, is_directory),
                max_entries,
            };
            search.find()
        };
        blocking(find).await
    }

    /// Gives files of which only the times have changed these times, if the session has changed
    /// anyway. So a file that was made again with the same content stays newer than its sources. A
    /// time alone is no change of a session.
    async fn with_new_times(
        &self,
        mut tree: Tree,
        facts: &Facts,
        touched: &mut BTreeMap<String, u64>,
    ) -> Result<Tree, TreeError> {
        if tree.is_same(&self.begun) {
            return Ok(tree);
        }
        for path in std::mem::take(touched).into_keys() {
            if let Some(fact) = facts.files.get(&path) {
                tree = tree.with_time(&FilePath::parse(&path)?, fact.modified_at()).await?;
            }
        }
        Ok(tree)
    }

    /// Returns the time that the tree has for a file, if the directory has another one.
    async fn stored_time(&self, tree: &Tree, path: &str, facts: &Facts) -> Result<Option<(String, u64)>, TreeError> {
        let entry = tree.entry(&FilePath::parse(path)?).await?;
        let (Some(Entry::File { modified, .. }), Some(fact)) = (entry, facts.files.get(path)) else {
            return Ok(None);
        };
        let is_touched = fact.modified_at() != modified.max(UNKNOWN);
        Ok(is_touched.then(|| (path.to_owned(), modified)))
    }

    /// Reads changed files. A symlink is not followed.
    async fn read(&self, files: &[(String, u64)]) -> Result<Vec<(String, Changed)>, CheckoutError> {
        let root = self.directory.files();
        let paths: Vec<_> = files.iter().map(|(path, _)| path.clone()).collect();
        let max_bytes = self.tree.limits().file_bytes;
        blocking(move || {
            let directory = open_root(&root).map_err(CheckoutError::of("opening", &root))?;
            let read = |path: String| {
                let changed =
                    read_one(&directory, &path, max_bytes).map_err(CheckoutError::of("reading", path.as_str()))?;
                Ok((path, changed))
            };
            paths.into_iter().map(read).collect()
        })
        .await
    }

    /// Adds a changed file to the tree. If it can't be part of one, returns the tree without it,
    /// and the reason.
    pub(super) async fn apply(
        &self,
        tree: &Tree,
        path: &str,
        read: Changed,
    ) -> Result<(Tree, Option<String>), CheckoutError> {
        let path = FilePath::parse(path).map_err(TreeError::from)?;
        let changed = match read {
            Changed::File {
                bytes,
                is_executable,
                modified,
            } => {
                let then = tree.clone().at(modified);
                let changed = then.with_file_at(&path, bytes, is_executable).await;
                changed.map(|changed| changed.at(tree.now()))
            }
            Changed::Symlink { target } => tree.with_symlink(&path, &relative_target(&path, target)).await,
            Changed::Gone => return Ok((self.without(tree, &path).await?, None)),
            Changed::Unusable { reason } => return Ok((self.without(tree, &path).await?, Some(reason))),
            Changed::TooLarge { size } => Err(TreeError::FileTooLarge {
                path: path.clone(),
                size,
                limit: self.tree.limits().file_bytes,
            }),
        };
        match changed {
            Ok(tree) => Ok((tree, None)),
            Err(error @ (TreeError::FileTooLarge { .. } | TreeError::UnsafeSymlink { .. })) => {
                Ok((self.without(tree, &path).await?, Some(error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file from the tree, if the tree has it.
    async fn without(&self, tree: &Tree, path: &FilePath) -> Result<Tree, TreeError> {
        if self.facts.files.contains_key(path.as_str()) {
            tree.without(path).await
        } else {
            Ok(tree.clone())
        }
    }
}

/// Returns the paths that the directory no longer has: files, or whole directories.
fn gone(known: &Facts, files: &BTreeMap<String, Fact>, directories: &BTreeSet<String>) -> Vec<String> {
    let removed: Vec<_> = known.directories.difference(directories).cloned().collect();
    let is_below_removed = |path: &str| {
        let mut above = path;
        while let Some((directory, _)) = above.rsplit_once('/') {
            if known.directories.contains(directory) && !directories.contains(directory) {
                return true;
            }
            above = directory;
        }
        false
    };
    let files = known.files.keys().filter(|path| !files.contains_key(*path));
    let paths = removed.iter().chain(files);
    paths.filter(|path| !is_below_removed(path)).cloned().collect()
}

/// Returns the target of a symlink. An absolute target within the workspace becomes relative, so
/// that it leads to the same file in each directory.
fn relative_target(path: &FilePath, target: String) -> String {
    let leads_to_root = target.bytes().all(|byte| byte == b'/');
    if !target.starts_with('/') || leads_to_root {
        return target;
    }
    match FilePath::resolve(&target) {
        Ok(to) => {
            let above = "../".repeat(path.names().count() - 1);
            format!("{above}{}", to.as_ref().map_or(".", FilePath::as_str))
        }
        Err(_) => target,
    }
}

/// Returns how many of the changed files are read next.
fn batch_length(files: &[(String, u64)]) -> usize {
    let mut bytes = 0_u64;
    let fits = |(_, size): &&(String, u64)| {
        bytes = bytes.saturating_add(*size);
        bytes <= MAX_BYTES
    };
    files.iter().take(MAX_FILES).take_while(fits).count().max(1)
}

/// Reads a file or a symlink that the scan has found.
pub(super) fn read_one(root: &OwnedFd, path: &str, max_bytes: u64) -> std::io::Result<Changed> {
    match read_found(root, path, max_bytes) {
        Err(error) if is_gone(&error) => Ok(Changed::Gone),
        Err(error) if is_denied(&error) => Ok(Changed::Unusable {
            reason: unreadable(&error),
        }),
        read => read,
    }
}

fn read_found(root: &OwnedFd, path: &str, max_bytes: u64) -> std::io::Result<Changed> {
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    let directory = open_directory(root, above)?;
    let name = CString::new(name).map_err(std::io::Error::other)?;
    let stat = rustix::fs::statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = rustix::fs::readlinkat(&directory, &*name, Vec::new())?;
        return Ok(match target.into_string() {
            Ok(target) => Changed::Symlink { target },
            Err(_) => Changed::Unusable {
                reason: "its target is not UTF-8".to_owned(),
            },
        });
    }
    let file = open_file(&directory, &name)?;
    let fact = Fact::of(&rustix::fs::fstat(&file)?);
    if fact.kind() != FileType::RegularFile {
        return Ok(Changed::Gone);
    }
    if fact.size() > max_bytes {
        return Ok(Changed::TooLarge { size: fact.size() });
    }
    let file = File::from(file);
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size > max_bytes {
        return Ok(Changed::TooLarge { size });
    }
    Ok(Changed::File {
        bytes: bytes.into(),
        is_executable: fact.is_executable(),
        modified: fact.modified_at(),
    })
}

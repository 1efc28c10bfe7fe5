//! Lists the entries of a checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, DirEntry, FileType};
use rustix::io::Errno;

use super::beneath::{entries, open_path, open_restored_root, path_of};
use super::error::CheckoutError;
use super::facts::Fact;
use crate::{FilePath, PathError, TreeError};

/// The most skipped files that are named.
const MAX_NAMED: usize = 100;

/// The files that can't be part of a tree. They stay in the directory until the run ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// The first 100 of them.
    pub named: Vec<Skipped>,
    /// The number of further ones.
    pub more: usize,
}

/// A file that can't be part of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path, with `�` in place of bytes that are not UTF-8.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// The directory as it is found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: BTreeMap<String, Fact>,
    pub(super) directories: BTreeSet<String>,
    pub(super) skipped: SkippedFiles,
    /// The topmost files and directories that are ephemeral or contain ephemeral entries.
    pub(super) ephemeral: BTreeSet<String>,
}

/// The scope of a search.
pub(super) struct Search<'a> {
    /// The directory.
    pub(super) root: &'a Path,
    /// Where to begin; empty for the root.
    pub(super) start: &'a str,
    /// Returns whether a path matches the patterns of ephemeral files. The flag marks a directory.
    pub(super) is_ephemeral: &'a dyn Fn(&FilePath, bool) -> bool,
    /// Returns whether a path is part of the tree or above such a path, also in ephemeral
    /// directories. The flag marks a directory.
    pub(super) is_known: &'a dyn Fn(&str, bool) -> bool,
    pub(super) max_entries: u64,
}

/// The topmost ephemeral directory around an entry; empty if there is none.
type Root = Arc<str>;

/// A search under way.
struct Walk<'a> {
    search: &'a Search<'a>,
    found: Found,
    /// The directories that are visited later, each with the ephemeral directory that contains it.
    waiting: Vec<(String, Root)>,
    /// How many entries were found that are not ephemeral.
    count: u64,
}

impl SkippedFiles {
    /// Adds a file.
    pub fn add(&mut self, path: String, reason: String) {
        if self.named.len() < MAX_NAMED {
            self.named.push(Skipped { path, reason });
        } else {
            self.more += 1;
        }
    }
}

impl Search<'_> {
    /// Lists all entries except ephemeral ones. Visits one directory at a time, so that its depth
    /// needs no stack.
    pub(super) fn find(&self) -> Result<Found, CheckoutError> {
        let opened = open_restored_root(self.root).map_err(CheckoutError::of("opening", self.root))?;
        let mut walk = Walk {
            search: self,
            found: Found::default(),
            waiting: vec![(self.start.to_owned(), Root::default())],
            count: 0,
        };
        while let Some((above, root)) = walk.waiting.pop() {
            let directory = match open_path(&opened, &above) {
                Ok(directory) => directory,
                Err(error) if is_gone(&error) => {
                    walk.found.directories.remove(&above);
                    continue;
                }
                Err(error) => {
                    walk.skip(above, &error);
                    continue;
                }
            };
            let listed = match entries(&directory) {
                Ok(listed) => listed,
                // The directory can be opened and not be entered.
                Err(Errno::ACCESS) => {
                    walk.skip(above, &Errno::ACCESS.into());
                    continue;
                }
                Err(error) => return Err(CheckoutError::of("listing", above)(error)),
            };
            for entry in listed {
                let entry = entry.map_err(CheckoutError::of("listing", above.as_str()))?;
                walk.add(&directory, (&above, &root), &entry)?;
            }
        }
        Ok(walk.found)
    }
}

impl Walk<'_> {
    /// Leaves out a path that can't be read, with everything below it.
    fn skip(&mut self, path: String, error: &io::Error) {
        self.found.skipped.add(path, unreadable(error));
    }

    /// Leaves out ephemeral entries: entries that the patterns match, and entries in a directory
    /// that they match. Only entries that are part of the tree stay part of it, with any files
    /// beside them. Returns `None` for an entry that is left out.
    fn root_of(&mut self, path: &FilePath, is_directory: bool, above: &Root) -> Option<Root> {
        let root = if above.is_empty() && (self.search.is_ephemeral)(path, is_directory) {
            Root::from(path.as_str())
        } else {
            Arc::clone(above)
        };
        if !root.is_empty() && !(self.search.is_known)(path.as_str(), is_directory) {
            self.found.ephemeral.insert(root.to_string());
            return None;
        }
        Some(root)
    }

    fn add(&mut self, directory: &OwnedFd, above: (&str, &Root), entry: &DirEntry) -> Result<(), CheckoutError> {
        let ((above, root), name) = (above, entry.file_name());
        let path = match name.to_str().map(|name| FilePath::parse(&path_of(above, name))) {
            Ok(Ok(path)) => Ok(path),
            Ok(Err(error)) => Err(unusable(error)),
            Err(_) => Err("its name is not UTF-8".to_owned()),
        };
        // There may be very many, so they are not examined.
        let is_storable = |kind| matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink);
        let kind = entry.file_type();
        let mut own_root = Root::default();
        if let Ok(path) = &path
            && is_storable(kind)
        {
            match self.root_of(path, kind == FileType::Directory, root) {
                Some(found) => own_root = found,
                None => return Ok(()),
            }
        }
        self.count += 1;
        if self.count > self.search.max_entries {
            let limit = self.search.max_entries;
            return Err(TreeError::TooManyFiles { limit }.into());
        }
        let shown = path_of(above, &name.to_string_lossy());
        let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            // A job may close the directory meanwhile.
            Err(Errno::ACCESS) => {
                self.skip(shown, &Errno::ACCESS.into());
                return Ok(());
            }
            Err(error) => return Err(CheckoutError::of("reading", shown)(error)),
        };
        let fact = Fact::of(&stat);
        let path = match path {
            Ok(path) => path,
            // In an ephemeral directory, nothing is part of the session anyway.
            Err(_) if !root.is_empty() => return Ok(()),
            Err(reason) => {
                self.found.skipped.add(shown, reason);
                return Ok(());
            }
        };
        let path_text = path.as_str();
        // Not every file system reports the kind of an entry.
        if is_storable(fact.kind()) && fact.kind() != kind {
            match self.root_of(&path, fact.kind() == FileType::Directory, root) {
                Some(found) => own_root = found,
                None => return Ok(()),
            }
        }
        match fact.kind() {
            FileType::Directory => {
                // A live directory may list a name twice, if it is renamed meanwhile.
                self.found.files.remove(path_text);
                self.found.directories.insert(path_text.to_owned());
                self.waiting.push((path_text.to_owned(), own_root));
            }
            FileType::RegularFile | FileType::Symlink => {
                self.found.directories.remove(path_text);
                self.found.files.insert(path_text.to_owned(), fact);
            }
            _ if !root.is_empty() => {}
            _ => {
                let reason = "it is neither a file nor a directory nor a symlink";
                self.found.skipped.add(shown, reason.to_owned());
            }
        }
        Ok(())
    }
}

fn unusable(error: PathError) -> String {
    format!("its path can't be stored: {error}")
}

/// Says why a path that can't be read is skipped.
pub(super) fn unreadable(error: &io::Error) -> String {
    format!("it can't be read: {error}")
}

/// Returns whether a command has made a path unreadable for the user of the service.
pub(super) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Returns whether a path leads to nothing any more, or to something of another kind.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::INVAL, Errno::NXIO];
    Errno::from_io_error(error).is_some_and(|errno| gone.contains(&errno))
}

//! Brings a directory to the files of a tree: writes new entries, removes old ones.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, OFlags};

use super::beneath::{EXECUTABLE, PLAIN, open_directory, open_file};
use super::blocking::blocking;
use super::error::CheckoutError;
use super::facts::{Fact, Facts, Time};
use super::file_clock::{file_time, file_time_after, set_modified};
use super::level::Level;
use super::live::until_done;
use super::removal::remove;
use super::run_directory::Checkout;
use crate::diff::TreeDiff;
use crate::{Entry, FilePath, Tree, TreeChange, TreeError};

/// The most files that are loaded and written at a time.
const MAX_FILES: usize = 256;
/// The most bytes that are loaded and written at a time, unless one file has more.
const MAX_BYTES: u64 = 8 << 20;

/// A file, a symlink or an empty directory to write.
enum New {
    File {
        bytes: Bytes,
        is_executable: bool,
        modified: u64,
    },
    Symlink {
        target: String,
    },
    Directory,
}

/// A path that was written. A directory has no facts.
type Written = (FilePath, Option<Fact>);

impl Checkout {
    /// Brings the directory to the files of a saved tree. In a live directory, changes only entries
    /// that differ from the last scan.
    pub async fn update(&mut self, tree: &Tree) -> Result<(), CheckoutError> {
        if self.tree.is_same(tree) {
            return Ok(());
        }
        self.is_known = false;
        // A few contents can state any number of files.
        tree.check_files().await?;
        let TreeDiff { changes, times, .. } = self.tree.diff(tree, usize::MAX).await?;
        self.remove_old(tree, &changes).await?;
        let mut rest = changes.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_length(rest));
            self.write_new(tree, batch).await?;
            rest = later;
        }
        self.tree = tree.clone();
        // In a live directory, other files may have changed since the last scan. The next one reads
        // those again that are written here.
        if self.live.is_none() {
            self.set_times(times).await?;
            self.wait_for_clock().await?;
            self.is_known = true;
        }
        Ok(())
    }

    /// Gives files of the tree other times.
    async fn set_times(&mut self, times: Vec<(FilePath, u64)>) -> Result<(), CheckoutError> {
        let set = move |root: Level| {
            // A file that can't be opened only has another time than in a new directory.
            let set_one = |(path, modified): (FilePath, u64)| {
                let file = open_file_at(&root, &path).ok()?;
                set_modified(&file, modified).ok()?;
                Some((path, Fact::of(&rustix::fs::fstat(&file).ok()?)))
            };
            Ok(times.into_iter().filter_map(set_one).collect::<Vec<_>>())
        };
        let set = self.in_directory(set).await?;
        let facts = self.facts_mut();
        for (path, fact) in set {
            facts.touched.remove(path.as_str());
            facts.files.insert(path.as_str().to_owned(), fact);
        }
        Ok(())
    }

    /// Removes the files that are gone or will be written anew, and the directories that no longer
    /// exist.
    async fn remove_old(&mut self, tree: &Tree, changes: &[TreeChange]) -> Result<(), CheckoutError> {
        let mut gone = BTreeSet::new();
        let facts = self.facts_mut();
        for change in changes {
            facts.touched.remove(change.path.as_str());
        }
        for change in changes.iter().filter(|change| is_gone(change)) {
            facts.files.remove(change.path.as_str());
            gone.insert(topmost_absent(tree, &change.path).await?);
        }
        for path in &gone {
            facts.remove(path);
        }
        self.in_directory(move |root| {
            for path in gone {
                let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
                let remove = || root.make(above)?.remove(name);
                until_done(remove).map_err(CheckoutError::of("removing", path.as_str()))?;
            }
            Ok(())
        })
        .await
    }

    /// Writes the new entries.
    async fn write_new(&mut self, tree: &Tree, changes: &[TreeChange]) -> Result<(), CheckoutError> {
        let new = load(tree, changes).await?;
        let written = self
            .in_directory(move |root| {
                let mut writer = Writer { root, last: None };
                let written = new.into_iter().map(|(path, new)| {
                    let fact = until_done(|| writer.write(&path, &new));
                    let fact = fact.map_err(CheckoutError::of("writing", path.as_str()))?;
                    Ok((path, fact))
                });
                written.collect::<Result<Vec<Written>, CheckoutError>>()
            })
            .await?;
        let facts = self.facts_mut();
        for (path, fact) in written {
            let mut above = path.parent();
            while let Some(directory) = above {
                above = directory.parent();
                facts.directories.insert(directory.as_str().to_owned());
            }
            match fact {
                Some(fact) => drop(facts.files.insert(path.as_str().to_owned(), fact)),
                None => drop(facts.directories.insert(path.as_str().to_owned())),
            }
        }
        Ok(())
    }

    /// Does blocking work in the directory.
    async fn in_directory<T: Send + 'static>(
        &self,
        work: impl FnOnce(Level) -> Result<T, CheckoutError> + Send + 'static,
    ) -> Result<T, CheckoutError> {
        let root = self.directory.open();
        let root = root.map_err(CheckoutError::of("opening", self.directory.files()))?;
        blocking(move || work(root)).await
    }

    /// Returns the facts for a change.
    pub(super) fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }

    /// Returns the time that the file system gives a file which changes now.
    pub(super) async fn time(&self) -> Result<Time, CheckoutError> {
        let probe = self.directory.probe();
        blocking(move || file_time(&probe).map_err(CheckoutError::of("writing", probe))).await
    }

    /// Waits until the clock of the file system has passed the times of all files.
    pub(super) async fn wait_for_clock(&mut self) -> Result<(), CheckoutError> {
        let newest = self.facts.files.values().map(Fact::changed).max().unwrap_or_default();
        let probe = self.directory.probe();
        let now =
            blocking(move || file_time_after(newest, &probe).map_err(CheckoutError::of("writing", probe))).await?;
        self.facts_mut().scanned_at = now;
        Ok(())
    }
}

/// Opens a file of the tree.
fn open_file_at(root: &Level, path: &FilePath) -> io::Result<OwnedFd> {
    let name = CString::new(path.name())?;
    match path.parent() {
        Some(above) => open_file(open_directory(&root.0, above.as_str())?, &name),
        None => open_file(&root.0, &name),
    }
}

/// Returns whether the earlier entry at a path is gone. A directory that stays may have files that
/// are part of no tree, such as ephemeral ones.
fn is_gone(change: &TreeChange) -> bool {
    let is_directory = |entry: &Entry| matches!(entry, Entry::Directory { .. });
    let stays = change.before.as_ref().is_some_and(is_directory) && change.after.as_ref().is_some_and(is_directory);
    change.before.is_some() && !stays
}

/// Returns how many of the changes are written next.
fn batch_length(changes: &[TreeChange]) -> usize {
    let mut bytes = 0;
    let fits = |change: &&TreeChange| {
        if let Some(Entry::File { size, .. }) = &change.after {
            bytes += size;
        }
        bytes <= MAX_BYTES
    };
    changes.iter().take(MAX_FILES).take_while(fits).count().max(1)
}

/// Loads the files to write.
async fn load(tree: &Tree, changes: &[TreeChange]) -> Result<Vec<(FilePath, New)>, CheckoutError> {
    let new = changes
        .iter()
        .filter_map(|change| Some((change.path.clone(), change.after.clone()?)));
    let (paths, entries): (Vec<_>, Vec<_>) = new.unzip();
    let loaded = tree.read_entries(&entries).await?;
    let new = entries.into_iter().zip(loaded).map(|(entry, bytes)| match entry {
        Entry::File {
            is_executable,
            modified,
            ..
        } => New::File {
            bytes,
            is_executable,
            modified,
        },
        Entry::Symlink { target } => New::Symlink { target },
        Entry::Directory { .. } => New::Directory,
    });
    Ok(paths.into_iter().zip(new).collect())
}

/// Returns the highest directory above the path that the tree does not have, or the path itself.
async fn topmost_absent(tree: &Tree, path: &FilePath) -> Result<String, CheckoutError> {
    let mut topmost = path.clone();
    while let Some(above) = topmost.parent() {
        if is_directory(tree, &above).await? {
            break;
        }
        topmost = above;
    }
    Ok(topmost.as_str().to_owned())
}

/// Returns whether a tree has a directory at a path without symlinks.
async fn is_directory(tree: &Tree, path: &FilePath) -> Result<bool, TreeError> {
    match tree.resolve(path).await {
        Ok(real) if real.as_ref() == Some(path) => Ok(matches!(tree.entry(path).await?, Some(Entry::Directory { .. }))),
        Ok(_) | Err(TreeError::NotADirectory { .. } | TreeError::SymlinkLoop { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes into a directory. Remembers the last directory inside, since files come sorted by path.
struct Writer {
    root: Level,
    last: Option<(FilePath, Level)>,
}

impl Writer {
    /// Writes a file or a symlink, and returns its facts; a directory has none.
    fn write(&mut self, path: &FilePath, new: &New) -> io::Result<Option<Fact>> {
        let name = path.name();
        match new {
            New::Directory => {
                self.above(path)?.make(name)?;
                Ok(None)
            }
            New::Symlink { target } => {
                let directory = &self.above(path)?.0;
                remove(directory, name)?;
                rustix::fs::symlinkat(target.as_str(), directory, name)?;
                let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(Some(Fact::of(&stat)))
            }
            New::File {
                bytes,
                is_executable,
                modified,
            } => {
                let mut file = self.create(path, *is_executable)?;
                file.write_all(bytes)?;
                set_modified(&file, *modified)?;
                Ok(Some(written(&file)?))
            }
        }
    }

    /// Creates an empty file in the place of anything else.
    fn create(&mut self, path: &FilePath, is_executable: bool) -> io::Result<File> {
        let (directory, name) = (&self.above(path)?.0, path.name());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if is_executable { EXECUTABLE } else { PLAIN };
        let opened = match rustix::fs::openat(directory, name, flags, mode) {
            Err(rustix::io::Errno::EXIST) => {
                remove(directory, name)?;
                rustix::fs::openat(directory, name, flags, mode)
            }
            opened => opened,
        };
        Ok(File::from(opened?))
    }

    /// Opens the directory of a path.
    fn above(&mut self, path: &FilePath) -> io::Result<&Level> {
        let Some(above) = path.parent() else {
            return Ok(&self.root);
        };
        let last = match self.last.take() {
            Some(last) if last.0 == above => last,
            _ => {
                let level = self.root.make(above.as_str())?;
                (above, level)
            }
        };
        Ok(&self.last.insert(last).1)
    }
}

/// Returns the facts of a new file. Adds the bits of its mode that the umask has left out.
fn written(file: &File) -> io::Result<Fact> {
    let fact = Fact::of(&rustix::fs::fstat(file)?);
    if fact.mode() == fact.new_mode() {
        return Ok(fact);
    }
    rustix::fs::fchmod(file, fact.new_mode())?;
    Ok(Fact::of(&rustix::fs::fstat(file)?))
}

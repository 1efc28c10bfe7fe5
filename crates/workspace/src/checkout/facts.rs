//! The kernel's facts about the files of a directory at the time of a scan.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::{FileType, Mode, Stat};

use super::beneath::{EXECUTABLE, PLAIN};
use values::path_patterns::PathPatterns;

/// The facts of all files and symlinks, by path, in the order of the paths.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) files: BTreeMap<String, Fact>,
    /// The directories, without the root.
    pub(super) directories: BTreeSet<String>,
    /// The files that have another time than in the tree, since only their times have changed, with
    /// the times of the tree.
    pub(super) touched: BTreeMap<String, u64>,
    /// When the scan began. Files that changed then or later may change again with the same facts.
    pub(super) scanned_at: Time,
}

/// The facts of one file or symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fact {
    size: u64,
    modified: Time,
    changed: Time,
    inode: u64,
    device: u64,
    mode: u32,
    /// Whether it has other names too, so that a write to one shows under all.
    is_linked: bool,
}

/// A time of the file system: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(i64, i64);

/// A directory in which processes may write at any time.
#[derive(Debug, Clone)]
pub(super) struct LiveDirectory {
    /// When that began.
    pub(super) since: Time,
    /// Patterns of the files that scans leave out.
    pub(super) ephemeral: PathPatterns,
}

impl Facts {
    /// Returns all paths.
    pub(super) fn paths(&self) -> BTreeSet<&str> {
        self.files.keys().chain(&self.directories).map(String::as_str).collect()
    }

    /// Returns whether there is a directory, or a file or symlink, at a path.
    pub(super) fn has(&self, path: &str, is_directory: bool) -> bool {
        if is_directory {
            self.directories.contains(path)
        } else {
            self.files.contains_key(path)
        }
    }

    /// Removes a path and everything below it.
    pub(super) fn remove(&mut self, path: &str) {
        self.files.remove(path);
        self.directories.remove(path);
        // `0` is the byte after `/`.
        let below = format!("{path}/")..format!("{path}0");
        let files: Vec<_> = self.files.range(below.clone()).map(|(path, _)| path.clone()).collect();
        let directories: Vec<_> = self.directories.range(below).cloned().collect();
        for path in files {
            self.files.remove(&path);
        }
        for path in directories {
            self.directories.remove(&path);
        }
    }

    /// Returns whether a file is certainly as it was at the last scan.
    pub(super) fn is_unchanged(&self, path: &str, fact: &Fact) -> bool {
        self.files.get(path) == Some(fact) && fact.changed < self.scanned_at && fact.modified < self.scanned_at
    }
}

impl Fact {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
            modified: Time(stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: Time(stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
            inode: stat.st_ino,
            device: stat.st_dev,
            mode: stat.st_mode,
            is_linked: stat.st_nlink > 1,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(super) fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    pub(super) fn mode(&self) -> Mode {
        Mode::from_raw_mode(self.mode)
    }

    /// Returns the mode that the file has when it is written anew.
    pub(super) fn new_mode(&self) -> Mode {
        if self.is_executable() { EXECUTABLE } else { PLAIN }
    }

    pub(super) fn is_linked(&self) -> bool {
        self.is_linked
    }

    pub(super) fn changed(&self) -> Time {
        self.changed
    }

    pub(super) fn modified(&self) -> Time {
        self.modified
    }

    /// Returns when its content last changed, in nanoseconds since 1970.
    pub(super) fn modified_at(&self) -> u64 {
        let Time(seconds, nanoseconds) = self.modified;
        let total = seconds
            .checked_mul(1_000_000_000)
            .and_then(|total| total.checked_add(nanoseconds));
        total
            .and_then(|total| u64::try_from(total).ok())
            .unwrap_or_default()
            .max(1)
    }
}

fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

//! Copies files from a directory that is in use, where it certainly has what the tree has.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use super::beneath::{open_directory, open_file, open_root};
use super::facts::{Fact, Facts};
use super::living::Known;
use crate::workspace::{FilePath, TreeDiff};

/// A directory from which files can be copied.
#[derive(Debug)]
pub(super) struct Source {
    known: Known,
    /// The paths at which the wanted tree is another one.
    changed: HashSet<FilePath>,
}

/// An opened source.
pub(super) struct OpenSource<'a> {
    facts: &'a Facts,
    root: OwnedFd,
    /// The last directory that was opened, and its path.
    last: Option<(String, OwnedFd)>,
}

impl Source {
    pub(super) fn new(known: Known, changes: TreeDiff) -> Self {
        let changed = changes.changes.into_iter().map(|change| change.path).collect();
        Self { known, changed }
    }

    /// Returns whether the directory may have the file that the wanted tree has at a path.
    pub(super) fn has(&self, path: &FilePath) -> bool {
        self.known.facts.files.contains_key(path.as_str()) && !self.changed.contains(path)
    }

    pub(super) fn open(&self) -> io::Result<OpenSource<'_>> {
        Ok(OpenSource {
            facts: &self.known.facts,
            root: open_root(&self.known.root)?,
            last: None,
        })
    }
}

impl OpenSource<'_> {
    /// Copies the content of a file into an empty one. Returns whether that is certainly the
    /// content that the tree has at the path: the file had the known facts before and after.
    pub(super) fn copy(&mut self, path: &FilePath, to: &File) -> io::Result<bool> {
        let from = self.file(path)?;
        let is_as_known = || -> io::Result<bool> {
            let fact = Fact::of(&rustix::fs::fstat(&from)?);
            Ok(self.facts.is_unchanged(path.as_str(), &fact))
        };
        if !is_as_known()? {
            return Ok(false);
        }
        let size = self.facts.files.get(path.as_str()).map_or(0, Fact::size);
        let mut copied = 0;
        while copied < size {
            let rest = usize::try_from(size - copied).unwrap_or(usize::MAX);
            // The file system shares the blocks if it can, and copies them otherwise.
            match rustix::fs::copy_file_range(&from, None, to, None, rest)? {
                0 => return Ok(false),
                length => copied += length as u64,
            }
        }
        is_as_known()
    }

    fn file(&mut self, path: &FilePath) -> io::Result<OwnedFd> {
        let name = std::ffi::CString::new(path.name())?;
        let Some(above) = path.parent() else {
            return open_file(&self.root, &name);
        };
        if self.last.as_ref().is_none_or(|(last, _)| last != above.as_str()) {
            let directory = open_directory(&self.root, above.as_str())?;
            self.last = Some((above.as_str().to_owned(), directory));
        }
        let directory = self
            .last
            .as_ref()
            .map_or(self.root.as_fd(), |(_, directory)| directory.as_fd());
        open_file(directory, &name)
    }
}

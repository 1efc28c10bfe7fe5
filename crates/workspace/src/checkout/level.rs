//! A directory of a checkout, opened to be changed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::path::Arg;

use super::beneath::{EXECUTABLE, open_directory, open_restored, open_restored_root};
use super::removal::{Budget, remove, remove_within};

/// A directory of a checkout.
#[derive(Debug)]
pub(super) struct Level(pub(super) OwnedFd);

impl Level {
    /// Opens the root of a checkout.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        open_restored_root(path).map(Self)
    }

    /// Opens a directory that can be written to, and makes it and those above it if they don't
    /// exist. Anything else at the path is removed. The root has an empty path.
    pub(super) fn make(&self, path: &str) -> io::Result<Self> {
        let mut level = Self(open_directory(&self.0, ".")?);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            level = level.make_one(name)?;
        }
        Ok(level)
    }

    fn make_one(&self, name: &str) -> io::Result<Self> {
        match open_restored(&self.0, name) {
            Err(error) if is_other(&error) => (),
            opened => return opened.map(Self),
        }
        remove(&self.0, name)?;
        rustix::fs::mkdirat(&self.0, name, EXECUTABLE)?;
        let made = open_directory(&self.0, name)?;
        // The service's umask may have left out some bits.
        rustix::fs::fchmod(&made, EXECUTABLE)?;
        Ok(Self(made))
    }

    /// Removes the entry under a name, with everything below it. Does nothing if there is nothing.
    pub(super) fn remove<P: Arg + Copy>(&self, name: P) -> io::Result<()> {
        remove(&self.0, name)
    }

    /// Does the same within a budget.
    pub(super) fn remove_within<P: Arg + Copy>(&self, name: P, budget: &mut Budget) -> io::Result<()> {
        remove_within(&self.0, name, budget)
    }
}

/// Returns whether no directory could be opened since there is none.
fn is_other(error: &io::Error) -> bool {
    let other = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    Errno::from_io_error(error).is_some_and(|errno| other.contains(&errno))
}

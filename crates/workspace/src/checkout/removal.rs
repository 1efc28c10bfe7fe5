//! Removes files and directories that commands have left in any shape: deep, unreadable, or full of
//! symlinks.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::beneath::{entries, open_restored};

/// The most times that a directory is listed to remove its entries. Each level of directories below
/// it may need one time. More can only be that a process puts new files there all the time.
const MAX_ROUNDS: usize = 1 << 20;

/// Counts the directories that were moved by this process, so that each has a new name.
static MOVED: AtomicU64 = AtomicU64::new(1);

/// How many names may still be removed or moved. Then removals fail with `WouldBlock`. The rest can
/// be removed later.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn unlimited() -> Self {
        Self(u64::MAX)
    }

    pub(super) fn new(names: u64) -> Self {
        Self(names)
    }

    fn spend(&mut self) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
        Ok(())
    }
}

/// Removes the entry under a name of a directory, with everything below it. Does nothing if there
/// is nothing.
pub(super) fn remove<P: Arg + Copy>(directory: impl AsFd, name: P) -> io::Result<()> {
    remove_within(directory, name, &mut Budget::unlimited())
}

/// Does the same within a budget.
pub(super) fn remove_within<P: Arg + Copy>(directory: impl AsFd, name: P, budget: &mut Budget) -> io::Result<()> {
    budget.spend()?;
    if unlink(&directory, name)? {
        return Ok(());
    }
    empty(&open_restored(&directory, name)?, budget)?;
    Ok(rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?)
}

/// Removes a name that leads to no directory. Returns whether the name is gone; a directory stays.
fn unlink(directory: impl AsFd, name: impl Arg) -> io::Result<bool> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes everything in a directory.
///
/// Each directory in it is emptied into it first, so that the depth of the removed entries costs
/// neither stack nor open files.
fn empty(directory: &OwnedFd, budget: &mut Budget) -> io::Result<()> {
    until_empty(directory, budget, |name, budget| {
        if rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        let inner = open_restored(directory, name)?;
        lift(&inner, directory, budget)?;
        Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
    })
}

/// Removes the files of a directory, and moves its directories into another one.
fn lift(from: &OwnedFd, to: &OwnedFd, budget: &mut Budget) -> io::Result<()> {
    until_empty(from, budget, |name, _| {
        // A directory can be moved only if it is writable, since its `..` changes.
        drop(open_restored(from, name)?);
        loop {
            let unique = format!(".removed-{}", MOVED.fetch_add(1, Ordering::Relaxed));
            match rustix::fs::renameat_with(from, name, to, unique, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => (),
                renamed => return Ok(renamed?),
            }
        }
    })
}

/// Removes the files of a directory and takes its directories out of it, until it has none.
fn until_empty(
    directory: &OwnedFd,
    budget: &mut Budget,
    mut take_out: impl FnMut(&CStr, &mut Budget) -> io::Result<()>,
) -> io::Result<()> {
    for _ in 0..MAX_ROUNDS {
        let mut is_empty = true;
        for entry in entries(directory)? {
            let entry = entry?;
            is_empty = false;
            budget.spend()?;
            if !unlink(directory, entry.file_name())? {
                take_out(entry.file_name(), budget)?;
            }
        }
        if is_empty {
            return Ok(());
        }
    }
    Err(Errno::NOTEMPTY.into())
}

//! Removes files and directories that commands have left in any shape: deep, unreadable, or full of
//! symlinks.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::beneath::{entries, open_restored};

/// The most times that a directory is listed to remove what it has. Each level of directories below
/// it may need one time. More can only be that a process puts new files there all the time.
const MAX_ROUNDS: usize = 1 << 20;

/// Removes what a directory has under a name, with everything below it. Does nothing if there is
/// nothing.
pub(super) fn remove<P: Arg + Copy>(directory: impl AsFd, name: P) -> io::Result<()> {
    if unlink(&directory, name)? {
        return Ok(());
    }
    empty(&open_restored(&directory, name)?)?;
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
/// Each directory in it is emptied into it first, so that the depth of what is removed costs
/// neither stack nor open files.
fn empty(directory: &OwnedFd) -> io::Result<()> {
    let mut moved = 0_u64;
    until_empty(directory, |name| {
        if rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        let inner = open_restored(directory, name)?;
        lift(&inner, directory, &mut moved)?;
        Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
    })
}

/// Removes the files of a directory, and moves its directories into another one.
fn lift(from: &OwnedFd, to: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    until_empty(from, |name| {
        // A directory can be moved only if it is writable, since its `..` changes.
        drop(open_restored(from, name)?);
        loop {
            *moved += 1;
            let unique = format!(".removed-{moved}");
            match rustix::fs::renameat_with(from, name, to, unique, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => (),
                renamed => return Ok(renamed?),
            }
        }
    })
}

/// Removes the files of a directory and takes its directories out of it, until it has none.
fn until_empty(directory: &OwnedFd, mut take_out: impl FnMut(&CStr) -> io::Result<()>) -> io::Result<()> {
    for _ in 0..MAX_ROUNDS {
        let mut is_empty = true;
        for entry in entries(directory)? {
            let entry = entry?;
            is_empty = false;
            if !unlink(directory, entry.file_name())? {
                take_out(entry.file_name())?;
            }
        }
        if is_empty {
            return Ok(());
        }
    }
    Err(Errno::NOTEMPTY.into())
}

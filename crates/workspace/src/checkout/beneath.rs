//! Opens paths beneath a directory. Commands may have left any symlinks there, so none is followed.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::{Dir, DirEntry, Mode, OFlags, ResolveFlags};
use rustix::path::Arg;

use super::error::CheckoutError;

/// The mode of the root.
pub(super) const PRIVATE: Mode = Mode::RWXU;
/// The mode of directories in it, and of files that may be executed.
pub(super) const EXECUTABLE: Mode = Mode::from_raw_mode(0o755);
/// The mode of all other files.
pub(super) const PLAIN: Mode = Mode::from_raw_mode(0o644);

/// No path leaves the directory, and none leads through a symlink.
const CONFINED: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Opens the root itself.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The same, after a command may have made it unreadable. The mode of the root is part of no tree.
pub(super) fn open_restored_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    restored(&rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens a directory beneath another one, after a command may have made it unreadable.
pub(super) fn open_restored(root: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    restored(&rustix::fs::openat2(root, path, flags, Mode::empty(), CONFINED)?)
}

/// Gives the owner of a directory all rights back, and opens it.
fn restored(directory: &OwnedFd) -> io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(directory)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        set_mode(directory, EXECUTABLE)?;
    }
    open_directory(directory, ".")
}

/// Opens the entry under a name, of any kind and with any mode, to examine it.
pub(super) fn open_any(directory: impl AsFd, name: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// Changes the mode of a file or directory by its descriptor: a job may put a symlink in its place
/// at any time. It must be no symlink.
pub(super) fn set_mode(opened: &OwnedFd, mode: Mode) -> io::Result<()> {
    Ok(rustix::fs::chmod(
        format!("/proc/self/fd/{}", opened.as_raw_fd()),
        mode,
    )?)
}

/// Opens a directory beneath another one.
pub(super) fn open_directory(root: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(root, path, flags, Mode::empty(), CONFINED)?)
}

/// Opens a file beneath a directory for reading. Does not wait for the other end of a pipe.
pub(super) fn open_file(root: impl AsFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(root, name, flags, Mode::empty(), CONFINED)?)
}

/// Opens a directory by its path in the tree. The root has an empty path.
pub(super) fn open_path(root: impl AsFd, path: &str) -> io::Result<OwnedFd> {
    open_directory(root, if path.is_empty() { "." } else { path })
}

/// Makes a directory that no other user can enter.
pub(super) fn make_private(path: &Path) -> Result<(), CheckoutError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(CheckoutError::of("creating", path))
}

/// Returns the path in the tree of a name in a directory.
pub(super) fn path_of(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// Returns the entries of a directory, without itself and the directory above it.
pub(super) fn entries(directory: impl AsFd) -> rustix::io::Result<impl Iterator<Item = rustix::io::Result<DirEntry>>> {
    let is_other = |entry: &DirEntry| !matches!(entry.file_name().to_bytes(), b"." | b"..");
    let entries = Dir::read_from(directory)?;
    Ok(entries.filter(move |entry| entry.as_ref().map_or(true, is_other)))
}

//! A directory on disk, and the one of a shared directory that shows through it.
//!
//! The files of a checkout are one layer, or two: its own files, over a directory that several
//! checkouts share and that nobody changes. The kernel mounts both as one for a command
//! (overlayfs). Nothing is mounted outside of commands, so the upper layer is read and written
//! here. In it, a *whiteout* hides what the lower layer has under its name, and an *opaque*
//! directory hides all of the directory below it. Both are the kernel's own forms.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, Stat, XattrFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::beneath::{EXECUTABLE, open_directory, open_restored, open_restored_root, open_root};
use super::removal::{Budget, remove, remove_within};

/// The kernel marks an opaque directory with this attribute.
const OPAQUE: &str = "user.overlay.opaque";
const IS_OPAQUE: &[u8] = b"y";

/// The directories of an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// The files that show through. The command must not be able to write to them.
    pub lower: PathBuf,
    /// What is written.
    pub upper: PathBuf,
    /// A directory for the kernel's own use.
    pub work: PathBuf,
}

/// A directory of a checkout.
#[derive(Debug)]
pub(super) struct Level {
    /// The directory itself: in the upper layer, if there are two.
    pub(super) own: OwnedFd,
    /// The directory of the lower layer that shows through it.
    below: Option<OwnedFd>,
}

impl Level {
    /// Opens the root of a checkout with layers.
    pub(super) fn layered(layers: &Layers) -> io::Result<Self> {
        Ok(Self {
            own: open_root(&layers.upper)?,
            below: Some(open_root(&layers.lower)?),
        })
    }

    /// Opens a directory that is no layer.
    pub(super) fn plain(path: &Path) -> io::Result<Self> {
        let own = open_restored_root(path)?;
        Ok(Self { own, below: None })
    }

    /// Opens a directory that can be written to, and makes it and those above it if they don't
    /// exist. Anything else at the path is removed. The root has an empty path.
    pub(super) fn make(&self, path: &str) -> io::Result<Self> {
        let mut level = Self {
            own: open_directory(&self.own, ".")?,
            below: self.below.as_ref().map(OwnedFd::try_clone).transpose()?,
        };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            level = level.make_one(name)?;
        }
        Ok(level)
    }

    fn make_one(&self, name: &str) -> io::Result<Self> {
        let below = || self.below.as_ref().and_then(|below| open_directory(below, name).ok());
        let opened = match open_restored(&self.own, name) {
            Ok(own) => Some(own),
            Err(error) if is_other(&error) => None,
            Err(error) => return Err(error),
        };
        if let Some(own) = opened {
            let below = if is_opaque(&own) { None } else { below() };
            return Ok(Self { own, below });
        }
        let is_taken = rustix::fs::statat(&self.own, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        remove(&self.own, name)?;
        rustix::fs::mkdirat(&self.own, name, EXECUTABLE)?;
        let own = open_directory(&self.own, name)?;
        // The service's umask may have left out some bits.
        rustix::fs::fchmod(&own, EXECUTABLE)?;
        let mut below = below();
        if is_taken && below.take().is_some() {
            rustix::fs::fsetxattr(&own, OPAQUE, IS_OPAQUE, XattrFlags::empty())?;
        }
        Ok(Self { own, below })
    }

    /// Removes what the directory has under a name, with everything below it. Does nothing if there
    /// is nothing.
    pub(super) fn remove<P: Arg + Copy>(&self, name: P) -> io::Result<()> {
        self.remove_within(name, &mut Budget::unlimited())
    }

    /// Does the same within a budget.
    pub(super) fn remove_within<P: Arg + Copy>(&self, name: P, budget: &mut Budget) -> io::Result<()> {
        remove_within(&self.own, name, budget)?;
        let shows_through = |below| rustix::fs::statat(below, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if self.below.as_ref().is_some_and(shows_through) {
            rustix::fs::mknodat(&self.own, name, FileType::CharacterDevice, Mode::empty(), 0)?;
        }
        Ok(())
    }

    /// Returns whether a name hides what the lower layer has.
    pub(super) fn is_whiteout<P: Arg + Copy>(&self, name: P) -> bool {
        let stat = || rustix::fs::statat(&self.own, name, AtFlags::SYMLINK_NOFOLLOW);
        self.below.is_some() && stat().is_ok_and(|stat| is_whiteout(&stat))
    }
}

/// Returns whether no directory could be opened since there is none.
fn is_other(error: &io::Error) -> bool {
    let other = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    Errno::from_io_error(error).is_some_and(|errno| other.contains(&errno))
}

/// Returns whether a file of an upper layer is a whiteout.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Returns whether a directory of an upper layer hides the one below it.
pub(super) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0; 4];
    match rustix::fs::fgetxattr(directory, OPAQUE, &mut value) {
        Ok(length) => value.get(..length) == Some(IS_OPAQUE),
        Err(_) => false,
    }
}

/// Tries out whether a folder can have upper layers: whiteouts and opaque directories.
pub(super) fn check_upper_layers(folder: &Path) -> io::Result<()> {
    const NAME: &str = "layer";
    let folder = Level::plain(folder)?;
    let tried = folder.make(NAME).and_then(|layer| try_upper_layer(&layer.own));
    folder.remove(NAME)?;
    tried
}

fn try_upper_layer(layer: &OwnedFd) -> io::Result<()> {
    rustix::fs::fsetxattr(layer, OPAQUE, IS_OPAQUE, XattrFlags::empty())?;
    rustix::fs::mknodat(layer, "whiteout", FileType::CharacterDevice, Mode::empty(), 0)?;
    if is_opaque(layer) {
        Ok(())
    } else {
        Err(Errno::OPNOTSUPP.into())
    }
}

//! Mounts the layers of a working directory as one.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::super::command::Overlay;
use super::{Step as _, StepError};

/// What the probe writes.
const CONTENT: &str = "lower";

/// Mounts an overlay at its directory. The process must be in a mount namespace of its own.
pub(super) fn mount_overlay(overlay: &Overlay) -> io::Result<()> {
    let open = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, path, flags, Mode::empty())
    };
    let (lower, upper, work) = (open(&overlay.lower)?, open(&overlay.upper)?, open(&overlay.work)?);
    // By number, since a path may have characters that mean something in options.
    let of = |file: &rustix::fd::OwnedFd| format!("/proc/self/fd/{}", file.as_raw_fd());
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        of(&lower),
        of(&upper),
        of(&work)
    );
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", &overlay.directory, "overlay", flags, &*options)?;
    Ok(())
}

/// Tries out overlays in a new directory inside a given one: files show through, and what changes
/// them is written to the upper layer.
pub(super) fn try_out(inside: &Path) -> Result<(), StepError> {
    let folder = inside.join(format!("overlay-probe-{}", std::process::id()));
    let tried = try_out_in(&folder);
    fs::remove_dir_all(&folder).step("remove the layers")?;
    tried
}

fn try_out_in(folder: &Path) -> Result<(), StepError> {
    let overlay = Overlay {
        directory: folder.join("files"),
        lower: folder.join("lower"),
        upper: folder.join("upper"),
        work: folder.join("work"),
    };
    for path in [
        folder,
        &overlay.directory,
        &overlay.lower,
        &overlay.upper,
        &overlay.work,
    ] {
        fs::create_dir(path).step("make the layers")?;
    }
    for name in ["changed", "removed"] {
        fs::write(overlay.lower.join(name), CONTENT).step("write the lower layer")?;
    }
    mount_overlay(&overlay).step("mount an overlay")?;
    let changed = change(&overlay.directory).step("change files through an overlay");
    unmount(&overlay.directory, UnmountFlags::DETACH).step("unmount an overlay")?;
    changed?;
    let is_lower_untouched = ["changed", "removed"]
        .iter()
        .all(|name| fs::read(overlay.lower.join(name)).is_ok_and(|content| content == CONTENT.as_bytes()));
    if !is_lower_untouched {
        return Err("the lower layer has changed").step("rely on overlays");
    }
    Ok(())
}

fn change(directory: &Path) -> io::Result<()> {
    if fs::read(directory.join("changed"))? != CONTENT.as_bytes() {
        return Err(io::Error::other("the lower layer does not show through"));
    }
    fs::write(directory.join("changed"), "upper")?;
    fs::remove_file(directory.join("removed"))
}

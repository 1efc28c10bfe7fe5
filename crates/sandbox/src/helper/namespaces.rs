//! Namespaces, where the kernel offers them: a second wall behind Landlock and seccomp.
//!
//! A user namespace lends the rights to mount. The command gets a root of its own, in which the
//! directories of the command have the same paths on every host, and the directories of the host
//! their own. All of it becomes read-only but the directories of the command. So a command can't
//! even change the mode or the time of a file outside, which Landlock does not judge. Its network
//! has no interfaces, and its IPC objects end with it. A command that may use the proxy is in a
//! network that the helper made before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, getegid, geteuid, pivot_root};

use super::super::wire::{Binding, Restrictions};
use super::{Step as _, StepError};

/// Moves the calling process, which must have one thread, into namespaces of its own.
pub(super) fn enter(restrictions: &Restrictions) -> Result<(), StepError> {
    let mut flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if !restrictions.proxy {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    enter_user_and(flags)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step("make mounts private")?;
    make_root(&restrictions.bindings).step("make a root directory")?;
    let mounts = fs::read("/proc/self/mountinfo").step("read the mounts")?;
    for (point, flags) in parse(&mounts) {
        if !restrictions
            .bindings
            .iter()
            .any(|binding| point.starts_with(&binding.inside))
        {
            make_read_only(&point, flags).step("make a mount read-only")?;
        }
    }
    Ok(())
}

/// Makes a root directory with the directories of the host and those of the command, and leaves the
/// old one.
fn make_root(bindings: &[Binding]) -> io::Result<()> {
    const OLD: &str = "/.old";
    let old = |path: &Path| Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path));
    // Any directory will do: it shows again once the new root has moved away from it.
    let at = bindings.first().map_or(Path::new("/tmp"), |binding| &binding.outside);
    mount(
        "tmpfs",
        at,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"mode=0755",
    )?;
    chdir(at)?;
    fs::create_dir("./.old")?;
    pivot_root(".", "./.old")?;
    chdir("/")?;
    for entry in fs::read_dir(OLD)? {
        let entry = entry?;
        let (path, kind) = (Path::new("/").join(entry.file_name()), entry.file_type()?);
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, path)?;
        } else if kind.is_dir() && !bindings.iter().any(|binding| binding.inside == path) {
            fs::create_dir(&path)?;
            mount_bind_recursive(entry.path(), &path)?;
        }
    }
    for binding in bindings {
        fs::create_dir(&binding.inside)?;
        mount_bind_recursive(old(&binding.outside), &binding.inside)?;
    }
    unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)
}

/// Moves the calling process into a user namespace and into others that belong to it.
pub(super) fn enter_user_and(others: CloneFlags) -> Result<(), StepError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | others).step("make namespaces")?;
    // It keeps its user, and no other user exists.
    fs::write("/proc/self/setgroups", "deny").step("give up groups")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).step("map the user")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).step("map the group")
}

/// Reads `/proc/self/mountinfo`: where mounts are, and their flags. A path leads to the last of
/// several mounts in one place. Each gets the flags of all.
fn parse(mounts: &[u8]) -> BTreeMap<PathBuf, MountFlags> {
    let mut parsed = BTreeMap::new();
    for line in mounts.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (Some(point), Some(options)) = (fields.next(), fields.next()) else {
            continue;
        };
        let flags = options.split(|byte| *byte == b',').map(|option| match option {
            b"nosuid" => MountFlags::NOSUID,
            b"nodev" => MountFlags::NODEV,
            b"noexec" => MountFlags::NOEXEC,
            b"noatime" => MountFlags::NOATIME,
            b"nodiratime" => MountFlags::NODIRATIME,
            b"relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        });
        *parsed.entry(unescape(point)).or_insert(MountFlags::empty()) |= flags.collect::<MountFlags>();
    }
    parsed
}

fn make_read_only(point: &Path, flags: MountFlags) -> io::Result<()> {
    // Flags that the owner of the mount has set can't be taken away.
    match mount_remount(point, flags | MountFlags::BIND | MountFlags::RDONLY, "") {
        // Hidden below another mount, so that the path leads elsewhere or nowhere, or in a
        // directory that this process can't enter, and the command neither.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::INVAL) => Ok(()),
        done => Ok(done?),
    }
}

/// Resolves `\040` and its like.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = if *byte == b'\\' { after.get(..3) } else { None };
        let code = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*byte));
        rest = if code.is_some() {
            after.get(3..).unwrap_or_default()
        } else {
            after
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_parsed_with_their_flags() {
        let mounts = br"36 35 98:0 /mnt1 /a\040b\134c rw,nosuid,noatime master:1 - ext3 /dev/root rw
37 36 98:0 / / rw,relatime - ext4 /dev/vda rw
38 36 98:0 / / rw,noexec - ext4 /dev/vdb rw
";
        let expected = [
            ("/".into(), MountFlags::RELATIME | MountFlags::NOEXEC),
            (r"/a b\c".into(), MountFlags::NOSUID | MountFlags::NOATIME),
        ];
        assert_eq!(parse(mounts), expected.into());
        assert_eq!(parse(b""), [].into());
    }
}

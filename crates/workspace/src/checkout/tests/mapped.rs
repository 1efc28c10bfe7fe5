//! Files that a process changes through memory. On a file system in memory, their times stay.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

use super::*;

/// Reads a page of a mapped file, and writes to it then.
const CHANGE: &str = r"
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(file, 0)
memory[0]
memory[0:3] = b'two'
";

#[tokio::test(flavor = "multi_thread")]
async fn a_change_through_memory_is_found() {
    for parent in ["/dev/shm", "/var/tmp"] {
        let Ok(root) = tempfile::tempdir_in(parent) else {
            eprintln!("SKIPPED: {parent} can't be written to");
            continue;
        };
        let checkouts = Checkouts::open(&root.path().join("checkouts"), 4).unwrap();
        let tree = tree_of(&[("a", "one"), ("d/b", "one")]).await;
        let mut checkout = checkouts.take(LINE, &tree).await.unwrap();
        let files = checkout.for_command().files;
        change(&files.join("d/b"));
        let scanned = scan(&mut checkout).await;
        assert_eq!(shown(&scanned.tree).await, on_disk(&files), "{parent}");
        assert_eq!(shown(&scanned.tree).await["d/b"], "two");
        // A scan that reads everything again still finds nothing new.
        assert!(scan(&mut checkout).await.tree.is_same(&scanned.tree));
    }
}

/// A fork of the session has the files of the session, and nothing that another run writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_through_memory_reaches_no_other_line() {
    for parent in ["/dev/shm", "/var/tmp"] {
        let Ok(root) = tempfile::tempdir_in(parent) else {
            eprintln!("SKIPPED: {parent} can't be written to");
            continue;
        };
        let checkouts = Checkouts::open(&root.path().join("checkouts"), 4).unwrap();
        let names: Vec<_> = (0..100).map(|number| format!("d/{number}")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), "one")).collect();
        let tree = tree_of(&files).await;
        let mut running = checkouts.take(LINE, &tree).await.unwrap();
        change(&running.for_command().files.join("d/7"));
        for line in [LINE, "other"] {
            let mut fork = checkouts.take(line, &tree).await.unwrap();
            assert_eq!(on_disk(&fork.directory.files())["d/7"], "one", "{parent}");
            assert!(scan(&mut fork).await.tree.is_same(&tree));
        }
        assert_eq!(shown(&scan(&mut running).await.tree).await["d/7"], "two");
    }
}

/// The result of the probe is true, where the truth is known.
#[test]
fn exact_times_are_found_out() {
    for (parent, is_exact) in [("/dev/shm", false), ("/var/tmp", true)] {
        let Ok(root) = tempfile::tempdir_in(parent) else {
            continue;
        };
        if is_known(root.path()) {
            assert_eq!(exact_times::has_exact_times(root.path()), is_exact, "{parent}");
        }
        assert!(!root.path().join("mapped").exists());
    }
}

/// An overlay has the times of its upper layer.
#[test]
fn exact_times_of_an_overlay_are_found_out() {
    for (parent, is_exact) in [("/dev/shm", false), ("/var/tmp", true)] {
        let Ok(root) = tempfile::tempdir_in(parent) else {
            continue;
        };
        // The mount is that of a thread, and ends with it.
        let probe = || mount_overlay(root.path()).map(|overlay| exact_times::has_exact_times(&overlay));
        match std::thread::scope(|scope| scope.spawn(probe).join().unwrap()) {
            Ok(found) if is_known(root.path()) => assert_eq!(found, is_exact, "{parent}"),
            Ok(_) => (),
            Err(error) => eprintln!("SKIPPED: no overlay can be mounted in {parent}: {error}"),
        }
    }
}

/// Mounts an overlay whose layers are in a folder, for the calling thread alone. Only root can.
fn mount_overlay(folder: &Path) -> io::Result<PathBuf> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let [lower, upper, work, overlay] = ["lower", "upper", "work", "overlay"].map(|name| folder.join(name));
    for directory in [&lower, &upper, &work, &overlay] {
        fs::create_dir(directory)?;
    }
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let layers = CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}"))?;
    mount("overlay", &overlay, "overlay", MountFlags::empty(), layers.as_c_str())?;
    Ok(overlay)
}

/// Returns whether the file system is tmpfs or ext4. One of another kind may do as it likes.
fn is_known(folder: &Path) -> bool {
    let magic = rustix::fs::statfs(folder).unwrap().f_type;
    [0x0102_1994, 0xef53].contains(&magic)
}

fn change(file: &Path) {
    let python = std::process::Command::new("python3")
        .args(["-c", CHANGE])
        .arg(file)
        .status();
    assert!(python.unwrap().success());
}

//! Files that a process changes through memory. On a file system in memory, their times stay.

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
        let mut checkout = checkouts.take(&tree).await.unwrap();
        let files = checkout.for_command().files;
        let python = std::process::Command::new("python3")
            .args(["-c", CHANGE])
            .arg(files.join("d/b"))
            .status();
        assert!(python.unwrap().success());
        let scanned = scan(&mut checkout).await;
        assert_eq!(shown(&scanned.tree).await, on_disk(&files), "{parent}");
        assert_eq!(shown(&scanned.tree).await["d/b"], "two");
        // A scan that reads everything again still finds nothing new.
        assert!(scan(&mut checkout).await.tree.is_same(&scanned.tree));
    }
}

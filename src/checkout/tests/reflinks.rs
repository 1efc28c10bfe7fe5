//! Copies on file systems that share blocks: real ones, in images.

use std::process::{Command, Output};

use super::*;

/// A file system in an image, mounted while this lives.
struct Mount {
    folder: tempfile::TempDir,
}

impl Mount {
    /// Returns `None` where this user or this machine can't make or mount one.
    fn new(make: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (image, at) = (folder.path().join("image"), folder.path().join("at"));
        fs::create_dir(&at).unwrap();
        fs::File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let is_mounted = run(make, &["-q", text(&image)]).is_some()
            && run("mount", &["-o", "loop", text(&image), text(&at)]).is_some();
        if !is_mounted {
            eprintln!("LEFT OUT: reflinks ({make} or mount is missing or fails)");
        }
        is_mounted.then_some(Self { folder })
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("at")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["--lazy", text(&self.path())]);
    }
}

/// Runs a program, and returns its output if it succeeds.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then_some(output)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_share_their_blocks_where_the_file_system_can() {
    for make in ["mkfs.btrfs", "mkfs.xfs"] {
        let Some(mount) = Mount::new(make) else { continue };
        let large = "0123456789abcdef".repeat(1 << 16);
        let mut tree = tree_of(&[("large", &large), ("d/tail", &large[..100_001])]).await;
        for number in 0..70 {
            let name = path(&format!("many/{number}"));
            tree = tree
                .with_file(&name, Bytes::from(format!("{number}")), false)
                .await
                .unwrap();
        }
        let tree = tree.save().await.unwrap();
        let checkouts = Checkouts::open(&mount.path().join("checkouts"), 4).unwrap();
        let mut first = checkouts.take(&tree).await.unwrap();
        first.for_command();
        let second = checkouts.take(&tree).await.unwrap();
        assert_eq!(on_disk(&second.directory.files()), shown(&tree).await);
        run("sync", &["--file-system", text(&mount.path())]).unwrap();
        for name in ["large", "d/tail"] {
            let copy = second.directory.files().join(name);
            let extents = run("filefrag", &["-v", text(&copy)]).expect("filefrag of e2fsprogs");
            let extents = String::from_utf8(extents.stdout).unwrap();
            assert!(extents.contains("shared"), "{make}: {extents}");
        }
        // Each has its own content all the same.
        fs::write(first.directory.files().join("large"), "other").unwrap();
        assert_eq!(
            fs::read_to_string(second.directory.files().join("large")).unwrap(),
            large
        );
    }
}

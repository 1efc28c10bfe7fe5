//! Directories that become symlinks while they are scanned and written: nothing outside is read,
//! changed or removed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

const HIDDEN: &str = "hidden";

#[tokio::test]
async fn a_directory_that_becomes_a_symlink_does_not_lead_outside() {
    let root = tempfile::tempdir().unwrap();
    let outside = root.path().join("outside");
    fs::create_dir_all(outside.join("in")).unwrap();
    for name in ["file", "in/file"] {
        fs::write(outside.join(name), HIDDEN).unwrap();
    }
    // Both would be open to others if a removal gave them back the rights that these take away.
    let modes = || ["", "in"].map(|name| fs::metadata(outside.join(name)).unwrap().permissions().mode() & 0o777);
    for name in ["", "in"] {
        fs::set_permissions(outside.join(name), fs::Permissions::from_mode(0o500)).unwrap();
    }
    let before = on_disk(&outside);
    let checkouts = Checkouts::open(&root.path().join("checkouts"), 1).unwrap();
    let tree = tree_of(&[("d/in/file", "plain"), ("e/in/file", "plain")]).await;
    let mut checkout = checkouts.take(LINE, &tree).await.unwrap();
    checkout.begin_live(&PathPatterns::default()).await.unwrap();
    let files = checkout.for_command().files;
    for (name, target) in [("link", outside.clone()), ("link_in", outside.join("in"))] {
        symlink(target, files.join(name)).unwrap();
    }
    let (is_done, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let swapper = std::thread::spawn({
        let (is_done, swaps) = (Arc::clone(&is_done), Arc::clone(&swaps));
        move || {
            while !is_done.load(Ordering::Relaxed) {
                for (one, other) in [("d", "link"), ("e/in", "link_in")] {
                    let (one, other) = (files.join(one), files.join(other));
                    let swapped = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                    swaps.fetch_add(swapped.is_ok().into(), Ordering::Relaxed);
                }
            }
        }
    });
    let mut round = 0;
    while round < 200 || swaps.load(Ordering::Relaxed) < 1000 {
        round += 1;
        let scanned = checkout.rescan(true).await.unwrap();
        let texts = shown(&scanned.tree).await;
        assert!(!texts.values().any(|text| text.contains(HIDDEN)), "{texts:?}");
        // Tools write where the directory is or was, and remove it.
        let mut tree = scanned.tree;
        for name in ["d", "e/in"] {
            if tree.entry(&path(name)).await.unwrap().is_some() {
                tree = tree.without(&path(name)).await.unwrap();
            }
        }
        if round % 2 == 0 {
            for name in ["d/file", "d/in/new", "e/in/file"] {
                tree = tree.with_file(&path(name), Bytes::from("plain"), false).await.unwrap();
            }
        }
        checkout.update(&tree.save().await.unwrap()).await.unwrap();
    }
    is_done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(on_disk(&outside), before);
    assert_eq!(modes(), [0o500, 0o500]);
}

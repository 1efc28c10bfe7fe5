//! Files that a command has made unreadable for the user of the service. Root reads all files, so
//! these tests give up what makes it so.

use std::fs::Permissions;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;

/// Runs a test that no permission is ignored for, also if root runs it.
pub(super) fn as_ordinary_user(test: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(|| {
        // All threads that this one makes have the same capabilities.
        let mut sets = capabilities(None).unwrap();
        sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        set_capabilities(None, sets).unwrap();
        tokio::runtime::Runtime::new().unwrap().block_on(test);
    });
    thread.join().unwrap();
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn reasons(scanned: &Scanned) -> BTreeMap<&str, &str> {
    let skipped = scanned.skipped.named.iter();
    skipped.map(|one| (one.path.as_str(), one.reason.as_str())).collect()
}

#[test]
fn what_can_not_be_read_is_skipped_and_named() {
    as_ordinary_user(async {
        let (_root, checkouts) = opened(4);
        let known = [
            ("known", "1"),
            ("listed/a", "1"),
            ("closed/a", "1"),
            ("fixed/a", "1"),
            ("kept", "1"),
        ];
        let mut checkout = checkouts.take(LINE, &tree_of(&known).await).await.unwrap();
        let dir = checkout.directory.files();
        fs::write(dir.join("locked"), "x").unwrap();
        fs::write(dir.join("result"), "work").unwrap();
        for (name, mode) in [
            ("locked", 0),
            ("known", 0),
            ("listed", 0o444),
            ("closed", 0),
            ("fixed", 0o555),
        ] {
            set_mode(&dir.join(name), mode);
        }
        assert!(fs::read(dir.join("locked")).is_err(), "the user reads all files");
        let scanned = scan(&mut checkout).await;
        let denied = "it can't be read: Permission denied (os error 13)";
        let expected = ["closed", "known", "listed", "locked"].map(|path| (path, denied));
        assert_eq!(reasons(&scanned), BTreeMap::from(expected));
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<_, _> {
            let pairs = pairs.iter();
            pairs
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect()
        };
        let readable = texts(&[
            ("closed", "/"),
            ("fixed", "/"),
            ("fixed/a", "1"),
            ("kept", "1"),
            ("listed", "/"),
            ("result", "work"),
        ]);
        assert_eq!(shown(&scanned.tree).await, readable);

        // Tools write where a command may not.
        let tree = scanned
            .tree
            .with_file(&path("fixed/b"), "2".into(), false)
            .await
            .unwrap();
        let tree = tree.with_file(&path("known"), "2".into(), false).await.unwrap();
        checkout.update(&tree.save().await.unwrap()).await.unwrap();
        for name in ["fixed/b", "known"] {
            assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), "2", "{name}");
        }
        // Files that can be read again are part of the tree again.
        set_mode(&dir.join("locked"), 0o600);
        set_mode(&dir.join("closed"), 0o700);
        set_mode(&dir.join("listed"), 0o700);
        let scanned = scan(&mut checkout).await;
        assert_eq!(reasons(&scanned), BTreeMap::new());
        assert_eq!(shown(&scanned.tree).await, on_disk(&dir));
        assert_eq!(on_disk(&dir)["locked"], "x");
        assert_eq!(on_disk(&dir)["listed/a"], "1");
    });
}

#[test]
fn a_root_that_a_command_has_closed_is_opened_again() {
    as_ordinary_user(async {
        let (_root, checkouts) = opened(4);
        let mut checkout = checkouts.take(LINE, &tree_of(&[("a", "1")]).await).await.unwrap();
        let dir = checkout.directory.files();
        for mode in [0, 0o444, 0o555] {
            fs::write(dir.join("mode"), mode.to_string()).unwrap();
            set_mode(&dir, mode);
            let scanned = scan(&mut checkout).await;
            assert_eq!(scanned.skipped, SkippedFiles::default());
            assert_eq!(shown(&scanned.tree).await, on_disk(&dir));
        }
    });
}

#[test]
fn a_directory_with_unreadable_files_is_cleaned() {
    as_ordinary_user(async {
        let (_root, checkouts) = opened(4);
        let mut checkout = checkouts
            .take(LINE, &tree_of(&[("a/b", "1"), ("c", "1")]).await)
            .await
            .unwrap();
        let dir = checkout.directory.files();
        fs::write(dir.join("a/locked"), "x").unwrap();
        set_mode(&dir.join("a"), 0o444);
        set_mode(&dir.join("c"), 0);
        let tree = scan(&mut checkout).await.tree.save().await.unwrap();
        checkout.update(&tree).await.unwrap();
        drop(checkout);
        let again = checkouts.take(LINE, &tree).await.unwrap();
        let found = on_disk(&again.directory.files());
        assert_eq!(found, shown(&tree).await);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_skipped_now_is_part_of_the_tree_no_longer() {
    let (_root, checkouts) = opened(4);
    let mut checkout = checkouts
        .take(LINE, &tree_of(&[("a", "1"), ("b", "1"), ("c", "1")]).await)
        .await
        .unwrap();
    let dir = checkout.directory.files();
    fs::File::create(dir.join("a"))
        .unwrap()
        .set_len(WorkspaceLimits::default().file_bytes + 1)
        .unwrap();
    fs::remove_file(dir.join("b")).unwrap();
    symlink("/etc/passwd", dir.join("b")).unwrap();
    let scanned = scan(&mut checkout).await;
    assert_eq!(reasons(&scanned).into_keys().collect::<Vec<_>>(), ["a", "b"]);
    let rest = BTreeMap::from([("c".to_owned(), "1".to_owned())]);
    assert_eq!(shown(&scanned.tree).await, rest);
    fs::remove_file(dir.join("a")).unwrap();
    fs::remove_file(dir.join("b")).unwrap();
    assert_eq!(shown(&scan(&mut checkout).await.tree).await, rest);
}

//! A retained directory against one that is written anew: a run can't tell which one it has.

use std::os::unix::fs::MetadataExt as _;

use nix::sched::{CloneFlags, unshare};

use super::unreadable::{as_ordinary_user, set_mode};
use super::*;

/// Returns the mode of everything in a directory, and of itself. Symlinks all have the same one.
fn modes(root: &Path) -> BTreeMap<String, u32> {
    let paths = on_disk(root).into_keys().chain([String::new()]);
    let mode = |path: &str| fs::symlink_metadata(root.join(path)).unwrap().mode() & 0o7777;
    paths.map(|path| (path.clone(), mode(&path))).collect()
}

/// Returns whether the next scan reads no file again.
fn is_all_known(checkout: &Checkout) -> bool {
    let root = fs::File::open(checkout.directory.files()).unwrap();
    let mut files = checkout.facts.files.keys();
    files.all(|path| {
        let stat = rustix::fs::statat(&root, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| checkout.facts.is_unchanged(path, &facts::Fact::of(&stat)))
    })
}

/// Returns a small tree.
async fn some_files() -> Tree {
    let tree = tree_of(&[("a", "1"), ("b", "2"), ("c/d/e", "3"), ("c/f", "4"), ("g/h", "5")]).await;
    let tree = tree.with_symlink(&path("link"), "a").await.unwrap();
    tree.save().await.unwrap()
}

/// Changes modes, as a command may do.
fn change_modes(dir: &Path) {
    for (name, mode) in [
        ("a", 0o600),
        ("b", 0o1755),
        ("c/f", 0o444),
        ("c/d", 0o555),
        ("c", 0o700),
        ("g", 0o777),
        ("g/h", 0o500),
        ("", 0o711),
    ] {
        set_mode(&dir.join(name), mode);
    }
    fs::create_dir(dir.join("private")).unwrap();
    fs::write(dir.join("private/key"), "k").unwrap();
    set_mode(&dir.join("private/key"), 0o400);
    set_mode(&dir.join("private"), 0o500);
}

/// Ends a run, and lets the next one take its directory. Compares it with one that is written anew.
async fn assert_next_is_like_new(checkouts: &Checkouts, mut checkout: Checkout) {
    let tree = scan(&mut checkout).await.tree.save().await.unwrap();
    checkout.update(&tree).await.unwrap();
    let (files, scratch) = (checkout.directory.files(), checkout.directory.scratch());
    set_mode(&scratch, 0);
    drop(checkout);
    until(|| {
        checkouts
            .shelf
            .lock()
            .retained
            .iter()
            .any(|one| one.tree.is_same(&tree))
    })
    .await;
    let mut again = checkouts.take(LINE, &tree).await.unwrap();
    assert_eq!(again.directory.files(), files, "the same directory");
    let root = tempfile::tempdir().unwrap();
    let others = Checkouts::open(&root.path().join("checkouts"), 1).unwrap();
    let new = others.take(LINE, &tree).await.unwrap();
    assert_eq!(modes(&files), modes(&new.directory.files()));
    assert_eq!(on_disk(&files), on_disk(&new.directory.files()));
    assert_eq!(modes(&scratch), modes(&new.directory.scratch()));
    assert!(is_all_known(&again));
    assert!(scan(&mut again).await.tree.is_same(&tree));
}

#[test]
fn modes_that_no_tree_holds_end_with_the_run() {
    as_ordinary_user(async {
        let (_root, checkouts) = opened(4);
        let mut checkout = checkouts.take(LINE, &some_files().await).await.unwrap();
        change_modes(&checkout.for_command().files);
        assert_next_is_like_new(&checkouts, checkout).await;
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_whose_files_are_linked_is_not_retained() {
    let (_root, checkouts) = opened(4);
    let tree = tree_of(&[("a", "1")]).await;
    // Between two files, with a file that is left out of the tree, and with a temporary one.
    for name in ["workspace/b", "workspace/b.tmp", "scratch/b"] {
        let mut checkout = checkouts.take(LINE, &tree).await.unwrap();
        let dir = checkout.for_command().files;
        let link = checkout.directory.path.join(name);
        fs::hard_link(dir.join("a"), &link).unwrap();
        // A link lasts as long as the run.
        let tree = scan(&mut checkout).await.tree.save().await.unwrap();
        checkout.update(&tree).await.unwrap();
        assert_eq!(fs::metadata(&link).unwrap().nlink(), 2);
        drop(checkout);
        until(|| !dir.exists()).await;
    }
    let mut checkout = checkouts.take(LINE, &tree).await.unwrap();
    let dir = checkout.for_command().files;
    fs::hard_link(dir.join("a"), dir.join("b")).unwrap();
    scan(&mut checkout).await;
    fs::remove_file(dir.join("b")).unwrap();
    assert_next_is_like_new(&checkouts, checkout).await;
}

/// The mask of the service is its own. The mask of commands is 022.
#[test]
fn new_files_have_their_modes_under_any_umask() {
    let thread = std::thread::spawn(|| {
        // From now on, this thread and its new threads have a mask of their own.
        unshare(CloneFlags::CLONE_FS).unwrap();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (_root, checkouts) = opened(4);
            let tree = some_files().await;
            let tree = tree.with_file(&path("c/run"), "x".into(), true).await.unwrap();
            let tree = tree.save().await.unwrap();
            let expect = |checkout: &Checkout| {
                let found = modes(&checkout.directory.files());
                let of = ["", "c", "c/d", "c/run", "c/d/e"].map(|name| found[name]);
                assert_eq!(of, [0o700, 0o755, 0o755, 0o755, 0o644]);
                assert!(is_all_known(checkout));
            };
            let written = checkouts.take(LINE, &tree).await.unwrap();
            expect(&written);
            expect(&checkouts.take(LINE, &tree).await.unwrap());
        });
    });
    thread.join().unwrap();
}

//! Directories that are made of others: updated, layered and copied.

use std::os::unix::fs::MetadataExt as _;

use super::mounted::{Mounted, has_overlays};
use super::*;

/// How a run gets its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// The files are written.
    Written,
    /// A retained directory of a similar tree is updated.
    Similar,
    /// A layer over a shared directory.
    Layered,
    /// The files are copied from a directory in use.
    Copied,
}

fn tiers() -> Vec<Tier> {
    let mut tiers = vec![Tier::Written, Tier::Similar, Tier::Copied];
    if has_overlays() {
        tiers.push(Tier::Layered);
    }
    tiers
}

/// Some files at the paths that acts change, and enough others.
async fn large_tree() -> Tree {
    let mut tree = tree_of(&[("a/a/b", "1"), ("a/b", "2"), ("b", "3"), ("c/a", "4"), ("c/b/c", "5")]).await;
    for number in 0..100 {
        let name = path(&format!("many/{number:03}"));
        tree = tree
            .with_file(&name, Bytes::from(format!("{number}")), number % 7 == 0)
            .await
            .unwrap();
    }
    tree = tree.with_directory(&path("empty")).await.unwrap();
    tree = tree.with_symlink(&path("link"), "many/001").await.unwrap();
    tree.save().await.unwrap()
}

/// A run's directory, and another one that is in use meanwhile.
struct Made {
    checkouts: Checkouts,
    checkout: Checkout,
    _in_use: Option<Checkout>,
    _root: tempfile::TempDir,
}

/// Makes a directory with the files of a tree in a given way.
async fn made(tier: Tier, tree: &Tree) -> Made {
    let root = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(&root.path().join("checkouts"), 4).unwrap();
    let checkouts = checkouts.with_overlays(tier == Tier::Layered);
    let similar = tree.without(&path("b")).await.unwrap();
    let similar = similar
        .with_file(&path("a/b"), Bytes::from_static(b"other"), true)
        .await
        .unwrap();
    let similar = similar.save().await.unwrap();
    let mut in_use = None;
    let checkout = match tier {
        Tier::Written => checkouts.take(tree).await.unwrap(),
        Tier::Similar => {
            let other = checkouts.take(&similar).await.unwrap();
            let files = other.directory.files();
            drop(other);
            let other = retained(&checkouts, &similar, &files).await;
            drop(other);
            until(|| checkouts.shelf.lock().retained.len() == 1).await;
            let checkout = checkouts.take(tree).await.unwrap();
            assert_eq!(checkout.directory.files(), files, "the same directory");
            checkout
        }
        Tier::Layered | Tier::Copied => {
            let mut other = checkouts.take(&similar).await.unwrap();
            other.for_command();
            in_use = Some(other);
            checkouts.take(tree).await.unwrap()
        }
    };
    assert_eq!(checkout.directory.base.is_some(), tier == Tier::Layered);
    Made {
        checkouts,
        checkout,
        _in_use: in_use,
        _root: root,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tier_has_the_files_of_the_tree() {
    let tree = large_tree().await;
    for tier in tiers() {
        let mut made = made(tier, &tree).await;
        let mounted = Mounted::of(&made.checkout);
        assert_eq!(on_disk(mounted.path()), shown(&tree).await, "{tier:?}");
        drop(mounted);
        assert!(scan(&mut made.checkout).await.tree.is_same(&tree), "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_may_become_a_symlink_that_leads_nowhere() {
    let tree = large_tree().await;
    for tier in tiers() {
        let mut made = made(tier, &tree).await;
        let acts = vec![
            Act::Remove("a".to_owned()),
            Act::Link("a".to_owned(), "a".to_owned()),
            Act::Remove("c".to_owned()),
            Act::Link("c".to_owned(), "many".to_owned()),
        ];
        do_acts(&made.checkouts, &mut made.checkout, acts).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_share_one_directory_and_never_change_it() {
    if !has_overlays() {
        return;
    }
    let tree = large_tree().await;
    let mut one = made(Tier::Layered, &tree).await;
    let mut two = one.checkouts.take(&tree).await.unwrap();
    let base = |checkout: &Checkout| checkout.directory.layers().unwrap().lower;
    let lower = base(&one.checkout);
    assert_eq!(base(&two), lower);
    let before = on_disk(&lower);
    for (checkout, text) in [(&mut one.checkout, "one"), (&mut two, "two")] {
        let mounted = Mounted::of(checkout);
        let dir = mounted.path();
        fs::write(dir.join("a/b"), text).unwrap();
        fs::remove_dir_all(dir.join("many")).unwrap();
        fs::create_dir(dir.join("many")).unwrap();
        fs::write(dir.join("many/001"), text).unwrap();
        fs::remove_file(dir.join("b")).unwrap();
        fs::create_dir_all(dir.join("b/target/deep")).unwrap();
        fs::set_permissions(dir.join("c/a"), fs::Permissions::from_mode(0o755)).unwrap();
        let seen = on_disk(dir);
        drop(mounted);
        let scanned = scan(checkout).await;
        let mut expected = seen.clone();
        expected.retain(|path, _| !path.starts_with("b/target"));
        assert_eq!(shown(&scanned.tree).await, expected);
        assert_eq!(scanned.skipped, SkippedFiles::default());
        let saved = scanned.tree.save().await.unwrap();
        checkout.update(&saved).await.unwrap();
    }
    assert_eq!(on_disk(&lower), before);
    // What is retained is a layer too, without what is no part of the tree.
    let (tree, layer) = (two.tree.clone(), two.directory.layer());
    let files = two.directory.files();
    drop(two);
    until(|| !layer.join("b/target").exists()).await;
    let again = retained(&one.checkouts, &tree, &files).await;
    assert_eq!(on_disk(Mounted::of(&again).path()), shown(&tree).await);
    // The last layer takes the shared directory along.
    let Made {
        checkout, checkouts, ..
    } = one;
    let mut again = again;
    again.for_command();
    drop(again);
    assert!(lower.exists());
    let mut checkout = checkout;
    checkout.for_command();
    drop(checkout);
    until(|| !lower.exists()).await;
    drop(checkouts);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_commands_at_once_get_a_directory_without_layers() {
    if !has_overlays() {
        return;
    }
    let tree = large_tree().await;
    let mut made = made(Tier::Layered, &tree).await;
    fs::write(made.checkout.directory.scratch().join("t"), "temporary").unwrap();
    let mounted = Mounted::of(&made.checkout);
    fs::remove_dir_all(mounted.path().join("c")).unwrap();
    fs::create_dir_all(mounted.path().join("a/target/deep")).unwrap();
    fs::write(mounted.path().join("a/target/deep/x"), "ephemeral").unwrap();
    let seen = on_disk(mounted.path());
    drop(mounted);
    scan(&mut made.checkout).await;
    let checkout = made.checkouts.unlayered(made.checkout).await.unwrap();
    assert_eq!(on_disk(&checkout.directory.files()), seen);
    assert_eq!(
        fs::read_to_string(checkout.directory.scratch().join("t")).unwrap(),
        "temporary"
    );
    let files = checkout.directory.files();
    let same = made.checkouts.unlayered(checkout).await.unwrap();
    assert_eq!(same.directory.files(), files);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_forks_at_once_make_one_shared_directory() {
    if !has_overlays() {
        return;
    }
    let tree = large_tree().await;
    let made = made(Tier::Layered, &tree).await;
    let taking = (0..8).map(|_| made.checkouts.take(&tree));
    let forks = futures_util::future::join_all(taking).await;
    let lower = made.checkout.directory.layers().unwrap().lower;
    for fork in forks {
        assert_eq!(fork.unwrap().directory.layers().unwrap().lower, lower);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_that_are_certainly_the_same_are_copied() {
    let tree = large_tree().await;
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("many")).unwrap();
    let checkouts = Checkouts::open(&root.path().join("checkouts"), 4).unwrap();
    let mut source = checkouts.take(&tree).await.unwrap();
    let dir = source.for_command().files;
    // A command changes files while others copy: with the same size, by a link, by a directory.
    fs::write(dir.join("a/b"), "X").unwrap();
    fs::remove_file(dir.join("b")).unwrap();
    fs::hard_link(dir.join("many/002"), dir.join("b")).unwrap();
    fs::rename(dir.join("c"), dir.join("moved")).unwrap();
    symlink(outside.path(), dir.join("c")).unwrap();
    fs::write(outside.path().join("a"), "4").unwrap();
    fs::remove_dir_all(dir.join("many")).unwrap();
    fs::write(dir.join("many"), "file").unwrap();
    let copied = checkouts.take(&tree).await.unwrap();
    assert_eq!(on_disk(&copied.directory.files()), shown(&tree).await);
    // Nor does it matter if the directory is gone.
    fs::remove_dir_all(&dir).unwrap();
    let mut copied = checkouts.take(&tree).await.unwrap();
    assert_eq!(on_disk(&copied.directory.files()), shown(&tree).await);
    assert!(scan(&mut copied).await.tree.is_same(&tree));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_tenant_is_never_used() {
    let root = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(&root.path().join("checkouts"), 4)
        .unwrap()
        .with_overlays(true);
    let ours = large_tree().await;
    let contents = Arc::new(InMemoryContents::new("other".parse().unwrap()));
    let mut theirs = Tree::empty(contents, WorkspaceLimits::default());
    for (name, entry) in ours.walk(None).await.unwrap() {
        theirs = match entry {
            Entry::Directory { .. } => theirs.with_directory(&name).await.unwrap(),
            Entry::Symlink { target } => theirs.with_symlink(&name, &target).await.unwrap(),
            Entry::File { is_executable, .. } => {
                let bytes = ours.read(&name).await.unwrap();
                theirs.with_file(&name, bytes, is_executable).await.unwrap()
            }
        };
    }
    let theirs = theirs.save().await.unwrap();
    assert_eq!(theirs.hash(), ours.hash());
    let first = checkouts.take(&ours).await.unwrap();
    let second = checkouts.take(&theirs).await.unwrap();
    assert!(
        second.directory.base.is_none(),
        "there is no similar tree of this tenant"
    );
    let files = first.directory.files();
    drop(first);
    until(|| checkouts.shelf.lock().retained.len() == 1).await;
    let third = checkouts.take(&theirs).await.unwrap();
    assert_ne!(third.directory.files(), files);
    assert_eq!(fs::metadata(&files).unwrap().uid(), rustix::process::geteuid().as_raw());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_acts_end_in_equal_trees_in_each_tier(acts in prop::collection::vec(any_act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        for tier in tiers() {
            runtime.block_on(async {
                let tree = large_tree().await;
                let mut made = made(tier, &tree).await;
                do_acts(&made.checkouts, &mut made.checkout, acts.clone()).await;
            });
        }
    }
}

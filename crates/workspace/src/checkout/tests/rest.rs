//! Files of a directory beside its tree last until the run ends or the directory is removed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::*;

/// A tool fills an empty directory, empties it, and removes it.
#[tokio::test(flavor = "multi_thread")]
async fn ephemeral_files_last_as_long_as_their_directory() {
    let (_root, checkouts) = opened(4);
    let tree = tree_of(&[("app/in/a", "1")]).await;
    let mut checkout = checkouts.take(LINE, &tree).await.unwrap();
    let files = checkout.for_command().files;
    // One that had no files before, and two that had some.
    for name in ["new", "app", "app/in"] {
        let dir = files.join(name).join("target");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("cache"), "cached").unwrap();
    }
    let mut tree = scan(&mut checkout).await.tree;
    let mut left = vec!["app/in/target/cache", "app/target/cache", "new/target/cache"];
    for (name, is_added) in [
        ("new/b", true),
        ("app/in/a", false),
        ("new/b", false),
        ("app/in/c", true),
    ] {
        tree = if is_added {
            tree.with_file(&path(name), "2".into(), false).await.unwrap()
        } else {
            tree.without(&path(name)).await.unwrap()
        };
        tree = assert_has(&mut checkout, &tree, &left).await;
    }
    for name in ["app/in", "app", "new"] {
        tree = tree.without(&path(name)).await.unwrap();
        left.retain(|path| !path.starts_with(&format!("{name}/")));
        tree = assert_has(&mut checkout, &tree, &left).await;
    }
    // A file in the place of an empty directory.
    tree = tree.with_directory(&path("d")).await.unwrap();
    tree = assert_has(&mut checkout, &tree, &[]).await;
    fs::create_dir(files.join("d/target")).unwrap();
    tree = tree.without(&path("d")).await.unwrap();
    tree = tree.with_file(&path("d"), "3".into(), false).await.unwrap();
    assert_has(&mut checkout, &tree, &[]).await;
}

/// Updates a directory. Checks that it has the files of the tree and these ephemeral ones.
async fn assert_has(checkout: &mut Checkout, tree: &Tree, ephemeral: &[&str]) -> Tree {
    let tree = tree.save().await.unwrap();
    checkout.update(&tree).await.unwrap();
    let (rest, known): (BTreeMap<_, _>, _) = on_disk(&checkout.directory.files())
        .into_iter()
        .partition(|(path, _)| path.split('/').any(|name| name == "target"));
    assert_eq!(known, shown(&tree).await);
    let files: Vec<_> = rest.iter().filter(|(_, text)| *text != "/").collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        files,
        ephemeral.iter().map(|path| (*path, "cached")).collect::<Vec<_>>()
    );
    assert!(scan(checkout).await.tree.is_same(&tree));
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_targets_that_are_not_utf_8_are_skipped_and_never_changed() {
    let name = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let (_root, checkouts) = opened(4);
    let tree = tree_of(&[("a", "1"), ("kept", "2")]).await;
    let tree = tree.with_symlink(&path("link"), "a").await.unwrap();
    let tree = tree.with_symlink(&path("text"), "a").await.unwrap();
    let mut checkout = checkouts.take(LINE, &tree.save().await.unwrap()).await.unwrap();
    let dir = checkout.for_command().files;
    // A new symlink, and two in the place of what the tree has.
    for (name, target) in [("new", &b"b\xff"[..]), ("link", b"\xff"), ("a", b"kept/../\xe2\x82")] {
        let _ = fs::remove_file(dir.join(name));
        symlink(OsString::from_vec(target.to_vec()), dir.join(name)).unwrap();
    }
    fs::write(dir.join(name(b"f\xff")), "x").unwrap();
    fs::create_dir(dir.join(name(b"d\xff"))).unwrap();
    fs::write(dir.join(name(b"d\xff")).join("inside"), "x").unwrap();
    symlink("kept", dir.join(name(b"l\xff"))).unwrap();
    let rest = BTreeMap::from([("kept", "2"), ("text", "-> a")].map(|(path, text)| (path.to_owned(), text.to_owned())));
    // The second scan finds nothing new, and says the same.
    for _ in 0..2 {
        let scanned = scan(&mut checkout).await;
        assert_eq!(shown(&scanned.tree).await, rest);
        let mut skipped: Vec<_> = scanned
            .skipped
            .named
            .into_iter()
            .map(|one| (one.path, one.reason))
            .collect();
        skipped.sort();
        let (of_name, of_target) = ("its name is not UTF-8", "its target is not UTF-8");
        let expected = [
            ("a", of_target),
            ("d\u{fffd}", of_name),
            ("f\u{fffd}", of_name),
            ("link", of_target),
            ("l\u{fffd}", of_name),
            ("new", of_target),
        ];
        assert_eq!(
            skipped,
            expected.map(|(path, reason)| (path.to_owned(), reason.to_owned()))
        );
    }
    assert_eq!(
        fs::read_link(dir.join("link")).unwrap(),
        name(b"\xff"),
        "it lasts until the run ends"
    );
    let tree = checkout.tree.save().await.unwrap();
    checkout.update(&tree).await.unwrap();
    drop(checkout);
    until(|| fs::symlink_metadata(dir.join("link")).is_err()).await;
    assert_eq!(
        on_disk(&retained(&checkouts, &tree, &dir).await.directory.files()),
        rest
    );
}

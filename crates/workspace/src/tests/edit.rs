//! Changes and reads of small trees.

use crate::{Entry, Totals, TreeError, WorkspaceLimits};

use super::*;

#[tokio::test]
async fn a_change_leaves_the_old_tree_alone() {
    let (_, old) = empty();
    let one = change(&old, &["a: 1", "d/b*: 2", "d/l -> ../a", "e/"]).await;
    let two = change(&one, &["a: 3", "!d", "e/f/g: 4"]).await;
    assert_eq!(shown(&old).await, [""; 0]);
    assert_eq!(shown(&one).await, ["a: 1", "d/", "d/b*: 2", "d/l -> ../a", "e/"]);
    assert_eq!(shown(&two).await, ["a: 3", "e/", "e/f/", "e/f/g: 4"]);
    let totals = |files, directories, bytes| Totals {
        files,
        directories,
        bytes,
    };
    assert_eq!(one.totals().await.unwrap(), totals(3, 2, 2));
    assert_eq!(two.totals().await.unwrap(), totals(2, 2, 2));
    assert_eq!((one.unsaved_bytes(), two.unsaved_bytes()), (2, 2));
    assert!(old.is_empty().await.unwrap() && !one.is_empty().await.unwrap());
}

#[tokio::test]
async fn a_tree_can_be_read_by_path_and_by_hash() {
    let (contents, tree) = empty();
    let unsaved = change(&tree, &["d/f*: text", "d/l -> f"]).await;
    let saved = reopened(&contents, &unsaved.save().await.unwrap());
    for tree in [unsaved, saved] {
        let entry = tree.entry(&path("d/f")).await.unwrap().unwrap();
        let Entry::File { hash, size, .. } = &entry else {
            panic!("{entry:?}")
        };
        assert_eq!((*hash, *size), (values::session::hash_content(b"text"), 4));
        assert_eq!(tree.read_entry(&entry).await.unwrap(), "text");
        assert_eq!(tree.read(&path("d/l")).await.unwrap(), "text");
        let link = tree.entry(&path("d/l")).await.unwrap();
        assert_eq!(link, Some(Entry::Symlink { target: "f".to_owned() }));
        for nothing in ["x", "d/x", "d/f/x", "x/y"] {
            assert_eq!(tree.entry(&path(nothing)).await.unwrap(), None, "{nothing}");
        }
        let names = |list: Vec<(String, Entry)>| list.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(tree.list(None).await.unwrap()), ["d"]);
        assert_eq!(names(tree.list(Some(&path("d"))).await.unwrap()), ["f", "l"]);
        let error = async |at: &str| tree.read(&path(at)).await.unwrap_err().to_string();
        assert_eq!(error("x").await, "x does not exist");
        assert_eq!(error("d").await, "d is not a file");
        assert_eq!(error("d/f/x").await, "d/f is not a directory");
        let error = async |at: &str| tree.list(Some(&path(at))).await.unwrap_err().to_string();
        assert_eq!(error("x").await, "x does not exist");
        assert_eq!(error("d/l").await, "d/l is not a directory");
    }
}

#[tokio::test]
async fn what_can_not_be_done_is_refused() {
    let (_, tree) = empty();
    let tree = change(&tree, &["d/f: 1", "l -> d", "m -> d/f"]).await;
    for (change, error) in [
        ("d: 1", "d is not a file"),
        ("l: 1", "l is not a file"),
        ("d/f/g: 1", "d/f is not a directory"),
        ("m/g: 1", "d/f is not a directory"),
        ("d/f/", "d/f is not a directory"),
        ("d -> x", "d is not a file"),
        ("!x", "x does not exist"),
        ("!d/f/x", "d/f is not a directory"),
        (
            "x -> ..",
            "the symlink x leads to \"..\", which is not inside the workspace",
        ),
        (
            "d/x -> /a",
            "the symlink d/x leads to \"/a\", which is not inside the workspace",
        ),
    ] {
        let found = try_change(&tree, change).await.unwrap_err();
        assert_eq!(found.to_string(), error, "{change}");
    }
}

#[tokio::test]
async fn equal_changes_return_the_same_tree() {
    let (contents, tree) = empty();
    let tree = change_and_save(&tree, &["d/f: 1", "l -> d"]).await;
    let tree = reopened(&contents, &tree);
    for same in ["d/f: 1", "l/f: 1", "d/", "l/", "l -> d"] {
        assert_eq!(change(&tree, &[same]).await.hash(), tree.hash(), "{same}");
    }
    assert_eq!(change(&tree, &["d/f*: 1"]).await.hash(), None);
}

#[tokio::test]
async fn limits_are_checked_where_a_change_exceeds_them() {
    let (contents, _) = empty();
    let limits = WorkspaceLimits {
        file_bytes: 4,
        files: 4,
        bytes: 6,
    };
    let tree = Tree::empty(contents.clone(), limits);
    let tree = change(&tree, &["a: 1234", "d/b: 1"]).await;
    for (change, error) in [
        ("c: 12345", "c has 5 bytes, more than the 4 of a file"),
        ("c: 12", "the files of the workspace have more than 6 bytes"),
        ("d/b: 123", "the files of the workspace have more than 6 bytes"),
        ("e/c: 1", "the workspace has more than 4 files and directories"),
        ("e/f/", "the workspace has more than 4 files and directories"),
    ] {
        let found = try_change(&tree, change).await.unwrap_err();
        assert_eq!(found.to_string(), error, "{change}");
    }
    change(&tree, &["c: 1"]).await;
    let saved = tree.save().await.unwrap();
    let smaller = WorkspaceLimits {
        files: 1,
        bytes: 1,
        ..limits
    };
    let tree = Tree::open(contents, smaller, saved.hash().unwrap());
    assert!(try_change(&tree, "c: 1").await.is_err());
    let less = change(&tree, &["!d", "a: 12"]).await;
    assert_eq!(shown(&less).await, ["a: 12"], "a tree that is too large can shrink");
}

#[tokio::test]
async fn entries_can_be_put_elsewhere() {
    let (_, tree) = empty();
    let tree = change(&tree, &["d/f: 1", "d/g/h*: 2", "d/g/l -> ../f"]).await;
    let file = tree.entry(&path("d/f")).await.unwrap().unwrap();
    let directory = tree.entry(&path("d")).await.unwrap().unwrap();
    let copied = tree.with_entry(&path("new/f"), file.clone()).await.unwrap();
    assert_eq!(
        copied.read(&path("new/f")).await.unwrap(),
        "1",
        "of a file that is not saved"
    );
    let error = tree.with_entry(&path("e"), directory).await.unwrap_err();
    assert!(matches!(error, TreeError::NotSaved { .. }), "{error}");

    let saved = tree.save().await.unwrap();
    let directory = saved.entry(&path("d")).await.unwrap().unwrap();
    let copied = tree.with_entry(&path("e"), directory.clone()).await.unwrap();
    assert_eq!(copied.totals().await.unwrap().files, 6);
    let below: Vec<_> = shown(&copied)
        .await
        .into_iter()
        .filter(|line| line.starts_with('e'))
        .collect();
    assert_eq!(below, ["e/", "e/f: 1", "e/g/", "e/g/h*: 2", "e/g/l -> ../f"]);
    let error = tree.with_entry(&path("d/f"), directory.clone()).await.unwrap_err();
    assert_eq!(error.to_string(), "d/f is not a directory");
    let error = tree.with_entry(&path("d"), file).await.unwrap_err();
    assert_eq!(error.to_string(), "d is not a file");
    let group = saved.entry(&path("d/g")).await.unwrap().unwrap();
    let error = tree.with_entry(&path("g"), group.clone()).await;
    assert!(error.is_ok(), "`../f` is still inside");
    let up = change_and_save(&tree, &["x/y/l -> ../../d"]).await;
    let below = up.entry(&path("x/y")).await.unwrap().unwrap();
    let error = up.with_entry(&path("y"), below).await.unwrap_err();
    assert!(matches!(error, TreeError::UnsafeSymlink { .. }), "{error}");
    let deep = path(&["n"; 63].join("/"));
    let error = tree.with_entry(&deep, directory).await.unwrap_err();
    assert!(matches!(error, TreeError::Path(_)), "{error}");
}

#[tokio::test]
async fn a_file_replaces_what_is_at_its_very_path() {
    let (_, tree) = empty();
    let tree = change(&tree, &["d/f: 1", "l -> d/f", "m -> d", "n: 1"]).await;
    let put = async |at: &str, text: &'static str, is_executable| {
        tree.with_file_at(&path(at), text.into(), is_executable).await
    };
    // The file to which a symlink leads stays, and the symlinks above the path are followed.
    let replaced = put("l", "2", true).await.unwrap();
    let replaced = replaced.with_file_at(&path("m/f"), "3".into(), false).await.unwrap();
    assert_eq!(shown(&replaced).await, ["d/", "d/f: 3", "l*: 2", "m -> d", "n: 1"]);
    assert!(put("n", "1", false).await.unwrap().is_same(&tree));
    assert!(!put("n", "1", true).await.unwrap().is_same(&tree));
    assert!(!put("n", "2", false).await.unwrap().is_same(&tree));
    let error = put("d", "1", false).await.unwrap_err();
    assert!(matches!(error, TreeError::NotAFile { .. }), "{error}");
}

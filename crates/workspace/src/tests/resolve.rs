//! Symlinks on the way of reads and writes.

use crate::TreeError;

use super::*;

async fn linked() -> Tree {
    let (_, tree) = empty();
    let links = [
        "d/e/f: 1",
        "file -> d/e/f",
        "dir -> d",
        "d/up -> ..",
        "d/e/top -> ../..",
        "d/e/self -> .",
        "dangling -> d/new",
        "d/far -> ../missing/x",
        "loop -> pool",
        "pool -> loop",
        "chain -> dir/e/self/self/f",
        "slash -> d//e/./",
    ];
    change(&tree, &links).await
}

#[tokio::test]
async fn a_path_is_resolved_as_an_operating_system_does() {
    let tree = linked().await;
    for (from, to) in [
        ("d/e/f", Some("d/e/f")),
        ("file", Some("d/e/f")),
        ("dir/e/f", Some("d/e/f")),
        ("d/up", None),
        ("d/up/dir/e/top/file", Some("d/e/f")),
        ("chain", Some("d/e/f")),
        ("slash/f", Some("d/e/f")),
        ("dangling", Some("d/new")),
        ("dangling/deeper/x", Some("d/new/deeper/x")),
        ("d/far", Some("missing/x")),
        ("new/file", Some("new/file")),
    ] {
        let found = tree.resolve(&path(from)).await.unwrap();
        assert_eq!(found, to.map(path), "{from}");
    }
    let error = tree.resolve(&path("loop/x")).await.unwrap_err();
    assert!(matches!(error, TreeError::SymlinkLoop { .. }), "{error}");
    let error = tree.resolve(&path("file/x")).await.unwrap_err();
    assert_eq!(error.to_string(), "d/e/f is not a directory");
    assert!(tree.entry(&path("loop")).await.unwrap().is_some());
}

#[tokio::test]
async fn at_most_forty_symlinks_are_followed() {
    let (_, tree) = empty();
    let mut links = vec!["l0: end".to_owned()];
    links.extend((1..=41).map(|link| format!("l{link} -> l{}", link - 1)));
    let tree = change(&tree, &links).await;
    assert_eq!(tree.read(&path("l40")).await.unwrap(), "end");
    let error = tree.read(&path("l41")).await.unwrap_err();
    assert!(matches!(error, TreeError::SymlinkLoop { .. }), "{error}");
}

#[tokio::test]
async fn writing_through_a_symlink_changes_what_it_leads_to() {
    let tree = linked().await;
    for (written, real) in [
        ("file: 2", "d/e/f"),
        ("dir/new: 2", "d/new"),
        ("dangling: 2", "d/new"),
        ("d/far: 2", "missing/x"),
        ("dir/e/top/x/y: 2", "x/y"),
    ] {
        let tree = change(&tree, &[written]).await;
        let entry = tree.entry(&path(real)).await.unwrap();
        assert!(matches!(entry, Some(Entry::File { .. })), "{written}: {entry:?}");
        assert_eq!(tree.read(&path(real)).await.unwrap(), "2", "{written}");
    }
    let removed = change(&tree, &["!dir"]).await;
    assert_eq!(
        removed.read(&path("d/e/f")).await.unwrap(),
        "1",
        "only the symlink is removed"
    );
    let removed = change(&tree, &["!dir/e/f"]).await;
    assert_eq!(removed.entry(&path("d/e/f")).await.unwrap(), None);
    let replaced = change(&tree, &["file -> d"]).await;
    assert_eq!(replaced.resolve(&path("file")).await.unwrap(), Some(path("d")));
}

#[tokio::test]
async fn a_symlink_may_not_leave_the_tree_through_another_one() {
    let (_, tree) = empty();
    // Each target is inside the tree by its names. Together they are not.
    let tree = change(
        &tree,
        &["a/b/f: 1", "here -> .", "out -> here/..", "a/deep -> b/../../f"],
    )
    .await;
    for outside in ["out", "out/f"] {
        assert!(tree.resolve(&path(outside)).await.is_err(), "{outside}");
        assert!(tree.read(&path(outside)).await.is_err(), "{outside}");
        assert!(
            tree.with_file(&path(outside), Bytes::new(), false).await.is_err(),
            "{outside}"
        );
    }
    let missing = change(&tree, &["l -> missing/../a"]).await;
    assert!(matches!(
        missing.read(&path("l")).await,
        Err(TreeError::NotFound { .. })
    ));
}

#[tokio::test]
async fn walking_a_symlinked_directory_shows_the_path_that_was_asked_for() {
    let tree = linked().await;
    let walked = tree.walk(Some(&path("dir/e"))).await.unwrap();
    let paths: Vec<_> = walked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["dir/e/f", "dir/e/self", "dir/e/top"]);
}

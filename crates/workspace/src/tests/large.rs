//! Large trees: what one change stores, and how many calls loading takes.

use crate::in_memory::ContentCounts;
use crate::{Merged, merge};

use super::*;

/// Returns a saved tree with that many files in each directory.
async fn files(directories: usize, each: usize) -> (Arc<InMemoryContents>, Tree) {
    let (contents, mut tree) = empty();
    for directory in 0..directories {
        for file in 0..each {
            let bytes = Bytes::from(format!("{directory} {file}"));
            let at = path(&format!("d{directory}/f{file}"));
            tree = tree.with_file(&at, bytes, false).await.unwrap();
        }
    }
    let tree = tree.save().await.unwrap();
    contents.take_counts();
    (contents, tree)
}

/// Changes a file of a tree that is not loaded. Returns what loading and storing took.
async fn change_one(contents: &Arc<InMemoryContents>, tree: &Tree, change: &str) -> ContentCounts {
    let tree = try_change(&reopened(contents, tree), change).await.unwrap();
    let saved = tree.save().await.unwrap();
    let counts = contents.take_counts();
    assert_eq!(saved.unsaved_bytes(), 0);
    counts
}

#[tokio::test]
async fn one_change_in_many_directories_stores_the_way_to_it() {
    let (contents, tree) = files(100, 100).await;
    let counts = change_one(&contents, &tree, "d50/f50: changed").await;
    assert_eq!((counts.loaded, counts.stores, counts.stored), (2, 1, 3));
    assert!(counts.stored_bytes < 13_000, "{counts:?}");
}

#[tokio::test]
async fn one_change_in_a_flat_directory_stores_a_part_and_the_list() {
    let (contents, tree) = files(1, 10_000).await;
    for change in ["d0/f5000: changed", "d0/new: 1", "!d0/f77"] {
        let counts = change_one(&contents, &tree, change).await;
        let file = usize::from(!change.starts_with('!'));
        // The root, the list of `d0` and a part of it.
        assert_eq!(
            (counts.loaded, counts.stores, counts.stored),
            (3, 1, 3 + file),
            "{change}"
        );
        assert!(counts.stored_bytes < 40_000, "{counts:?}");
    }
}

#[tokio::test]
async fn comparing_and_merging_large_directories_loads_the_parts_that_differ() {
    let (contents, tree) = files(1, 10_000).await;
    let ours = change_and_save(&tree, &["d0/f5000: changed"]).await;
    let theirs = change_and_save(&tree, &["d0/f1: changed"]).await;
    let [base, ours, theirs] = [tree, ours, theirs].map(|tree| reopened(&contents, &tree));
    contents.take_counts();
    assert_eq!(base.diff(&ours, 10).await.unwrap().changes.len(), 1);
    assert_eq!(contents.take_counts().loaded, 6, "the root, `d0` and a part of either");
    let merged = merge(&base, &ours, &theirs).await.unwrap();
    let Merged::Clean(merged) = merged else {
        panic!("{merged:?}")
    };
    assert!(contents.take_counts().loaded <= 7);
    assert_eq!(merged.read(&path("d0/f1")).await.unwrap(), "changed");
    assert_eq!(merged.diff(&theirs, 10).await.unwrap().changes.len(), 1);
    contents.take_counts();
    merged.save().await.unwrap();
    assert_eq!(
        contents.take_counts().stored,
        3,
        "the root, `d0` and the part with both changes or theirs"
    );
}

#[tokio::test]
async fn a_part_is_loaded_alone_and_all_parts_together() {
    let (contents, tree) = files(1, 10_000).await;
    reopened(&contents, &tree).read(&path("d0/f123")).await.unwrap();
    let counts = contents.take_counts();
    assert_eq!(
        (counts.loads, counts.loaded),
        (4, 4),
        "the root, `d0`, a part and the file"
    );
    assert_eq!(
        reopened(&contents, &tree).list(Some(&path("d0"))).await.unwrap().len(),
        10_000
    );
    let counts = contents.take_counts();
    assert!(counts.loads == 3 && counts.loaded > 50, "{counts:?}");
}

#[tokio::test]
async fn a_walk_loads_each_level_at_once() {
    let (contents, tree) = files(300, 2).await;
    let tree = reopened(&contents, &tree);
    assert_eq!(tree.walk(None).await.unwrap().len(), 900);
    let counts = contents.take_counts();
    // The root in two parts, and 300 directories in two batches.
    assert_eq!((counts.loads, counts.loaded > 300), (4, true), "{counts:?}");
    tree.walk(None).await.unwrap();
    assert_eq!(contents.take_counts(), ContentCounts::default(), "all is loaded");
}

#[tokio::test]
async fn concurrent_readers_load_a_directory_once() {
    let (contents, tree) = files(1, 10).await;
    let tree = reopened(&contents, &tree);
    let reads = (0..10).map(|file| {
        let tree = tree.clone();
        tokio::spawn(async move { tree.entry(&path(&format!("d0/f{file}"))).await.unwrap().is_some() })
    });
    for read in reads.collect::<Vec<_>>() {
        assert!(read.await.unwrap());
    }
    assert_eq!(contents.take_counts().loaded, 2);
}

#[tokio::test]
async fn the_deepest_tree_can_be_handled() {
    let (contents, tree) = empty();
    let deep = ["n"; 63].join("/");
    let base = change_and_save(&tree, &[&format!("{deep}/f: 1"), &format!("{deep}/g: 1")]).await;
    let base = reopened(&contents, &base);
    assert_eq!(base.walk(None).await.unwrap().len(), 65);
    let ours = change(&base, &[&format!("{deep}/f: 2")]).await;
    let theirs = change(&base, &[&format!("{deep}/g: 2")]).await;
    assert_eq!(ours.diff(&theirs, 10).await.unwrap().changes.len(), 2);
    let merged = merge(&base, &ours, &theirs).await.unwrap();
    let Merged::Clean(merged) = merged else {
        panic!("{merged:?}")
    };
    assert_eq!(merged.read(&path(&format!("{deep}/g"))).await.unwrap(), "2");
}

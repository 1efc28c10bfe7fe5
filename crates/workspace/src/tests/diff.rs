//! Differences of trees.

use crate::TreeChange;

use super::*;

fn show(change: &TreeChange) -> String {
    let show = |entry: &Option<Entry>| match entry {
        None => "-".to_owned(),
        Some(Entry::File {
            size, is_executable, ..
        }) => {
            format!("{size}{}", if *is_executable { "*" } else { "" })
        }
        Some(Entry::Symlink { target }) => format!("->{target}"),
        Some(Entry::Directory { totals, .. }) => format!("/{}", totals.entries()),
    };
    format!("{} {} {}", change.path, show(&change.before), show(&change.after))
}

async fn differences(before: &Tree, after: &Tree, max: usize) -> (Vec<String>, bool) {
    let diff = before.diff(after, max).await.unwrap();
    (diff.changes.iter().map(show).collect(), diff.is_truncated)
}

#[tokio::test]
async fn each_changed_path_is_reported_once() {
    let (contents, tree) = empty();
    let before = change(
        &tree,
        &["a: 1", "b: 1", "d/e/x: 1", "d/y: 1", "f/z: 1", "g/", "h: 1", "l -> a"],
    )
    .await;
    let changes = [
        "a: 22", "b*: 1", "!d/y", "!f", "f: 333", "g/new: 1", "!h", "h/i/j: 1", "l -> b", "!d/e/x", "n/",
    ];
    let after = change(&before, &changes).await;
    let expected = [
        "a 1 2",
        "b 1 1*",
        "d/e /1 /0",
        "d/e/x 1 -",
        "d/y 1 -",
        "f /1 3",
        "f/z 1 -",
        "g /0 /1",
        "g/new - 1",
        "h 1 /2",
        "h/i/j - 1",
        "l ->a ->b",
        "n - /0",
    ];
    let saved = (before.save().await.unwrap(), after.save().await.unwrap());
    let opened = (reopened(&contents, &saved.0), reopened(&contents, &saved.1));
    for (before, after) in [(&before, &after), (&saved.0, &after), (&opened.0, &opened.1)] {
        let (found, is_truncated) = differences(before, after, 100).await;
        assert_eq!((&found[..], is_truncated), (&expected.map(str::to_owned)[..], false));
        assert_eq!(differences(after, before, 100).await.0.len(), expected.len());
        assert_eq!(differences(after, after, 100).await, (vec![], false));
    }
    let (found, is_truncated) = differences(&before, &after, 5).await;
    assert_eq!((found.len(), is_truncated), (5, true));
    let count = expected.len();
    assert_eq!(differences(&before, &after, count).await.0.len(), count);
    assert!(!differences(&before, &after, count).await.1);
}

#[tokio::test]
async fn trees_that_are_equal_but_not_saved_do_not_differ() {
    let (_, tree) = empty();
    let changes = ["a: 1", "d/e/", "d/f/g: 1"];
    let (one, other) = (change(&tree, &changes).await, change(&tree, &changes).await);
    assert_eq!(differences(&one, &other, 10).await, (vec![], false));
}

#[tokio::test]
async fn only_directories_that_differ_are_loaded() {
    let (contents, tree) = empty();
    let files: Vec<_> = (0..400)
        .map(|file| format!("d{}/e{}/f: {file}", file % 20, file))
        .collect();
    let tree = change(&tree, &files).await;
    let before = tree.save().await.unwrap();
    let after = change_and_save(&before, &["d3/e23/f: x", "d7/new: y"]).await;
    contents.take_counts();
    let (found, _) = differences(&reopened(&contents, &before), &reopened(&contents, &after), 10).await;
    assert_eq!(found, ["d3/e23/f 2 1", "d7/new - 1"]);
    // The root, `d3` and `d7`, and `d3/e23`, of either side.
    let counts = contents.take_counts();
    assert_eq!((counts.loaded, counts.loads), (8, 6));
    let (empty, _) = differences(&tree, &before, 10).await;
    assert!(empty.is_empty());
}

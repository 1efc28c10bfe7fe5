//! Merges of trees, case by case.

use crate::{MergeConflict, Merged, merge};

use super::*;

/// Merges what two lists of changes make of a tree. Shows the merged tree, or the conflicts.
async fn merged(base: &[&str], ours: &[&str], theirs: &[&str]) -> Vec<String> {
    let (contents, tree) = empty();
    let base = change(&tree, base).await;
    let unsaved = [change(&base, ours).await, change(&base, theirs).await];
    let mut shown_results = Vec::new();
    let saved_base = base.save().await.unwrap();
    let saved = [unsaved[0].save().await.unwrap(), unsaved[1].save().await.unwrap()];
    let reopen = |tree: &Tree| reopened(&contents, tree);
    for (base, ours, theirs) in [
        (base, unsaved[0].clone(), unsaved[1].clone()),
        (saved_base.clone(), saved[0].clone(), unsaved[1].clone()),
        (reopen(&saved_base), reopen(&saved[0]), reopen(&saved[1])),
    ] {
        shown_results.push(show(merge(&base, &ours, &theirs).await.unwrap()).await);
        let swapped = show(merge(&base, &theirs, &ours).await.unwrap()).await;
        assert_eq!(shown_results.last(), Some(&swapped), "the sides are equal");
    }
    shown_results.dedup();
    assert_eq!(shown_results.len(), 1, "{shown_results:?}");
    shown_results.remove(0)
}

async fn show(merged: Merged) -> Vec<String> {
    match merged {
        Merged::Clean(tree) => {
            let saved = tree.save().await.unwrap();
            assert_eq!(shown(&saved).await, shown(&tree).await);
            shown(&tree).await
        }
        Merged::Conflicts(conflicts) => {
            let show = |conflict: &MergeConflict| format!("{} {}", conflict.path, conflict.kind.as_str());
            conflicts.iter().map(show).collect()
        }
    }
}

fn changes_of(list: &str) -> Vec<&str> {
    let changes = list.split(',').map(str::trim);
    changes.filter(|change| !change.is_empty()).collect()
}

/// Checks a merge: the lists of changes of base, ours and theirs, and the merged tree.
async fn check(case: &str) {
    let (sides, expected) = case.split_once("=>").unwrap();
    let sides: Vec<Vec<&str>> = sides.split('|').map(changes_of).collect();
    let merged = merged(&sides[0], &sides[1], &sides[2]).await;
    assert_eq!(merged, changes_of(expected), "{case}");
}

#[tokio::test]
async fn a_change_of_one_side_is_taken_over() {
    for case in [
        "a: 1, b: 1 | a: 2 | b: 2 => a: 2, b: 2",
        "a: 1 | b: 1 | c/d: 1 => a: 1, b: 1, c/, c/d: 1",
        "a: 1, b: 1 | !a | !b =>",
        "a: 1 | !a | !a =>",
        "a: 1 | b: 2 | b: 2 => a: 1, b: 2",
        "a: 1 | a*: 1 | a: 2 => a*: 2",
        "a*: 1 | a: 1 | a*: 2 => a: 2",
        "a: 1 | a -> b | b: 1 => a -> b, b: 1",
        "a: 1, d/e: 1 | !d | a: 2 => a: 2",
        "a: 1 | !a, a/b: 1 | c: 1 => a/, a/b: 1, c: 1",
        "d/e: 1, c: 1 | !d, d: 1 | c: 2 => c: 2, d: 1",
        "a: 1 | !a | !a, a/b: 1 => a/, a/b: 1",
        "d/e: 1 | !d, d: 2 | !d => d: 2",
    ] {
        check(case).await;
    }
}

#[tokio::test]
async fn directories_that_are_empty_survive() {
    for case in [
        "a: 1 | d/ | a: 2 => a: 2, d/",
        "d/a: 1, d/b: 1 | !d/a | !d/b => d/",
        "d/, a: 1 | !d | a: 2 => a: 2",
        "d/ | !d | d/a: 1 => d/, d/a: 1",
        "d/a: 1 | !d | d/b: 1 => d/, d/b: 1",
        "d/a: 1 | !d | !d/a =>",
        "a: 1 | d/e/ | d/f: 1 => a: 1, d/, d/e/, d/f: 1",
    ] {
        check(case).await;
    }
}

#[tokio::test]
async fn conflicts_are_reported_by_path() {
    for case in [
        "a: 1 | a: 2 | a: 3 => a both_changed",
        "a: 1 | a: 2 | !a => a changed_and_deleted",
        "a: 1 | a*: 1 | !a => a changed_and_deleted",
        "| a: 1 | a: 2 => a both_added",
        "| a: 1 | a*: 1 => a both_added",
        "| a -> b | a -> c => a both_added",
        "a -> b | a -> c | a -> d => a both_changed",
        "a: 1 | a -> b | a: 2 => a both_changed",
        "| a: 1 | a/ => a file_and_directory",
        "a: 1 | a: 2 | !a, a/b: 1 => a file_and_directory",
        "d/e: 1 | d/e: 2 | !d, d: 1 => d file_and_directory, d/e changed_and_deleted",
        "d/e: 1 | d/f: 2 | !d, d: 1 => d file_and_directory",
        "d/e: 1, d/f: 1 | d/e: 2 | !d => d/e changed_and_deleted",
        "a: 1, b: 1, c: 1 | a: 2, b: 2, c: 2 | a: 3, c: 3 => a both_changed, c both_changed",
    ] {
        check(case).await;
    }
}

#[tokio::test]
async fn texts_are_merged_line_by_line() {
    let base = "1\n2\n3\n4\n5\n6\n7\n";
    for (ours, theirs, expected) in [
        (
            "one\n2\n3\n4\n5\n6\n7\n",
            "1\n2\n3\n4\n5\n6\nseven",
            Some("one\n2\n3\n4\n5\n6\nseven"),
        ),
        ("1\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n7\n", Some("1\n3\n4\n5\n7\n")),
        (
            "0\n1\n2\n3\n4\n5\n6\n7\n",
            "1\n2\n3\nx\n4\n5\n6\n7\n8\n",
            Some("0\n1\n2\n3\nx\n4\n5\n6\n7\n8\n"),
        ),
        (
            "1\n2\nx\n4\n5\n6\n7\n",
            "1\n2\nx\n4\n5\n6\nseven\n",
            Some("1\n2\nx\n4\n5\n6\nseven\n"),
        ),
        ("1\n2\nx\n4\n5\n6\n7\n", "1\n2\ny\n4\n5\n6\n7\n", None),
        ("1\n2\nx\n4\n5\n6\n7\n", "1\n2\n3\ny\n5\n6\n7\n", None),
        ("1\n2\n3\nx\n4\n5\n6\n7\n", "1\n2\n3\ny\n4\n5\n6\n7\n", None),
    ] {
        let file = |text: &str| format!("f: {text}");
        let found = merged(&[&file(base)], &[&file(ours)], &[&file(theirs)]).await;
        let expected = expected.map_or("f both_changed".to_owned(), file);
        assert_eq!(found, [expected], "{ours:?}, {theirs:?}");
    }
}

#[tokio::test]
async fn binary_and_large_files_are_not_merged() {
    let long = |end: &str| format!("f: {}{end}", "x".repeat(1 << 20));
    let cases = [
        ["f: 1\n2\n\0\n", "f: one\n2\n\0\n", "f: 1\n2\n\0\n4\n"].map(str::to_owned),
        [long("\n1"), format!("f: 0\n{}", &long("\n1")[3..]), long("\n2")],
    ];
    for [base, ours, theirs] in &cases {
        assert_eq!(merged(&[base], &[ours], &[theirs]).await, ["f both_changed"]);
    }
}

#[tokio::test]
async fn lines_that_could_be_changed_elsewhere_conflict() {
    // Git adds the `b` of ours after the one of theirs, or before it, depending on the algorithm.
    let file = |text: &str| format!("f: {}", text_of(text.chars()));
    for [base, ours, theirs] in [["abbc", "abbbc", "abxbc"], ["baaa", "aaaa", "baaaa"]] {
        let found = merged(&[&file(base)], &[&file(ours)], &[&file(theirs)]).await;
        assert_eq!(found, ["f both_changed"], "{base}");
    }
}

#[tokio::test]
async fn a_merge_keeps_to_the_limits() {
    let (contents, _) = empty();
    let limits = WorkspaceLimits {
        files: 3,
        ..WorkspaceLimits::default()
    };
    let base = change(&Tree::empty(contents, limits), &["a: 1"]).await;
    let (ours, theirs) = (change(&base, &["b: 1", "c: 1"]).await, change(&base, &["d: 1"]).await);
    let error = merge(&base, &ours, &theirs).await.unwrap_err();
    assert!(matches!(error, TreeError::TooManyFiles { limit: 3 }), "{error}");
}

#[tokio::test]
async fn difficult_texts_are_given_up() {
    let mut random = Random(3);
    let mut text = |length: usize| text_of((0..length).map(|_| random.below(50)));
    let (long, short) = (
        [text(10_001), text(10_001), text(10_001)],
        [text(300), text(300), text(300)],
    );
    for texts in [long, short] {
        let [base, ours, theirs] = texts.map(|text| format!("f: {text}"));
        assert_eq!(merged(&[&base], &[&ours], &[&theirs]).await, ["f both_changed"]);
    }
}

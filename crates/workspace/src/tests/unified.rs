//! Differences of files in the unified format.

use std::process::Command;

use crate::{FileDiff, unified_diff};

use super::*;

fn diff(before: Option<&str>, after: Option<&str>) -> FileDiff {
    unified_diff(
        &path("src/a.txt"),
        before.map(str::as_bytes),
        after.map(str::as_bytes),
        1 << 20,
    )
}

#[test]
fn a_change_is_shown_with_three_lines_around_it() {
    let before = text_of(0..30);
    let after = before.replace("\n10\n", "\nten\n").replace("\n25\n", "\n") + "end";
    let found = diff(Some(&before), Some(&after));
    let expected = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n\
                    @@ -23,8 +23,8 @@\n 22\n 23\n 24\n-25\n 26\n 27\n 28\n 29\n+end\n\\ No newline at end of file\n";
    assert_eq!(found.text, expected);
    assert!(!found.is_binary && !found.is_truncated);
}

#[test]
fn added_removed_and_equal_files_have_a_difference_too() {
    assert_eq!(
        diff(None, Some("a\n")).text,
        "--- /dev/null\n+++ b/src/a.txt\n@@ -0,0 +1 @@\n+a\n"
    );
    assert_eq!(
        diff(Some("a\nb"), None).text,
        "--- a/src/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file\n"
    );
    assert_eq!(diff(Some("a\n"), Some("a\n")), FileDiff::default());
    assert_eq!(diff(Some(""), None), FileDiff::default());
    let spaced = unified_diff(&path("a b"), None, Some(b"x\r"), 100);
    assert_eq!(
        spaced.text,
        "--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\r\n\\ No newline at end of file\n"
    );
}

#[test]
fn binary_and_large_files_have_no_text() {
    let binary = FileDiff {
        is_binary: true,
        ..FileDiff::default()
    };
    assert_eq!(unified_diff(&path("a"), Some(b"a\0"), Some(b"b"), 1_000), binary);
    assert_eq!(unified_diff(&path("a"), None, Some(b"\xff"), 1_000), binary);
    let large = FileDiff {
        is_truncated: true,
        ..FileDiff::default()
    };
    for text in ["x".repeat((1 << 20) + 1), "\n".repeat(50_001)] {
        assert_eq!(unified_diff(&path("a"), Some(text.as_bytes()), None, 1 << 20), large);
    }
    let cut = unified_diff(&path("a"), None, Some("line\n".repeat(100).as_bytes()), 100);
    assert!(
        cut.is_truncated && cut.text.len() <= 100 && cut.text.ends_with("+line\n"),
        "{cut:?}"
    );
}

#[test]
fn git_applies_what_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    for case in 0..30 {
        let mut text = || {
            let lines = text_of((0..random.below(30)).map(|_| random.below(6)));
            let cut = lines.len().saturating_sub(random.below(2));
            lines[..cut].to_owned()
        };
        let (before, after) = (text(), text());
        let found = unified_diff(&path("file"), Some(before.as_bytes()), Some(after.as_bytes()), 1 << 20);
        if before == after {
            continue;
        }
        let file = directory.path().join("file");
        std::fs::write(&file, &before).unwrap();
        std::fs::write(directory.path().join("patch"), &found.text).unwrap();
        let git = Command::new("git")
            .args(["apply", "patch"])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(
            git.status.success(),
            "{case}: {}\n{}",
            String::from_utf8_lossy(&git.stderr),
            found.text
        );
        let applied = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(applied, after, "{case}");
    }
}

//! Patches in both formats against the bytes of a file: offsets, line ends, ambiguity, hostile
//! input.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::apply::apply;
use super::locate::Work;
use super::model::FileChange;
use super::read_patch;
use workspace::{FilePath, unified_diff};

/// Applies the hunks of a patch that changes one file.
fn patched(file: &str, patch: &str) -> Result<String, String> {
    let mut files = read_patch(patch).map_err(|error| error.message)?;
    assert_eq!(files.len(), 1, "{patch}");
    let FileChange::Update { hunks, .. } = files.remove(0).change else {
        panic!("{patch}")
    };
    let patched = apply(file.as_bytes(), &hunks, &mut Work::default())?;
    Ok(String::from_utf8(patched.bytes).unwrap())
}

fn unified(body: &str) -> String {
    format!("--- a/x\n+++ b/x\n{body}")
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: x\n{body}\n*** End Patch\n")
}

#[test]
fn hunks_are_found_wherever_they_are() {
    let file = "0\n1\na\nb\nc\nd\n";
    for start in [
        "@@ -3,3 +3,3 @@",
        "@@ -1,3 +1,3 @@",
        "@@ -900,3 +900,3 @@",
        "@@ -3,9 +3,9 @@",
        "@@",
        "@@ a @@",
    ] {
        let found = patched(file, &unified(&format!("{start}\n b\n-c\n+C\n d\n"))).unwrap();
        assert_eq!(found, "0\n1\na\nb\nC\nd\n", "{start}");
    }
    // The second hunk is as far from its number as the first one.
    let file = "x\nx\nx\na\nb\nq\nq\nq\nq\n";
    let hunks = unified("@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -4 +4 @@\n-q\n+Q\n");
    assert_eq!(patched(file, &hunks).unwrap(), "x\nx\nx\na\nB\nq\nQ\nq\nq\n");
    let unordered = envelope("@@\n-d\n+D\n@@\n-a\n+A");
    assert_eq!(patched("a\nb\nc\nd\n", &unordered).unwrap(), "A\nb\nc\nD\n");
}

#[test]
fn content_is_never_guessed() {
    let file = "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n";
    for (body, error) in [
        ("@@\n-    one();\n+    two();", "several times, at the lines 2, 5;"),
        ("@@ -9,1 +9,1 @@\n-    one();\n+    two();", "several times"),
        (
            "@@\n fn a() {\n-    oen();\n+    two();",
            "it has `    oen();`, but line 2 of the file is `    one();`",
        ),
        ("@@\n fn a() {\n-  one();\n+  two();", "it has `  one();`, but line 2"),
        (
            "@@\n fn b() {\n     one();\n }\n+x\n y",
            "it has `y`, but the file ends before that",
        ),
        ("@@\n-zero();\n+two();", "its line `zero();` is not in the file"),
        ("@@ fn c\n-    one();\n+    two();", "no line is `fn c`"),
        ("@@\n fn a() {\n-    one();\n@@\n     one();\n-}\n fn b() {", "overlap"),
    ] {
        let found = patched(file, &envelope(body)).unwrap_err();
        assert!(found.contains(error) && found.contains("hunk "), "{body:?}: {found}");
    }
    assert!(
        patched("", &envelope("@@\n-a"))
            .unwrap_err()
            .contains("not in the file")
    );
}

#[test]
fn anchors_and_the_end_of_the_file_choose_among_equal_lines() {
    let file = "class A:\n  def f():\n    one\nclass B:\n  def f():\n    one\n";
    let changed = |body: &str| patched(file, &envelope(body)).unwrap();
    let second = "class A:\n  def f():\n    one\nclass B:\n  def f():\n    two\n";
    assert_eq!(changed("@@ class B:\n@@ def f():\n-    one\n+    two"), second);
    assert_eq!(changed("@@ class B\n-    one\n+    two"), second);
    assert_eq!(changed("@@\n-    one\n+    two\n*** End of File"), second);
    assert_eq!(changed("@@ class A:\n-    one\n+    two").matches("two").count(), 1);
    assert_eq!(
        changed("@@ class A:\n+  x = 1"),
        "class A:\n  x = 1\n  def f():\n    one\nclass B:\n  def f():\n    one\n"
    );
    assert_eq!(changed("@@\n+end"), format!("{file}end\n"));
    assert_eq!(patched("", &envelope("@@\n+a")).unwrap(), "a\n");
}

#[test]
fn line_ends_stay_as_the_file_has_them() {
    let lf = unified("@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n");
    let crlf = lf.replace('\n', "\r\n");
    assert_eq!(patched("a\r\nb\r\n", &lf).unwrap(), "a\r\nc\r\nd\r\n");
    assert_eq!(patched("a\r\nb\r\n", &crlf).unwrap(), "a\r\nc\r\nd\r\n");
    assert_eq!(patched("a\nb\n", &crlf).unwrap(), "a\nc\nd\n");
    assert_eq!(patched("a\nb", &lf).unwrap(), "a\nc\nd\n");
    assert_eq!(patched("a\r\n", &envelope("@@\n+b")).unwrap(), "a\r\nb\r\n");
    assert_eq!(patched("a", &envelope("@@\n a\n+b")).unwrap(), "a\nb\n");
    let insert = envelope("@@\n beta\n+new\n gamma");
    assert_eq!(
        patched("alpha\nbeta\r\ngamma\n", &insert).unwrap(),
        "alpha\nbeta\r\nnew\r\ngamma\n"
    );
    assert_eq!(
        patched("alpha\r\nbeta\ngamma\r\n", &insert).unwrap(),
        "alpha\r\nbeta\nnew\ngamma\r\n"
    );
    assert_eq!(patched("beta\rgamma", &insert).unwrap(), "beta\rnew\rgamma");
    assert_eq!(patched("a\r\nb", &envelope("@@\n b\n+c")).unwrap(), "a\r\nb\r\nc\r\n");
    let literal = unified("@@ -1,1 +1,2 @@\n a\r\n+b\n");
    assert_eq!(patched("a\r\n", &literal).unwrap(), "a\r\nb\n");
    let without_end = unified("@@ -1,1 +1,1 @@\n-a\n+b\n\\ No newline at end of file\n");
    assert_eq!(patched("a\n", &without_end).unwrap(), "b");
}

#[test]
fn a_patch_of_neither_format_is_refused() {
    for patch in ["hello", "--- a/x", "@@ -1 +1 @@\n-a\n+b\n", "*** Update File: x\n"] {
        assert!(
            read_patch(patch).unwrap_err().message.contains("this is no patch"),
            "{patch}"
        );
    }
    assert!(
        read_patch("*** Begin Patch\n*** End Patch")
            .unwrap_err()
            .message
            .contains("no files")
    );
    let many = "*** Delete File: x\n".repeat(201);
    let error = read_patch(&format!("*** Begin Patch\n{many}*** End Patch")).unwrap_err();
    assert!(error.message.contains("201 files"), "{}", error.message);
}

#[test]
fn a_hostile_patch_ends_soon() {
    let begin = Instant::now();
    // Each hunk matches nearly everywhere.
    let file = "a\n".repeat(200_000);
    let hunk = format!("@@\n{}-b\n+c\n", " a\n".repeat(20_000));
    let error = patched(&file, &unified(&hunk)).unwrap_err();
    assert!(error.contains("takes too long"), "{error}");
    let many = unified(&"@@ -1 +1 @@\n-b\n+c\n".repeat(50_000));
    assert!(patched(&file, &many).is_err());
    assert!(
        patched(&"\n".repeat(1_000_001), &unified(&hunk))
            .unwrap_err()
            .contains("1000000 lines")
    );
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// Texts of few different lines, so that hunks are ambiguous, with all kinds of ends.
fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a\n", "b\n", "\n", "a\r\n", "-- a\n", "++ b\n", "@@ x\n", " \n", "*** x\n",
    ]);
    let lines = prop::collection::vec(line, 0..30).prop_map(|lines| lines.concat());
    (lines, prop::sample::select(vec!["", "a", "z", "\r"])).prop_map(|(lines, end)| lines + end)
}

proptest! {
    #[test]
    fn the_difference_of_two_texts_applied_to_one_gives_the_other(before in text(), after in text()) {
        prop_assume!(before != after);
        let path = FilePath::parse("x").unwrap();
        let difference = unified_diff(&path, Some(before.as_bytes()), Some(after.as_bytes()), usize::MAX);
        prop_assert_eq!(patched(&before, &difference.text), Ok(after));
    }

    #[test]
    fn a_difference_applies_also_if_lines_were_added_before(
        before in text(),
        after in text(),
        added in 1_usize..9,
    ) {
        prop_assume!(before != after && !before.is_empty());
        let path = FilePath::parse("x").unwrap();
        let difference = unified_diff(&path, Some(before.as_bytes()), Some(after.as_bytes()), usize::MAX);
        let prefix = "new\n".repeat(added);
        // It may be refused as ambiguous, but never applied to other lines than those that match.
        if let Ok(text) = patched(&format!("{prefix}{before}"), &difference.text) {
            prop_assert!(text.contains("new\n"));
            let count = |text: &str, line: &str| text.lines().filter(|other| *other == line).count();
            for line in ["a", "b"] {
                prop_assert_eq!(count(&text, line), count(&after, line));
            }
        }
    }

    #[test]
    fn any_text_is_read_without_panic(patch in "(\\*\\*\\* (Begin Patch|End Patch|Update File: a|Move to: b|End of File)\n|--- a/x\n\\+\\+\\+ b/x\n|@@( -[0-9]{1,3},[0-9] \\+1 @@)?\n|[-+ ]?[ab]?\n|diff --git a/x b/x\n|\\\\ No\n){0,20}") {
        if let Ok(files) = read_patch(&patch) {
            for file in files {
                if let FileChange::Update { hunks, .. } | FileChange::Delete { hunks } = file.change {
                    let _ = apply(b"a\nb\na\n", &hunks, &mut Work::default());
                }
            }
        }
    }
}

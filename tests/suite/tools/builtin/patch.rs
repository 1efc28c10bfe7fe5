//! `apply_patch`: several files with one patch, all or none.

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

impl Desk {
    async fn patch(&self, patch: &str) -> Result<String, String> {
        self.call("apply_patch", json!({"patch": patch})).await
    }
}

const UNIFIED: &str = "diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git a/new/run.sh b/new/run.sh
new file mode 100755
--- /dev/null
+++ b/new/run.sh
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/b.txt b/c.txt
similarity index 90%
rename from b.txt
rename to c.txt
--- a/b.txt
+++ b/c.txt
@@ -1 +1,2 @@
 b
+c
";

const ENVELOPE: &str = "*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
*** Add File: new/run.sh
+#!/bin/sh
*** Delete File: old.txt
*** Update File: b.txt
*** Move to: c.txt
@@
 b
+c
*** End Patch";

#[tokio::test]
async fn both_formats_change_add_delete_and_rename_files() {
    for patch in [UNIFIED, ENVELOPE] {
        let desk = Desk::with_files(&[("a.txt", "one\ntwo\n"), ("old.txt", "bye\n"), ("b.txt", "b\n")]).await;
        assert_eq!(
            desk.patch(patch).await.unwrap(),
            "Patched:\nupdated a.txt (+1 -1)\nadded new/run.sh (1 line)\ndeleted old.txt\nrenamed b.txt to c.txt (+1 -0)"
        );
        assert_eq!(desk.paths().await, ["a.txt", "c.txt", "new/run.sh"]);
        assert_eq!(desk.file("a.txt").await.unwrap(), "one\n2\n");
        assert_eq!(desk.file("c.txt").await.unwrap(), "b\nc\n");
        assert_eq!(desk.is_executable("new/run.sh").await, patch == UNIFIED);
    }
}

#[tokio::test]
async fn if_one_file_fails_nothing_changes() {
    let desk = Desk::with_files(&[("a.txt", "one\n"), ("b.txt", "b\n"), ("c.txt", "c\n")]).await;
    let revision = desk.environment.revision();
    let first = "*** Update File: a.txt\n-one\n+1\n*** Delete File: b.txt\n";
    for (second, error) in [
        (
            "*** Update File: c.txt\n-d\n+e",
            "c.txt: hunk 1 (line 7 of the patch): its line `d` is not in the file",
        ),
        (
            "*** Update File: d.txt\n-d\n+e",
            "d.txt: d.txt does not exist; did you mean c.txt?",
        ),
        ("*** Update File: b.txt\n-b\n+e", "b.txt: b.txt does not exist"),
        (
            "*** Add File: c.txt\n+e",
            "c.txt: c.txt exists already; update it instead",
        ),
        (
            "*** Update File: c.txt\n*** Move to: a.txt\n-c\n+e",
            "a.txt exists already",
        ),
        ("*** Delete File: ../x", "../x: the path \"../x\" can't be used"),
        ("*** Add File: a.txt/x\n+e", "a.txt is a file, not a directory"),
        ("*** Delete File: .", "is the workspace itself"),
        ("nonsense", "line 6 of the patch: expected"),
    ] {
        let found = desk
            .patch(&format!("*** Begin Patch\n{first}{second}\n*** End Patch"))
            .await
            .unwrap_err();
        assert_contains!(found, error);
    }
    assert_eq!(desk.paths().await, ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(desk.file("a.txt").await.unwrap(), "one\n");
    assert_eq!(desk.environment.revision(), revision);
}

#[tokio::test]
async fn a_deletion_must_remove_the_whole_file() {
    let desk = Desk::with_files(&[("a.txt", "one\ntwo\n")]).await;
    let patch = "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n";
    let error = desk.patch(patch).await.unwrap_err();
    assert_contains!(error, "its hunks do not remove 1 line of it");
    desk.patch("--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n")
        .await
        .unwrap();
    assert!(desk.paths().await.is_empty());
}

#[tokio::test]
async fn a_later_part_sees_the_result_of_an_earlier_one() {
    let desk = Desk::with_files(&[("a", "x\n")]).await;
    let patch = "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Update File: a\n-y\n+z\n*** Add File: b\n+1\n\
                 *** Update File: b\n-1\n+2\n*** Delete File: a\n*** Add File: a\n+again\n*** End Patch";
    desk.patch(patch).await.unwrap();
    assert_eq!(
        (desk.file("a").await.unwrap(), desk.file("b").await.unwrap()),
        ("again\n".to_owned(), "2\n".to_owned())
    );
}

#[tokio::test]
async fn a_difference_that_the_edit_tool_shows_can_be_applied() {
    let desk = Desk::with_files(&[("my file.txt", "one\r\ntwo\r\nthree")]).await;
    let before = desk.environment.tree();
    let edits = json!([{"old": "two\nthree", "new": "2\n3\n4"}]);
    let shown = desk
        .call("edit_file", json!({"path": "my file.txt", "edits": edits}))
        .await
        .unwrap();
    let after = desk.file("my file.txt").await.unwrap();
    assert_eq!(after, "one\r\n2\r\n3\r\n4");
    let edit = desk.environment.edit().await.unwrap();
    edit.finish(before).await.unwrap();
    let (_, difference) = shown.split_once("\n\n").unwrap();
    desk.patch(difference).await.unwrap();
    assert_eq!(desk.file("my file.txt").await.unwrap(), after);
}

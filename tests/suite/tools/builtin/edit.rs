//! `edit_file`: replacements, all or none.

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

#[tokio::test]
async fn edits_apply_in_order_and_the_result_shows_the_difference() {
    let desk = Desk::with_files(&[("a.rs", "fn one() {}\nfn two() {}\n")]).await;
    let edits = json!([{"old": "one", "new": "three"}, {"old": "three() {}", "new": "three() { two() }"}]);
    let result = desk
        .call("edit_file", json!({"path": "a.rs", "edits": edits}))
        .await
        .unwrap();
    assert_eq!(
        result,
        "Edited a.rs: 2 replacements.\n\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n-fn one() {}\n+fn three() { two() }\n fn two() {}\n"
    );
    assert_eq!(desk.file("a.rs").await.unwrap(), "fn three() { two() }\nfn two() {}\n");
    let all = json!([{"old": "two", "new": "2", "all": true}]);
    let result = desk
        .call("edit_file", json!({"path": "a.rs", "edits": all}))
        .await
        .unwrap();
    assert_contains!(result, "Edited a.rs: 2 replacements.");
}

#[tokio::test]
async fn if_one_edit_fails_none_happens() {
    let desk = Desk::with_files(&[("a.txt", "x\ny\nx\n")]).await;
    let revision = desk.environment.revision();
    for (second, error) in [
        (
            json!({"old": "x", "new": "z"}),
            "edit 2 of 2: old is in the file 2 times, in the lines 1, 3;",
        ),
        (
            json!({"old": "q", "new": "z"}),
            "edit 2 of 2: old is not in the file; no line is similar",
        ),
        (json!({"old": "x", "new": "x"}), "edit 2 of 2: old and new are the same"),
        (json!({"old": "y", "new": "z"}), "edit 2 of 2: old is not in the file"),
    ] {
        let edits = json!([{"old": "y", "new": "w"}, second]);
        let error_found = desk
            .call("edit_file", json!({"path": "a.txt", "edits": edits}))
            .await
            .unwrap_err();
        assert_contains!(error_found, "a.txt was not edited: ", error);
    }
    assert_eq!(desk.file("a.txt").await.unwrap(), "x\ny\nx\n");
    assert_eq!(desk.environment.revision(), revision);
    let missing = json!({"path": "b.txt", "edits": [{"old": "y", "new": "w"}]});
    assert_contains!(
        desk.call("edit_file", missing).await.unwrap_err(),
        "b.txt does not exist; did you mean a.txt?"
    );
}

#[tokio::test]
async fn large_differences_are_cut_or_left_out() {
    let desk = Desk::with_files(&[
        ("many", &"old line\n".repeat(2_000)),
        ("huge", &"old line\n".repeat(40_000)),
    ])
    .await;
    let edits = json!([{"old": "old", "new": "new", "all": true}]);
    let result = desk
        .call("edit_file", json!({"path": "many", "edits": edits}))
        .await
        .unwrap();
    assert_contains!(
        result,
        "2000 replacements.\n\n--- a/many",
        "[The difference is cut here.]"
    );
    assert!(result.len() < 9_000);
    let result = desk
        .call("edit_file", json!({"path": "huge", "edits": edits}))
        .await
        .unwrap();
    assert_eq!(result, "Edited huge: 40000 replacements.");
    assert!(desk.file("huge").await.unwrap().starts_with("new line\nnew line\n"));
}

#[tokio::test]
async fn the_schema_bounds_the_edits() {
    let desk = Desk::with_files(&[("a", "x")]).await;
    let many = vec![json!({"old": "x", "new": "y"}); 101];
    for edits in [
        json!([]),
        json!(many),
        json!([{"old": "", "new": "y"}]),
        json!([{"old": "x"}]),
    ] {
        let execution = desk.execution("edit_file", &json!({"path": "a", "edits": edits})).await;
        assert_eq!(execution.error.unwrap().code, "tool_arguments_invalid", "{edits}");
    }
}

#[tokio::test]
async fn a_binary_file_is_edited_as_bytes() {
    let desk = Desk::new();
    desk.put("a", b"\0\xffname\xff").await;
    desk.call(
        "edit_file",
        json!({"path": "a", "edits": [{"old": "name", "new": "n"}]}),
    )
    .await
    .unwrap();
    let bytes = desk.environment.tree().read(&super::parsed("a")).await.unwrap();
    assert_eq!(&bytes[..], b"\0\xffn\xff");
}

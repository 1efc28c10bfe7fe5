//! Ends of lines: what one tool shows is what the others take, and no tool changes other lines.

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

const MIXED: &str = "alpha\nbeta\r\ngamma\n";

async fn desk(content: &str) -> Desk {
    Desk::with_files(&[("m.txt", content)]).await
}

/// Returns the lines that `read_file` shows, without their numbers.
async fn shown(desk: &Desk) -> Vec<String> {
    let text = desk.call("read_file", json!({"path": "m.txt"})).await.unwrap();
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(_, line)| line.to_owned()).collect()
}

#[tokio::test]
async fn what_is_read_can_be_edited_with_any_ends_of_lines() {
    for ends in [
        ["\n", "\n"],
        ["\r\n", "\r\n"],
        ["\r", "\r"],
        ["\n", "\r\n"],
        ["\r\n", "\n"],
    ] {
        let [first, second] = ends;
        let content = format!("alpha{first}beta{second}gamma{first}");
        let after = format!("alpha{first}BETA{second}gamma{first}");
        let edited = desk(&content).await;
        let old = shown(&edited).await.join("\n");
        assert_eq!(old, "alpha\nbeta\ngamma", "{ends:?}");
        let edits = json!([{"old": old, "new": "alpha\nBETA\ngamma"}]);
        let arguments = json!({"path": "m.txt", "edits": edits});
        edited.call("edit_file", arguments).await.unwrap();
        assert_eq!(edited.file("m.txt").await.unwrap(), after, "{ends:?}");

        let patched = desk(&content).await;
        let patch = "*** Begin Patch\n*** Update File: m.txt\n@@\n alpha\n-beta\n+BETA\n gamma\n*** End Patch";
        patched.call("apply_patch", json!({"patch": patch})).await.unwrap();
        assert_eq!(patched.file("m.txt").await.unwrap(), after, "{ends:?}");

        let found = desk(&content)
            .await
            .call("grep", json!({"pattern": "^beta$"}))
            .await
            .unwrap();
        assert_eq!(found, "m.txt\n2: beta\n\n[1 matching line in 1 file]", "{ends:?}");
    }
}

#[tokio::test]
async fn a_new_line_ends_like_the_one_beside_it() {
    for (edits, after) in [
        (
            json!([{"old": "beta", "new": "beta\ndelta"}]),
            "alpha\nbeta\r\ndelta\r\ngamma\n",
        ),
        (json!([{"old": "alpha\nbeta\n", "new": "beta\n"}]), "beta\r\ngamma\n"),
        (
            json!([{"old": "a\n", "new": "a\nx\n", "all": true}]),
            "alpha\nx\nbeta\r\nx\r\ngamma\nx\n",
        ),
    ] {
        let desk = desk(MIXED).await;
        let arguments = json!({"path": "m.txt", "edits": edits});
        desk.call("edit_file", arguments).await.unwrap();
        assert_eq!(desk.file("m.txt").await.unwrap(), after);
    }
}

#[tokio::test]
async fn results_show_how_lines_end() {
    let desk = desk(MIXED).await;
    let read = desk.call("read_file", json!({"path": "m.txt"})).await.unwrap();
    assert_contains!(read, "; 1 of 3 lines end with CRLF, the others with LF]");
    let write = async |content: &str| {
        let arguments = json!({"path": "m.txt", "content": content});
        desk.call("write_file", arguments).await.unwrap()
    };
    assert_contains!(
        write("a\r\nb\r\n").await,
        "In the replaced file, 1 of 3 lines end with CRLF"
    );
    assert_contains!(write("a\nb\n").await, "In the replaced file, lines end with CRLF.");
    assert!(
        write("a\nc\n")
            .await
            .ends_with("Replaced a file with 2 lines, 4 bytes.")
    );
}

#[tokio::test]
async fn a_match_far_along_a_line_is_found_and_shown() {
    let minified = format!("{}needle{}", "x".repeat(60_000), "y".repeat(3 << 20));
    let desk = Desk::with_files(&[("a.js", &minified), ("b.js", "none\n")]).await;
    let found = desk.call("grep", json!({"pattern": "needle"})).await.unwrap();
    assert_contains!(
        found,
        "1: [59750 bytes before] …x",
        "xneedley",
        "[1 matching line in 1 file]"
    );
    assert!(found.len() < 1_000, "{}", found.len());
    let read = desk.call("read_file", json!({"path": "a.js"})).await.unwrap();
    assert_contains!(read, "; 1 line cut to 2000 bytes]");
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_the_first_line() {
    for patch in [
        "*** Begin Patch\n*** Update File: m.txt\n@@\n-one\n+ONE\n*** End Patch",
        "\u{feff}*** Begin Patch\n*** Update File: m.txt\n@@\n-one\n+ONE\n*** End Patch",
        "\u{feff}--- a/m.txt\n+++ b/m.txt\n@@ -1 +1 @@\n-one\n+ONE\n",
        // As git shows the file.
        "--- a/m.txt\n+++ b/m.txt\n@@ -1 +1 @@\n-\u{feff}one\n+\u{feff}ONE\n",
    ] {
        let desk = desk("\u{feff}one\ntwo\n").await;
        let arguments = json!({"pattern": "^one", "context": 1});
        let found = desk.call("grep", arguments).await.unwrap();
        assert_eq!(found, "m.txt\n1: one\n2- two\n\n[1 matching line in 1 file]");
        desk.call("apply_patch", json!({"patch": patch})).await.unwrap();
        assert_eq!(desk.file("m.txt").await.unwrap(), "\u{feff}ONE\ntwo\n", "{patch}");
    }
    let desk = desk("\u{feff}one\n").await;
    let patch = "--- a/m.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n";
    desk.call("apply_patch", json!({"patch": patch})).await.unwrap();
    assert!(desk.paths().await.is_empty());
}

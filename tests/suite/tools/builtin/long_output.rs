//! Long results of tools that want them stored: the whole text is in a file.

use serde_json::json;
use tools::CallLimits;
use workspace::WorkspaceLimits;

use super::Desk;
use crate::support::text::assert_contains;

const FILE: &str = ".agent/output/grep-0123456789abcdef.txt";

fn desk(limits: WorkspaceLimits) -> Desk {
    let settings = CallLimits {
        max_output_bytes: 2_000,
        ..CallLimits::default()
    };
    Desk::with(limits, settings)
}

#[tokio::test]
async fn a_long_result_is_in_a_file_that_the_result_names() {
    let desk = desk(WorkspaceLimits::default());
    let lines: Vec<_> = (1..=300).map(|number| format!("line {number}\n")).collect();
    desk.put("a.txt", lines.concat().as_bytes()).await;
    let arguments = json!({"pattern": "line", "max_results": 1_000});
    let text = desk.call("grep", arguments.clone()).await.unwrap();
    assert!(text.len() <= 2_000 && text.starts_with("a.txt\n1: line 1\n"), "{text}");
    assert_contains!(
        text,
        &format!("is in the file {FILE} of the workspace.]"),
        "[300 matching lines in 1 file]"
    );
    let whole = desk.file(FILE).await.unwrap();
    assert_contains!(whole, "1: line 1\n", "150: line 150\n", "300: line 300\n");

    // A repeated call writes the same file, and does not find its own output.
    assert_eq!(desk.call("grep", arguments).await.unwrap(), text);
    assert_eq!(desk.paths().await, [FILE, "a.txt"]);
    let page = desk
        .call("read_file", json!({"path": FILE, "offset": 150, "limit": 1}))
        .await
        .unwrap();
    assert_contains!(page, "149: line 149");
}

#[tokio::test]
async fn a_result_that_can_t_be_stored_is_cut() {
    let limits = WorkspaceLimits {
        files: 1,
        ..WorkspaceLimits::default()
    };
    let desk = desk(limits);
    desk.put("a.txt", "line\n".repeat(500).as_bytes()).await;
    let text = desk
        .call("grep", json!({"pattern": "line", "max_results": 1_000}))
        .await
        .unwrap();
    assert_contains!(text, "[The output is cut here:");
    assert_eq!(desk.paths().await, ["a.txt"]);
}

//! `grep`: modes, filters, limits, and what is skipped.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Desk;
use crate::support::text::assert_contains;

async fn desk() -> Desk {
    Desk::with_files(&[
        ("a.rs", "fn one() {\n    two();\n}\n"),
        ("b/c.rs", "// Two\nfn two() {}\n"),
        ("b/d.md", "two (2)\n"),
        (".agent/output/x.txt", "two\n"),
    ])
    .await
}

#[tokio::test]
async fn lines_are_shown_with_their_files_and_numbers() {
    let desk = desk().await;
    let grep = async |arguments| desk.call("grep", arguments).await.unwrap();
    assert_eq!(
        grep(json!({"pattern": "two"})).await,
        "a.rs\n2:     two();\n\nb/c.rs\n2: fn two() {}\n\nb/d.md\n1: two (2)\n\n[3 matching lines in 3 files]"
    );
    assert_eq!(
        grep(json!({"pattern": "^fn (one|two)", "glob": "*.rs", "context": 1})).await,
        "a.rs\n1: fn one() {\n2-     two();\n\nb/c.rs\n1- // Two\n2: fn two() {}\n\n[2 matching lines in 2 files]"
    );
    assert_eq!(
        grep(json!({"pattern": "(2)", "literal": true, "mode": "files"})).await,
        "b/d.md\n[1 file]"
    );
    assert_eq!(
        grep(json!({"pattern": "TWO", "ignore_case": true, "mode": "count", "path": "b"})).await,
        "b/c.rs: 2\nb/d.md: 1\n[3 matching lines in 2 files]"
    );
    assert_eq!(
        grep(json!({"pattern": "two", "path": "/workspace/a.rs", "mode": "files"})).await,
        "a.rs\n[1 file]"
    );
    assert_contains!(
        grep(json!({"pattern": "two", "path": ".agent"})).await,
        "[1 matching line in 1 file]"
    );
    assert_eq!(grep(json!({"pattern": "three"})).await, "[no line matches]");
}

#[tokio::test]
async fn results_stop_at_the_limit() {
    let desk = Desk::with_files(&[("a", &"x\n".repeat(50)), ("b", "x\n")]).await;
    let text = desk
        .call("grep", json!({"pattern": "x", "max_results": 3}))
        .await
        .unwrap();
    assert_contains!(
        text,
        "3: x\n\n[3 matching lines in 1 file; there may be more: this is the limit of results]"
    );
    let text = desk
        .call("grep", json!({"pattern": "x", "max_results": 50}))
        .await
        .unwrap();
    assert_contains!(text, "; there may be more");
    let text = desk
        .call("grep", json!({"pattern": "x", "max_results": 51}))
        .await
        .unwrap();
    assert_contains!(text, "[51 matching lines in 2 files]");
    let text = desk
        .call("grep", json!({"pattern": "x", "mode": "files", "max_results": 1}))
        .await
        .unwrap();
    assert_contains!(text, "a\n[1 file; there may be more");
}

#[tokio::test]
async fn binary_and_huge_files_are_skipped_and_counted() {
    let desk = Desk::new();
    desk.put("a.bin", b"x\0x").await;
    desk.put("huge.txt", &vec![b'x'; (8 << 20) + 1]).await;
    desk.put("latin.txt", b"\xe9x\n").await;
    desk.put("line.txt", &[vec![b'y'; 1 << 20], b"x\n".to_vec()].concat())
        .await;
    let text = desk.call("grep", json!({"pattern": "x"})).await.unwrap();
    assert_contains!(
        text,
        "latin.txt\n1: �x",
        "; skipped 1 binary file",
        "; skipped 1 file of more than 8388608"
    );
    assert_contains!(
        text,
        "line.txt\n1: [1048326 bytes before] …y",
        "yx\n\n[2 matching lines in 2 files;"
    );
}

#[tokio::test]
async fn errors_name_what_is_wrong_with_the_pattern() {
    let desk = desk().await;
    for (arguments, error) in [
        (json!({"pattern": "fn ("}), "the pattern is invalid: regex parse error"),
        (json!({"pattern": "(?=a)b"}), "the pattern is invalid"),
        (json!({"pattern": "\\pL{900}"}), "the pattern is too large"),
        (json!({"pattern": "a", "glob": "["}), "the pattern \"[\" is invalid"),
        (json!({"pattern": "a", "path": "c"}), "c does not exist"),
        (json!({"pattern": "a".repeat(1_001)}), "is longer than 1000 characters"),
        (json!({"pattern": "a", "context": 11}), "/context"),
    ] {
        assert_contains!(desk.call("grep", arguments).await.unwrap_err(), error);
    }
}

#[tokio::test]
async fn a_search_of_slow_patterns_ends_when_its_run_is_cancelled() {
    let desk = Desk::new();
    for number in 0..20 {
        desk.put(&format!("{number}"), "ab".repeat(4 << 20).as_bytes()).await;
    }
    let begin = Instant::now();
    let cancellation = desk.cancellation.clone();
    let cancel = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancellation.cancel();
    };
    let pattern = json!({"pattern": "(a.{0,40}b?.{0,40}){2}x", "mode": "count"});
    let (result, ()) = tokio::join!(desk.call("grep", pattern), cancel);
    assert_contains!(result.unwrap_err(), "the run was cancelled");
    assert!(begin.elapsed() < Duration::from_mins(1));
}

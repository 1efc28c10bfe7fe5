//! `write_file`: whole files, directories above them, and the limits of the workspace.

use serde_json::json;
use tools::CallLimits;
use workspace::WorkspaceLimits;

use super::Desk;
use crate::support::text::assert_contains;

#[tokio::test]
async fn a_file_is_written_with_its_directories_and_replaced() {
    let desk = Desk::new();
    let write = async |content: &str| {
        let arguments = json!({"path": "src/a/b.txt", "content": content});
        desk.call("write_file", arguments).await.unwrap()
    };
    assert_eq!(
        write("one\ntwo\n").await,
        "Wrote src/a/b.txt: 2 lines, 8 bytes. The file is new."
    );
    assert_eq!(
        write("1").await,
        "Wrote src/a/b.txt: 1 line, 1 bytes. Replaced a file with 2 lines, 8 bytes."
    );
    assert_eq!(
        write("1").await,
        "src/a/b.txt has this content already: 1 line, 1 bytes."
    );
    assert_eq!(desk.file("src/a/b.txt").await.as_deref(), Some("1"));
    assert_eq!(
        write("").await,
        "Wrote src/a/b.txt: 0 lines, 0 bytes. Replaced a file with 1 line, 1 bytes."
    );
}

#[tokio::test]
async fn whether_a_file_may_be_executed_stays_unless_it_is_set() {
    let desk = Desk::new();
    let write = async |content: &str, executable: Option<bool>| {
        let mut arguments = json!({"path": "run.sh", "content": content});
        if let Some(executable) = executable {
            arguments["executable"] = executable.into();
        }
        desk.call("write_file", arguments).await.unwrap();
        desk.is_executable("run.sh").await
    };
    assert!(!write("a", None).await);
    assert!(write("b", Some(true)).await);
    assert!(write("c", None).await);
    let edits = json!({"path": "run.sh", "edits": [{"old": "c", "new": "d"}]});
    desk.call("edit_file", edits).await.unwrap();
    assert!(desk.is_executable("run.sh").await);
    assert!(!write("d", Some(false)).await);
}

#[tokio::test]
async fn what_can_t_be_written_changes_nothing() {
    let limits = WorkspaceLimits {
        file_bytes: 10,
        files: 4,
        bytes: 25,
    };
    let desk = Desk::with(limits, CallLimits::default());
    desk.put("dir/a", b"0123456789").await;
    desk.put("b", b"0123456789").await;
    let revision = desk.environment.revision();
    for (path, content, error) in [
        ("dir", "x", "dir is a directory, not a file; dir has: a"),
        ("b/c", "x", "b is a file, not a directory"),
        ("c", "0123456789a", "c has 11 bytes, more than the 10 of a file"),
        ("c", "012345", "the files of the workspace have more than 25 bytes"),
        ("x/y", "", "the workspace has more than 4 files and directories"),
        ("..", "x", "leads out of the workspace"),
        ("/", "x", "is the workspace itself"),
    ] {
        let arguments = json!({"path": path, "content": content});
        assert_contains!(desk.call("write_file", arguments).await.unwrap_err(), error);
    }
    assert_eq!(desk.environment.revision(), revision);
    assert_eq!(desk.paths().await, ["b", "dir/a"]);
}

#[tokio::test]
async fn a_symlink_leads_to_what_is_written() {
    let desk = Desk::with_files(&[("real.txt", "a")]).await;
    desk.link("link.txt", "real.txt").await;
    desk.call("write_file", json!({"path": "link.txt", "content": "b"}))
        .await
        .unwrap();
    assert_eq!(desk.file("real.txt").await.as_deref(), Some("b"));
}

//! Several calls at once: writers wait for each other, and no change is lost.

use std::task::Poll;

use futures_util::future::join_all;
use serde_json::json;

use super::Desk;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_of_several_writers_is_lost() {
    let lines: Vec<_> = (0..20).map(|number| format!("line {number}.\n")).collect();
    let desk = Desk::with_files(&[("shared", &lines.concat())]).await;
    let revision = desk.environment.revision();
    let calls = (0..20).map(|number| {
        let desk = &desk;
        async move {
            let edit = json!({"old": format!("line {number}."), "new": format!("done {number}.")});
            let edits = json!({"path": "shared", "edits": [edit]});
            let file = json!({"path": format!("own/{number}"), "content": "x"});
            let patch = format!("*** Begin Patch\n*** Add File: patched/{number}\n+x\n*** End Patch");
            let patch = json!({"patch": patch});
            tokio::try_join!(
                desk.call("edit_file", edits),
                desk.call("write_file", file),
                desk.call("apply_patch", patch)
            )
        }
    });
    for result in join_all(calls).await {
        result.unwrap();
    }
    let shared = desk.file("shared").await.unwrap();
    assert_eq!(
        (shared.matches("done ").count(), shared.matches("line ").count()),
        (20, 0)
    );
    assert_eq!(desk.paths().await.len(), 41);
    assert_eq!(desk.environment.revision(), revision + 60, "each change once");
}

#[tokio::test]
async fn a_reader_sees_the_files_as_they_were_when_it_began() {
    let desk = Desk::with_files(&[("a", "before")]).await;
    let edit = desk.environment.edit().await.unwrap();
    let write = desk.call("write_file", json!({"path": "a", "content": "after"}));
    let mut write = std::pin::pin!(write);
    assert!(
        futures_util::poll!(&mut write).is_pending(),
        "a writer waits for the one before"
    );
    let read = desk.call("read_file", json!({"path": "a"})).await.unwrap();
    assert!(read.contains("before"), "{read}");
    drop(edit);
    write.await.unwrap();
    assert_eq!(desk.file("a").await.as_deref(), Some("after"));
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_no_trace() {
    let desk = Desk::with_files(&[("a", "before")]).await;
    let edit = desk.environment.edit().await.unwrap();
    let mut write = Box::pin(desk.call("write_file", json!({"path": "a", "content": "after"})));
    assert!(futures_util::poll!(&mut write).is_pending());
    drop(write);
    drop(edit);
    assert_eq!(desk.file("a").await.as_deref(), Some("before"));
    // The next writer does not wait for the one that was dropped.
    desk.call("write_file", json!({"path": "b", "content": "x"}))
        .await
        .unwrap();
}

/// The journal entry of another call must not have a change without the end of its call.
#[tokio::test]
async fn a_call_ends_at_the_moment_of_its_change() {
    let large = "line\n".repeat(30_000);
    let desk = Desk::with_files(&[("a", &large), ("b", "x\n")]).await;
    let patch = "*** Begin Patch\n*** Update File: b\n-x\n+y\n*** Add File: d\n+z\n*** End Patch";
    let edits = json!([{"old": "line\n", "new": "l\n", "all": true}, {"old": "l\n", "new": "", "all": true}]);
    for (tool, arguments) in [
        ("write_file", json!({"path": "c", "content": large})),
        // The store has to write contents of this size before the change.
        ("write_file", json!({"path": "c", "content": "x".repeat(4 << 20)})),
        ("edit_file", json!({"path": "a", "edits": edits})),
        ("apply_patch", json!({"patch": patch})),
        ("todo", json!({"items": [{"text": "a", "status": "done"}]})),
        ("variables_set", json!({"variables": {"a": 1}})),
    ] {
        let before = desk.environment.revision();
        let mut call = Box::pin(desk.call(tool, arguments));
        loop {
            let polled = futures_util::poll!(&mut call);
            assert_eq!(polled.is_ready(), desk.environment.revision() > before, "{tool}");
            if let Poll::Ready(result) = polled {
                result.unwrap();
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

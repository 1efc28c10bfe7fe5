//! Ephemeral files are one thing for every tool: there, and never part of the session unless a file
//! tool writes one.

use std::sync::Arc;

use agent_runtime::session::EnvironmentState;
use agent_runtime::workspace::WorkspaceLimits;
use serde_json::json;

use super::shell::Host;
use super::{Desk, assert_contains};

const BUILD: &str = "mkdir -p target/p target/q; echo 'module p' > target/p/i.js; echo 'module q' > target/q/i.js; \
                     echo built > target/o.txt; ln -s /etc/passwd target/out; mkfifo target/pipe";

#[tokio::test(flavor = "multi_thread")]
async fn file_tools_see_what_commands_have_left_there() {
    let host = Host::new();
    let desk = host.desk();
    desk.put("src/a.js", b"module a\n").await;
    let said = desk.sh(BUILD).await;
    assert_eq!(
        said,
        "(no output)\n[not part of the session: target (ephemeral: what is new there lasts until the end of this run)]"
    );
    assert_eq!(desk.sh("true").await, "(no output)", "it is said once");
    let call = async |tool: &str, arguments| desk.call(tool, arguments).await.unwrap();
    assert_contains(&call("read_file", json!({"path": "target/o.txt"})).await, &["built"]);
    let found = call("grep", json!({"pattern": "module", "path": "target"})).await;
    assert_contains(&found, &["target/p/i.js", "target/q/i.js", "2 matching lines"]);
    assert_contains(
        &call("glob", json!({"pattern": "*.js", "path": "target/p"})).await,
        &["target/p/i.js\n[1 file]"],
    );
    assert_contains(
        &call("list_files", json!({"path": "target"})).await,
        &["o.txt (6 bytes)", "p/ (1 file"],
    );
    // A search of everything says what it leaves out.
    for (tool, arguments) in [
        ("glob", json!({"pattern": "**/*.js"})),
        ("grep", json!({"pattern": "module"})),
        ("list_files", json!({})),
    ] {
        let text = call(tool, arguments).await;
        assert_contains(&text, &["[left out, since it is ephemeral: target; name it as path"]);
        assert!(!text.contains("i.js"), "{text}");
    }
    assert!(
        !call("glob", json!({"pattern": "*", "path": "src"}))
            .await
            .contains("ephemeral")
    );
    let error = desk.call("read_file", json!({"path": "target/out"})).await.unwrap_err();
    assert_contains(&error, &["does not exist"]);
    assert_eq!(desk.paths().await, ["src/a.js"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_tool_writes_there_is_the_only_one_of_the_session() {
    let host = Host::new();
    // In an empty directory, and beside a file that came with the session.
    for seed in [None, Some("target/.gitkeep")] {
        let desk = host.desk();
        if let Some(seed) = seed {
            desk.put(seed, b"").await;
        }
        desk.sh(BUILD).await;
        let expected = |more: &[&str]| {
            let mut paths: Vec<String> = seed.iter().chain(more).map(|path| (*path).to_owned()).collect();
            paths.sort();
            paths
        };
        assert_eq!(desk.paths().await, expected(&[]));
        let written = desk
            .call("write_file", json!({"path": "target/o.txt", "content": "mine\n"}))
            .await
            .unwrap();
        assert_contains(&written, &["Replaced a file with 1 line, 6 bytes"]);
        let edits = json!([{"old": "module", "new": "mine"}]);
        desk.call("edit_file", json!({"path": "target/p/i.js", "edits": edits}))
            .await
            .unwrap();
        let patch = "*** Begin Patch\n*** Delete File: target/q/i.js\n*** End Patch";
        let error = desk.call("apply_patch", json!({"patch": patch})).await.unwrap_err();
        assert_contains(&error, &["ephemeral", "with the shell"]);
        let shown = desk
            .sh("cat target/o.txt target/*/i.js; echo new > target/q/new; rm -f target/pipe")
            .await;
        assert_eq!(shown, "mine\nmine p\nmodule q\n");
        assert_eq!(desk.paths().await, expected(&["target/o.txt", "target/p/i.js"]));
        let patch = "*** Begin Patch\n*** Update File: target/q/i.js\n@@\n-module q\n+mine q\n*** End Patch";
        desk.call("apply_patch", json!({"patch": patch})).await.unwrap();
        assert_eq!(desk.sh("cat target/q/*").await, "mine q\nnew\n");
        assert_eq!(
            desk.paths().await,
            expected(&["target/o.txt", "target/p/i.js", "target/q/i.js"])
        );
        // A subagent begins with the files of the session.
        let fork = Desk {
            environment: Arc::new(desk.environment.fork()),
            ..host.desk()
        };
        assert_eq!(fork.sh("cat target/o.txt target/q/*").await, "mine\nmine q\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_ephemeral_files_counts_for_nothing() {
    let host = Host::new();
    let limits = WorkspaceLimits {
        files: 50,
        ..WorkspaceLimits::default()
    };
    let desk = host.desk_with(limits, EnvironmentState::default());
    desk.sh("mkdir -p target/p && cd target/p && seq 3000 | xargs touch")
        .await;
    desk.call("write_file", json!({"path": "target/p/mine", "content": "x"}))
        .await
        .unwrap();
    assert_eq!(desk.sh("echo 1 > ../../after; ls | wc -l").await, "3001\n");
    assert_eq!(desk.paths().await, ["after", "target/p/mine"]);
    let error = desk
        .call("grep", json!({"pattern": "x", "path": "target"}))
        .await
        .unwrap_err();
    assert_contains(&error, &["more than 2000 files", "with the shell"]);
}

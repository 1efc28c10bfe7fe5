//! Ephemeral files are one thing for every tool: there, and never part of the session unless a file
//! tool writes one.

use std::sync::Arc;

use serde_json::json;
use values::session::EnvironmentState;
use workspace::WorkspaceLimits;

use super::Desk;
use super::shell::Host;
use crate::support::text::assert_contains;

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
    assert_contains!(call("read_file", json!({"path": "target/o.txt"})).await, "built");
    let found = call("grep", json!({"pattern": "module", "path": "target"})).await;
    assert_contains!(found, "target/p/i.js", "target/q/i.js", "2 matching lines");
    assert_contains!(
        call("glob", json!({"pattern": "*.js", "path": "target/p"})).await,
        "target/p/i.js\n[1 file]"
    );
    assert_contains!(
        call("list_files", json!({"path": "target"})).await,
        "o.txt (6 bytes)",
        "p/ (1 file"
    );
    // A search of everything says what it leaves out.
    for (tool, arguments) in [
        ("glob", json!({"pattern": "**/*.js"})),
        ("grep", json!({"pattern": "module"})),
        ("list_files", json!({})),
    ] {
        let text = call(tool, arguments).await;
        assert_contains!(text, "[left out, since it is ephemeral: target; name it as path");
        assert!(!text.contains("i.js"), "{text}");
    }
    assert!(
        !call("glob", json!({"pattern": "*", "path": "src"}))
            .await
            .contains("ephemeral")
    );
    let error = desk.call("read_file", json!({"path": "target/out"})).await.unwrap_err();
    assert_contains!(error, "target/out leads to \"/etc/passwd\"", "not inside the workspace");
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
        assert_contains!(written, "Replaced a file with 1 line, 6 bytes");
        let edits = json!([{"old": "module", "new": "mine"}]);
        desk.call("edit_file", json!({"path": "target/p/i.js", "edits": edits}))
            .await
            .unwrap();
        let patch = "*** Begin Patch\n*** Delete File: target/q/i.js\n*** End Patch";
        let error = desk.call("apply_patch", json!({"patch": patch})).await.unwrap_err();
        assert_contains!(error, "ephemeral", "with the shell");
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
    assert_contains!(error, "more than 2000 files", "with the shell");
}

/// As pnpm and `node_modules/.bin` have it.
#[tokio::test(flavor = "multi_thread")]
async fn links_lead_to_what_commands_have_left() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh(
        "mkdir -p target/.pnpm/p target/.bin src; echo 'exports = 1' > target/.pnpm/p/i.js; ln -s .pnpm/p target/p; \
         ln -s ../p/i.js target/.bin/p; ln -s ../target/p/i.js src/link",
    )
    .await;
    let call = async |tool: &str, arguments| desk.call(tool, arguments).await.unwrap();
    for path in ["target/p/i.js", "target/.bin/p", "src/link"] {
        assert_contains!(call("read_file", json!({"path": path})).await, "exports = 1");
    }
    let found = call("grep", json!({"pattern": "exports", "path": "target/p"})).await;
    assert_contains!(found, "target/p/i.js\n1: exports", "1 matching line");
    assert_contains!(
        call("glob", json!({"pattern": "*.js", "path": "target/p"})).await,
        "target/p/i.js\n[1 file]"
    );
    assert_contains!(call("list_files", json!({"path": "target/p"})).await, "i.js (12 bytes)");
    for (path, content) in [("target/p/i.js", "2\n"), ("target/.bin/p", "3\n"), ("src/link", "4\n")] {
        let written = call("write_file", json!({"path": path, "content": content})).await;
        assert_contains!(written, "Replaced a file");
        let shown = desk
            .sh("readlink target/p target/.bin/p src/link; cat target/.pnpm/p/i.js")
            .await;
        assert_eq!(shown, format!(".pnpm/p\n../p/i.js\n../target/p/i.js\n{content}"));
    }
    assert_eq!(
        desk.paths().await,
        ["src/link", "target/.bin/p", "target/.pnpm/p/i.js", "target/p"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_lead_out_or_nowhere_stay_as_they_are() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh(
        "mkdir target; ln -s /etc target/out; ln -s ../../.. target/up; ln -s loop target/loop; ln -s gone target/none",
    )
    .await;
    for (path, error) in [
        ("target/out/passwd", "not inside the workspace"),
        ("target/up/x", "not inside the workspace"),
        ("target/loop", "too many symlinks"),
        (
            "target/none",
            "target/none is a symlink to \"gone\", which does not exist",
        ),
    ] {
        let read = desk.call("read_file", json!({"path": path})).await.unwrap_err();
        assert_contains!(read, error);
    }
    for path in ["target/out/passwd", "target/up/x", "target/loop"] {
        let arguments = json!({"path": path, "content": "x"});
        desk.call("write_file", arguments).await.unwrap_err();
    }
    let shown = desk.sh("readlink target/out target/up target/loop").await;
    assert_eq!(shown, "/etc\n../../..\nloop\n");
    assert!(desk.paths().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_file_does_not_come_back() {
    let host = Host::new();
    let desk = host.desk();
    desk.sh("mkdir -p target/p; echo a > target/p/i.js; echo b > target/p/other.js")
        .await;
    let edits = json!([{"old": "a", "new": "A"}]);
    desk.call("edit_file", json!({"path": "target/p/i.js", "edits": edits}))
        .await
        .unwrap();
    let patch = async |body: &str| {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
        desk.call("apply_patch", json!({"patch": patch})).await
    };
    for (body, error) in [
        ("*** Delete File: target/p/i.js", "with the shell"),
        (
            "*** Update File: target/p/i.js\n*** Move to: target/p/j.js\n@@\n-A\n+B",
            "with the shell",
        ),
        (
            "*** Add File: new.js\n+c\n*** Update File: new.js\n*** Move to: target/p/other.js\n@@\n-c\n+d",
            "target/p/other.js exists already",
        ),
    ] {
        assert_contains!(patch(body).await.unwrap_err(), error);
    }
    assert_eq!(desk.paths().await, ["target/p/i.js"]);
    // What no command has left is deleted.
    let mine = json!({"path": "target/p/mine.js", "content": "m"});
    desk.call("write_file", mine).await.unwrap();
    patch("*** Delete File: target/p/mine.js").await.unwrap();
    // So is what a command has found there as a part of the session.
    assert_eq!(desk.sh("cat target/p/*").await, "A\nb\n");
    patch("*** Delete File: target/p/i.js").await.unwrap();
    desk.call("read_file", json!({"path": "target/p/i.js"}))
        .await
        .unwrap_err();
    assert_eq!(desk.sh("ls target/p").await, "other.js\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_files_are_listed_and_no_search_leaves_one_out_in_silence() {
    let host = Host::new();
    let desk = host.desk();
    let command = "mkdir -p target/a target/b && for i in 1 2 3 4 5 6; do yes line | head -c 7000000 > target/a/$i; done; \
                   truncate -s 40M target/b/huge; echo line > target/b/small";
    desk.sh(command).await;
    let call = async |tool: &str, arguments| desk.call(tool, arguments).await;
    let listed = call("list_files", json!({"path": "target/a"})).await.unwrap();
    assert_contains!(listed, "1 (7000000 bytes)", "6 (7000000 bytes)", "[6 entries]");
    let found = call("glob", json!({"pattern": "*", "path": "target/a"})).await.unwrap();
    assert_contains!(found, "[6 files]");
    let error = call("grep", json!({"pattern": "line", "path": "target/a"}))
        .await
        .unwrap_err();
    assert_contains!(error, "more than 33554432 bytes", "with the shell");
    // A search leaves out files that are too large for it, and says so.
    let found = call("grep", json!({"pattern": "line", "path": "target/b"}))
        .await
        .unwrap();
    assert_contains!(found, "target/b/small\n1: line", "; skipped 1 file of more than");
    let error = call("read_file", json!({"path": "target/b/huge"})).await.unwrap_err();
    assert_contains!(error, "has 41943040 bytes", "with the shell");
}

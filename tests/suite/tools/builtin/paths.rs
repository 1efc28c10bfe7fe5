//! One name space: a path that a command prints means the same file to each file tool, and the
//! other way round.

use std::sync::Arc;

use sandbox::Namespaces;
use serde_json::json;

use super::Desk;
use super::shell::Host;
use crate::support::text::assert_contains;

fn hosts() -> [Host; 2] {
    [Namespaces::Auto, Namespaces::Off].map(|namespaces| {
        Host::with(|settings| {
            settings.sandbox.namespaces = namespaces;
            // The directory of a session line has one path in each process.
            settings.retained_directories = 0;
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_path_that_a_command_prints_is_that_of_each_file_tool() {
    for host in hosts() {
        let desk = host.desk();
        desk.put("src/a.py", b"x = 1\n").await;
        let root = desk.sh("pwd").await.trim().to_owned();
        let file = desk.sh("readlink -f src/a.py").await.trim().to_owned();
        assert_eq!(file, format!("{root}/src/a.py"));
        if host.commands.open().await.unwrap().namespace_error.is_none() {
            assert_eq!(root, "/workspace");
            assert_eq!(desk.sh("ls /workspace").await, "src\n");
        }
        let call = async |tool: &str, arguments| desk.call(tool, arguments).await.unwrap();
        assert_contains!(call("read_file", json!({"path": file})).await, "x = 1");
        let edits = json!([{"old": "1", "new": "2"}]);
        call("edit_file", json!({"path": file, "edits": edits})).await;
        assert_eq!(desk.sh("cat src/a.py").await, "x = 2\n");
        for patch in [
            format!("--- {file}\n+++ {file}\n@@ -1 +1 @@\n-x = 2\n+x = 3\n"),
            format!("*** Begin Patch\n*** Update File: {file}\n@@\n-x = 3\n+x = 4\n*** End Patch"),
            format!(
                "*** Begin Patch\n*** Update File: {file}\n*** Move to: {root}/src/b.py\n@@\n-x = 4\n+x = 5\n*** End Patch"
            ),
        ] {
            call("apply_patch", json!({"patch": patch})).await;
        }
        assert_eq!(desk.sh("ls src; cat src/b.py").await, "b.py\nx = 5\n");
        call(
            "write_file",
            json!({"path": format!("{root}/src/new/c.py"), "content": "y"}),
        )
        .await;
        assert_eq!(desk.sh(&format!("cat {root}/src/new/c.py")).await, "y");
        for pattern in [format!("{root}/src/**/*.py"), format!("{root}/**")] {
            let found = call("glob", json!({"pattern": pattern, "path": format!("{root}/src")})).await;
            assert_contains!(found, "src/b.py\nsrc/new/c.py\n[2 files]");
        }
        let found = call(
            "grep",
            json!({"pattern": "x", "path": root, "glob": format!("{root}/src/*.py")}),
        )
        .await;
        assert_contains!(found, "src/b.py", "x = 5");
        assert_contains!(
            call("list_files", json!({"path": format!("{root}/src")})).await,
            "b.py (6 bytes)"
        );
        let jobs = desk
            .call(
                "shell",
                json!({"command": "pwd", "background": true, "timeout_seconds": 30}),
            )
            .await;
        assert_contains!(jobs.unwrap(), &format!("{root}\n"));
        assert_eq!(
            desk.paths().await,
            ["src/b.py", "src/new/c.py"],
            "there is no copy elsewhere"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_outside_of_the_workspace_is_refused_with_words() {
    let desk = Desk::with_files(&[("a.py", "1")]).await;
    for path in [
        "/etc/x",
        "/tmp/y",
        "/a.py",
        "~/a.py",
        "file:///etc/x",
        "/tmp/run-x/workspace/a.py",
    ] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
        for (tool, arguments) in [
            ("write_file", json!({"path": path, "content": "x"})),
            ("read_file", json!({"path": path})),
            ("edit_file", json!({"path": path, "edits": [{"old": "1", "new": "2"}]})),
            ("apply_patch", json!({"patch": patch})),
            ("list_files", json!({"path": path})),
            ("glob", json!({"pattern": path})),
            ("grep", json!({"pattern": "x", "path": path})),
        ] {
            let error = desk.call(tool, arguments).await.unwrap_err();
            assert_contains!(error, "can't be used", "workspace", "src/main.rs");
        }
    }
    assert_eq!(desk.paths().await, ["a.py"]);
    // The name of the workspace before a path means the workspace, unless it is a directory in it.
    desk.call("write_file", json!({"path": "workspace/b.py", "content": "x"}))
        .await
        .unwrap();
    assert_eq!(desk.paths().await, ["a.py", "b.py"]);
    desk.put("workspace/c.py", b"x").await;
    desk.call("write_file", json!({"path": "workspace/b.py", "content": "y"}))
        .await
        .unwrap();
    assert_eq!(desk.paths().await, ["a.py", "b.py", "workspace/b.py", "workspace/c.py"]);
}

/// After a restart, in a subagent and in a fork that runs at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn variables_and_links_lead_to_the_same_files_in_another_directory() {
    for is_first in [true, false] {
        let [on, off] = hosts();
        let (host, other) = if is_first { (on, off) } else { (off, on) };
        let desk = host.desk();
        desk.put("bin/mytool", b"#!/bin/sh\necho tool\n").await;
        let begin = "chmod +x bin/mytool; export PROJ=$PWD PATH=$PWD/bin:$PATH CFLAGS=-I$PWD/include; \
                     ln -s $PWD/bin/mytool link";
        assert_eq!(desk.sh(begin).await, "(no output)");
        let check = "mytool && ./link && [ $PROJ = $PWD ] && [ $CFLAGS = -I$PWD/include ]";
        assert_eq!(desk.sh(check).await, "tool\ntool\n");
        let state = desk.environment.export().await.unwrap();
        let variables = &state.shell.as_ref().unwrap().variables;
        assert_eq!(variables["PROJ"], "/workspace");
        for host in [&host, &other] {
            let next = Desk {
                agent_id: desk.agent_id,
                environment: Arc::new(desk.environment.again(state.clone())),
                ..host.desk()
            };
            assert_eq!(next.sh(check).await, "tool\ntool\n");
            let subagent = Desk {
                environment: Arc::new(next.environment.fork()),
                ..host.desk()
            };
            assert_eq!(subagent.sh(check).await, "tool\ntool\n");
        }
    }
}

/// A path that a file contains is valid after a restart, also without namespaces.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_line_has_one_path() {
    for host in hosts() {
        let desk = host.desk();
        desk.put("a", b"1").await;
        let root = desk.sh("pwd | tee root").await;
        let state = desk.environment.export().await.unwrap();
        // Others run meanwhile.
        for _ in 0..3 {
            host.desk().sh("pwd").await;
        }
        let (agent_id, environment) = (desk.agent_id, Arc::clone(&desk.environment));
        drop(desk);
        let next = |host: &Host| Desk {
            agent_id,
            environment: Arc::new(environment.again(state.clone())),
            ..host.desk()
        };
        let check = "cat root; cat $(cat root)/a; pwd";
        let expected = format!("{root}1{root}");
        assert_eq!(next(&host).sh(check).await, expected);
        assert_eq!(next(&host.restarted()).sh(check).await, expected);
    }
}

/// Patches have the prefix `b/` in the place of the first `/`.
#[tokio::test(flavor = "multi_thread")]
async fn an_absolute_path_without_its_first_slash_means_the_same_file() {
    for host in hosts() {
        let desk = host.desk();
        let root = desk.sh("pwd").await.trim().to_owned();
        let patch = format!("--- /dev/null\n+++ b{root}/src/new.py\n@@ -0,0 +1 @@\n+x\n");
        desk.call("apply_patch", json!({"patch": patch})).await.unwrap();
        let path = format!("{}/src/c.py", root.trim_start_matches('/'));
        let arguments = json!({"path": path, "content": "y"});
        desk.call("write_file", arguments).await.unwrap();
        assert_eq!(desk.paths().await, ["src/c.py", "src/new.py"]);
        // A command may have made a directory of that name.
        desk.sh("mkdir -p .$PWD/src").await;
        let arguments = json!({"path": path, "content": "nested"});
        desk.call("write_file", arguments).await.unwrap();
        assert_eq!(desk.file("src/c.py").await.unwrap(), "y");
        assert_eq!(desk.file(&path).await.unwrap(), "nested");
    }
}

#[tokio::test]
async fn a_dangling_link_is_named() {
    let desk = Desk::with_files(&[("a.py", "1")]).await;
    desk.link("dang", "nowhere").await;
    let edits = json!([{"old": "1", "new": "2"}]);
    for (tool, arguments) in [
        ("read_file", json!({"path": "dang"})),
        ("read_file", json!({"path": "dang/x"})),
        ("edit_file", json!({"path": "dang", "edits": edits})),
        ("list_files", json!({"path": "dang"})),
        ("grep", json!({"pattern": "1", "path": "dang"})),
    ] {
        let error = desk.call(tool, arguments).await.unwrap_err();
        assert_contains!(error, "leads to nothing: dang is a symlink to \"nowhere\"");
    }
}

//! Lines of sessions as files: what arrives with them, and what a file can't do.

use std::fs;
use std::io::Write as _;
use std::iter::successors;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use store::open;
use test_support::databases::TestDatabase;
use test_support::drafts::{commit_of, user};
use test_support::workspaces::{Node, below, directory, entry, environment_of, file};
use values::tenant::TenantId;
use workspace::Content;

use super::binary::Home;
use super::service::Service;
use super::transfer::{Filled, export, id, import, migrated};
use crate::support::members::assert_members;
use crate::support::text::assert_contains;

#[tokio::test]
async fn a_store_that_is_missing_is_not_made() {
    let filled = Filled::new().await;
    let file = filled.export("line.zst").await;
    let home = Home::with_file();
    let said = home.fail(&["sessions", "import", file.to_str().unwrap()]).await;
    assert!(said.contains("can't open the store"), "{said}");
    // Others can't read what is exported.
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let line = format!(
        "umask 0; agent-runtime sessions export {} -o - > piped.zst",
        filled.tip()
    );
    let ended = filled.home.start_shell(&line).end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("standard output"), "{}", ended.stderr);
    assert!(!filled.home.path().join("-").exists());
    let piped = fs::read(filled.home.path().join("piped.zst")).unwrap();
    assert_eq!(piped, fs::read(&file).unwrap());
    let there = migrated().await;
    let line = format!("agent-runtime sessions import - < '{}'", file.display());
    let ended = there.start_shell(&line).end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("4 sessions, 4 of them new"), "{}", ended.stderr);
    let ended = there.start_shell("agent-runtime sessions import -").end().await;
    assert!(ended.stderr.contains("standard input"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_long_line_is_refused_before_it_takes_memory() {
    let home = migrated().await;
    let file = home.path().join("long.zst");
    let mut encoder = zstd::Encoder::new(fs::File::create(&file).unwrap(), 1).unwrap();
    let header =
        json!({"agent_runtime_sessions": {"version": 1, "session_id": "01890000-0000-7000-8000-000000000000"}});
    writeln!(encoder, "{header}").unwrap();
    let part = vec![b'x'; 1 << 20];
    for _ in 0..600 {
        encoder.write_all(&part).unwrap();
    }
    encoder.finish().unwrap();
    let said = home.fail(&["sessions", "import", file.to_str().unwrap()]).await;
    assert!(said.contains("a line has more than 67108864 bytes"), "{said}");
}

/// All hashes of these files are right, so only their trees are at fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_that_no_workspace_can_have_is_refused() {
    let (database, tenant) = (TestDatabase::sqlite(), TenantId::anonymous());
    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    let home = Home::new(database.url());
    let text = file("x");
    let inner = directory(&[("f", entry(&text))]);
    let levels = successors(Some(directory(&[])), |level| Some(directory(&[("d", below(level))])));
    let no_directory = directory(&[("d", Node::Directory(text.hash, [0, 0, 0]))]);
    let wrong_totals = directory(&[("d", Node::Directory(inner.hash, [2, 0, 1]))]);
    let damaged = |content: &Content| {
        let hash = content.hash;
        format!("the contents of the workspace could not be read or written: the content {hash} is damaged")
    };
    let cases = [
        (
            levels.take(201).collect::<Vec<_>>(),
            "the path is invalid: the path has more than 64 levels".to_owned(),
        ),
        (vec![text.clone()], damaged(&text)),
        (vec![text.clone(), no_directory], damaged(&text)),
        (vec![text, inner.clone(), wrong_totals], damaged(&inner)),
    ];
    for (contents, fault) in cases {
        store.content_put(&tenant, &contents).await.unwrap();
        let root = contents.last().unwrap().hash;
        let mut commit = commit_of(&tenant, None, vec![user("files")]);
        commit.draft.environment = environment_of(root, &root.to_string()).into();
        let published = store.session_commit(&commit).await.unwrap().session;
        let session_id = published.head.session_id.to_string();
        let forged = home.path().join("forged.zst");
        export(&home, &session_id, &forged).await;

        let database = TestDatabase::sqlite();
        let there = Home::new(database.url());
        there.succeed(&["migrate"]).await;
        let said = there.fail(&["sessions", "import", forged.to_str().unwrap()]).await;
        let expected = format!("can't import {}: the session {session_id}: {fault}\n", forged.display());
        assert!(said.ends_with(&expected), "{expected}{said}");
        for table in ["sessions", "runs", "states", "history_segments", "history_branches"] {
            let rows = database.number(&format!("select count(*) from {table}")).await;
            assert_eq!(rows, 0, "{table}: {fault}");
        }
    }
    store.close().await;
}

/// A whole line: its subagents, the records of its runs, and the agents that continue it.
#[tokio::test]
async fn a_line_is_continued_where_nothing_but_its_file_arrives() {
    let (here, there) = (migrated().await, migrated().await);
    let service = Service::start(&here).await;
    let helper = json!({"driver": "scripted", "model": "demo/demo", "script": [{"text": "helped"}]});
    let call = json!({"name": "helper", "arguments": {"task": "help"}});
    let boss = json!({
        "driver": "scripted", "model": "demo/demo", "subagents": [{"agent": "helper"}],
        "script": [{"tool_calls": [call]}, {"text": "done"}],
    });
    service.put_agent("helper", helper.clone()).await;
    service.put_agent("boss", boss.clone()).await;
    let first = service.run("boss", None, "one").await;
    let second = service.run("boss", Some(&id(&first)), "two").await;
    assert_eq!(second["output_text"], "done", "{second:#}");
    let shown = async |service: &Service| {
        let mut shown = Vec::new();
        for run in [&first, &second] {
            let run_id = run["run_id"].as_str().unwrap();
            for path in [format!("/v1/runs/{run_id}"), format!("/v1/runs/{run_id}/steps")] {
                shown.push(service.get(&path).await);
            }
            let children = format!("/v1/sessions?subagent_of={}", id(run));
            shown.push(service.get(&children).await);
        }
        for name in ["boss", "helper"] {
            let mut agent = service.get(&format!("/v1/agents/{name}")).await;
            assert!(
                agent.as_object_mut().unwrap().remove("created_at").is_some(),
                "{agent:#}"
            );
            shown.push(agent);
        }
        shown
    };
    let expected = shown(&service).await;
    assert_eq!(expected[2]["data"].as_array().unwrap().len(), 1, "{:#}", expected[2]);
    service.stop().await;

    let file = here.path().join("line.zst");
    export(&here, &id(&second), &file).await;
    let note = import(&there, &file).await;
    assert!(note.contains("4 sessions, 4 of them new"), "{note}");
    assert_contains!(note, "the agent boss is new", "the agent helper is new");
    let again = there.path().join("again.zst");
    export(&there, &id(&second), &again).await;
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap());
    let service = Service::start(&there).await;
    assert_eq!(shown(&service).await, expected);
    let third = service.run("boss", Some(&id(&second)), "three").await;
    assert_eq!(third["output_text"], "done", "{third:#}");
    let verified = service.get(&format!("/v1/sessions/{}/verify", id(&third))).await;
    assert_members!(verified, {"valid": true, "sessions": 3});

    // An agent that is there stays as it is.
    let changed = json!({"driver": "scripted", "model": "demo/demo", "script": [{"text": "mine"}]});
    service.put_agent("boss", changed).await;
    service.stop().await;
    let note = import(&there, &file).await;
    assert!(note.contains("the agent boss stays as it is here"), "{note}");
}

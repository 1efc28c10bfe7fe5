//! Lines of sessions as files: what arrives with them, and what a file can't do.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use reqwest::Method;
use serde_json::json;

use super::binary::Home;
use super::service::Service;
use super::transfer::{Filled, export, id, import, migrated};

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
}

#[tokio::test]
async fn a_long_line_is_refused_before_it_takes_memory() {
    let home = migrated().await;
    let file = home.path().join("long.zst");
    let mut encoder = zstd::Encoder::new(fs::File::create(&file).unwrap(), 1).unwrap();
    let header =
        json!({"agent_runtime_sessions": {"version": 3, "session_id": "01890000-0000-7000-8000-000000000000"}});
    writeln!(encoder, "{header}").unwrap();
    let part = vec![b'x'; 1 << 20];
    for _ in 0..600 {
        encoder.write_all(&part).unwrap();
    }
    encoder.finish().unwrap();
    let said = home.fail(&["sessions", "import", file.to_str().unwrap()]).await;
    assert!(said.contains("a line has more than 67108864 bytes"), "{said}");
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
    for (name, definition) in [("helper", &helper), ("boss", &boss)] {
        let (status, put) = service
            .call(Method::PUT, &format!("/v1/agents/{name}"), Some(definition.clone()))
            .await;
        assert!(status.is_success(), "{put:#}");
    }
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
    assert!(
        note.contains("the agent boss is new") && note.contains("the agent helper is new"),
        "{note}"
    );
    let again = there.path().join("again.zst");
    export(&there, &id(&second), &again).await;
    assert_eq!(fs::read(&file).unwrap(), fs::read(&again).unwrap());
    let service = Service::start(&there).await;
    assert_eq!(shown(&service).await, expected);
    let third = service.run("boss", Some(&id(&second)), "three").await;
    assert_eq!(third["output_text"], "done", "{third:#}");
    let verified = service.get(&format!("/v1/sessions/{}/verify", id(&third))).await;
    assert_eq!((&verified["valid"], &verified["sessions"]), (&json!(true), &json!(3)));

    // An agent that is there stays as it is.
    let changed = json!({"driver": "scripted", "model": "demo/demo", "script": [{"text": "mine"}]});
    service.call(Method::PUT, "/v1/agents/boss", Some(changed)).await;
    service.stop().await;
    let note = import(&there, &file).await;
    assert!(note.contains("the agent boss stays as it is here"), "{note}");
}

//! Moving from one store to another by the API: `scripts/copy-sessions`.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::languages::has_python;

use super::binary::Home;
use super::service::Service;
use crate::support::text::assert_contains;

const NO_ADDRESS: &str = "is no address of a service, such as http://127.0.0.1:8080";

/// Runs the script to its end.
async fn run(addresses: [String; 2], from_key: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/copy-sessions");
    let mut command = Command::new("python3");
    command.arg(script).args(addresses).env_remove("http_proxy");
    command.env("FROM_KEY", from_key);
    let ending = tokio::task::spawn_blocking(move || command.output().unwrap());
    ending.await.unwrap()
}

#[tokio::test]
async fn the_script_explains_itself() {
    if !has_python() {
        return;
    }
    for (argument, code) in [("--help", 0), ("-h", 0), ("http://127.0.0.1:8080", 1)] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/copy-sessions");
        let done = Command::new("python3").args([script, argument]).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{argument}");
        let notes = if code == 0 { done.stdout } else { done.stderr };
        let notes = String::from_utf8(notes).unwrap();
        assert!(notes.contains("usage: scripts/copy-sessions FROM TO"), "{notes}");
    }
}

fn address(service: &Service) -> String {
    format!("http://{}", service.address)
}

/// Copies, and returns the ids of originals and copies, and what was printed to standard error.
async fn copy(from: &Service, to: &Service) -> (BTreeMap<String, String>, String) {
    let done = run([from, to].map(address), "").await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let printed = String::from_utf8(done.stdout).unwrap();
    let pairs = printed.lines().map(|line| line.split_once(' ').unwrap());
    let copies = pairs.map(|(old, new)| (old.to_owned(), new.to_owned())).collect();
    (copies, String::from_utf8(done.stderr).unwrap())
}

async fn ids(service: &Service) -> Vec<Value> {
    let sessions = service.get("/v1/sessions").await;
    let rows = sessions["data"].as_array().unwrap();
    rows.iter().map(|row| row["session_id"].clone()).collect()
}

fn assert_copied(original: &Value, copy: &Value) {
    for part in [
        "agent",
        "agent_version",
        "environment_state",
        "context_state",
        "message_history_state",
    ] {
        assert_eq!(copy[part], original[part], "{part}");
    }
    assert_eq!(copy["parent_session_id"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_move_from_sqlite_to_postgres() {
    if !has_python() {
        return;
    }
    let Some(postgres) = TestDatabase::postgres().await else {
        return;
    };
    let (old, new) = (Home::with_file(), Home::new(postgres.url()));
    // Without keys, every caller is an administrator and reads all of it.
    old.write("config/agents/of_a_file.toml", "model = 'demo/demo'\n");
    let (from, to) = (Service::start(&old).await, Service::start(&new).await);
    let agent = json!({"model": "demo/demo", "description": "ours", "tools": ["calculator"]});
    from.put_agent("ours", agent).await;
    let post = async |body: Value| {
        let run = from.post("/v1/runs", body).await;
        run["session_id"].as_str().unwrap().to_owned()
    };
    let root = post(
        json!({"agent": "ours", "input": "What is 1 + 1?", "variables": {"city": "Bern"}, "metadata": {"user": "ada"}}),
    )
    .await;
    let tip = post(json!({"base_session_id": root, "input": "What is 2 + 2?"})).await;
    let fork = post(json!({"base_session_id": root, "input": "What is 3 + 3?"})).await;
    let on_thread = post(json!({"thread": "support:17", "input": "What is 4 + 4?"})).await;
    // A thread may point to a session that others continue.
    from.call(Method::PUT, "/v1/threads/back", Some(json!({"session_id": root})))
        .await;
    let details = json!({"title": "Back", "metadata": {"user": "ada"}});
    from.call(Method::PATCH, "/v1/threads/back", Some(details.clone()))
        .await;

    let (copies, notes) = copy(&from, &to).await;
    assert_eq!(notes, "");
    let mut expected = [&root, &tip, &fork, &on_thread];
    expected.sort();
    assert_eq!(copies.keys().collect::<Vec<_>>(), expected);
    for (original, copy) in &copies {
        let original = from.get(&format!("/v1/sessions/{original}")).await;
        assert_copied(&original, &to.get(&format!("/v1/sessions/{copy}")).await);
    }
    for (thread, session) in [("support:17", &on_thread), ("back", &root)] {
        let moved = to.get(&format!("/v1/threads/{thread}")).await;
        assert_eq!(moved["session_id"], json!(copies[session]), "{thread}");
    }
    let back = to.get("/v1/threads/back").await;
    assert_eq!(json!({"title": back["title"], "metadata": back["metadata"]}), details);
    assert_eq!(
        to.get("/v1/agents/ours").await["version"],
        from.get("/v1/agents/ours").await["version"]
    );
    // Agents of files are no stored ones.
    to.refused(Method::GET, "/v1/agents/of_a_file", None, "agent_not_found")
        .await;
    // Conversations continue with their whole history.
    let next = json!({"thread": "support:17", "input": "What is 5 + 5?"});
    let next = to.post("/v1/runs", next).await;
    assert_contains!(next["output_text"].as_str().unwrap(), "2 message(s)");

    // A second copy adds what is new at the one side, and leaves what has changed at the other.
    let before = ids(&to).await;
    let agent = json!({"model": "demo/demo", "description": "theirs"});
    let changed = to.put_agent("ours", agent).await;
    let later = post(json!({"thread": "back", "input": "What is 6 + 6?"})).await;
    let (again, notes) = copy(&from, &to).await;
    assert_eq!(
        notes,
        "the agent ours is left as it is: TO has another version\n\
         the thread support:17 is left as it is: it has gone on in TO\n"
    );
    assert_eq!(to.get("/v1/agents/ours").await, changed);
    let more: Vec<_> = again.keys().filter(|old| !copies.contains_key(*old)).collect();
    assert_eq!(more, [&later]);
    assert_eq!(ids(&to).await.len(), before.len() + 1);
    for (thread, session) in [("support:17", &next["session_id"]), ("back", &json!(again[&later]))] {
        let thread = to.get(&format!("/v1/threads/{thread}")).await;
        assert_eq!(thread["session_id"], *session);
    }
    from.stop().await;
    to.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_sessions_are_reported_and_the_others_copied() {
    if !has_python() {
        return;
    }
    let (old, new) = (Home::with_file(), Home::with_file());
    for (home, agent) in [(&old, "ours"), (&new, "ours"), (&old, "of_a_file")] {
        home.write(&format!("config/agents/{agent}.toml"), "model = 'demo/demo'\n");
    }
    let key = old.succeed(&["keys", "create", "--tenant", "acme"]).await;
    let key = key
        .split_whitespace()
        .find(|word| word.starts_with("ark_"))
        .unwrap()
        .to_owned();
    let from = Service::start(&old).await.with_key(&key);
    let to = Service::start_with(&new, &["--set", "store.max_session_bytes=65536"]).await;
    let large = from.run("ours", None, &"x".repeat(100_000)).await;
    let small = from.run("ours", None, "What is 1 + 1?").await;

    let done = run([address(&from), address(&to)], &key).await;
    let (printed, notes) = (
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    );
    assert_eq!(done.status.code(), Some(1), "{notes}");
    let refused = format!("the session {} is not copied: ", large["session_id"].as_str().unwrap());
    assert!(
        notes.starts_with(&refused) && notes.contains("session_too_large") && notes.lines().count() == 1,
        "{notes}"
    );
    assert!(printed.starts_with(small["session_id"].as_str().unwrap()), "{printed}");
    assert_eq!((printed.lines().count(), ids(&to).await.len()), (1, 1));
    // Agents of files are no stored ones.
    let agents = to.get("/v1/agents").await;
    assert!(!agents.to_string().contains("of_a_file"), "{agents:#}");
    let down = address(&from);
    from.stop().await;
    for (wrong, expected) in [
        (down.as_str(), "can't be reached"),
        ("127.0.0.1:8080", NO_ADDRESS),
        ("localhost:18084", NO_ADDRESS),
        ("http://[", NO_ADDRESS),
        ("nonsense", NO_ADDRESS),
    ] {
        let done = run([wrong.to_owned(), wrong.to_owned()], "").await;
        let notes = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), notes.lines().count()), (Some(1), 1), "{notes}");
        assert!(notes.contains(wrong) && notes.contains(expected), "{notes}");
    }
    to.stop().await;
}

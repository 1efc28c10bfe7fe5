//! Lines of sessions as files, and the files of sessions on the command line.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::databases::{Engine, TestDatabase};

use super::binary::Home;
use super::service::Service;
use crate::end_to_end::waiting::{answer_to, model, open_calls};
use crate::support::members::assert_members;
use crate::support::mock_model::MockModel;
use crate::support::test_app::{run_path, session_path};

/// A store with a line of four sessions, which have files. The last is a merge with a session
/// beside the line.
pub(super) struct Filled {
    pub(super) home: Home,
    folder: TempDir,
    /// The sessions, oldest first.
    line: Vec<String>,
    _database: TestDatabase,
}

impl Filled {
    pub(super) async fn new() -> Self {
        let database = TestDatabase::sqlite();
        let home = Home::new(database.url());
        let service = Service::start(&home).await;
        let first = id(&service.run("demo", None, "What is 1 + 1?").await);
        let large: Vec<u8> = (0..500_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let changes = json!([
            {"path": "src/ä.txt", "content": "one\n"},
            {"path": "run", "content": "#!/bin/sh\n", "executable": true},
            {"path": "large.bin", "content": {"base64": STANDARD.encode(large)}},
        ]);
        let second = change(&service, &first, &changes).await;
        let third = id(&service.run("demo", Some(&second), "What is 2 + 2?").await);
        let changes = json!([{"path": "src/ä.txt", "content": "two\n"}, {"path": "run", "delete": true}]);
        let aside = change(&service, &third, &changes).await;
        let merge = format!("/v1/sessions/{third}/merge");
        let fourth = id(&service.post(&merge, json!({"with": aside})).await);
        Self {
            home,
            folder: tempfile::tempdir().unwrap(),
            line: vec![first, second, third, fourth],
            _database: database,
        }
    }

    pub(super) fn tip(&self) -> &str {
        self.line.last().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exports the line.
    pub(super) async fn export(&self, name: &str) -> PathBuf {
        let file = self.file(name);
        export(&self.home, self.tip(), &file).await;
        file
    }

    /// Exports the line and changes the lines of the file.
    async fn changed(&self, name: &str, change: impl FnOnce(&mut Vec<Value>)) -> PathBuf {
        let file = self.export(name).await;
        let text = zstd::decode_all(&*fs::read(&file).unwrap()).unwrap();
        let lines = String::from_utf8(text).unwrap();
        let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        change(&mut lines);
        let lines: Vec<_> = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = lines.concat();
        fs::write(&file, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
        file
    }
}

pub(super) fn id(session: &Value) -> String {
    session["session_id"].as_str().unwrap().to_owned()
}

async fn change(service: &Service, session_id: &str, changes: &Value) -> String {
    let path = format!("/v1/sessions/{session_id}/files");
    id(&service.post(&path, json!({"changes": changes})).await)
}

pub(super) async fn export(home: &Home, session_id: &str, file: &Path) {
    home.succeed(&["sessions", "export", session_id, "-o", file.to_str().unwrap()])
        .await;
}

/// Imports a file, and returns what was said about it.
pub(super) async fn import(home: &Home, file: &Path) -> String {
    let done = home.run(&["sessions", "import", file.to_str().unwrap()]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.stderr
}

/// Returns a home with an empty store.
pub(super) async fn migrated() -> Home {
    let home = Home::with_file();
    home.succeed(&["migrate"]).await;
    home
}

pub(super) async fn show(home: &Home, session_id: &str) -> Value {
    serde_json::from_str(&home.succeed(&["sessions", "show", session_id]).await).unwrap()
}

/// Checks that a store has the line as the first one has it, and that all hashes match.
async fn assert_has_line(home: &Home, filled: &Filled) {
    for session_id in &filled.line {
        assert_eq!(show(home, session_id).await, show(&filled.home, session_id).await);
        for arguments in [&["--recursive", "--json"][..], &[]] {
            let list = [&["sessions", "files", session_id], arguments].concat();
            assert_eq!(home.succeed(&list).await, filled.home.succeed(&list).await);
        }
    }
    let service = Service::start(home).await;
    let verified = service.get(&format!("/v1/sessions/{}/verify", filled.tip())).await;
    assert_members!(verified, {"valid": true, "sessions": 4});
    let continued = service.run("demo", Some(filled.tip()), "What is 3 + 3?").await;
    assert!(continued["output_text"].as_str().unwrap().contains("= 6"));
}

#[tokio::test]
async fn a_line_goes_to_another_engine_and_back_with_its_ids_and_hashes() {
    let filled = Filled::new().await;
    let Some(postgres) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let there = Home::new(postgres.url());
    there.succeed(&["migrate"]).await;
    let first = filled.export("first.zst").await;
    let note = import(&there, &first).await;
    assert!(note.contains("4 sessions, 4 of them new"), "{note}");
    // Equal sessions make equal files.
    let second = filled.file("second.zst");
    export(&there, filled.tip(), &second).await;
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    let back = migrated().await;
    import(&back, &second).await;
    let note = import(&back, &first).await;
    assert!(note.contains("4 sessions, 0 of them new"), "{note}");
    assert_has_line(&there, &filled).await;
    assert_has_line(&back, &filled).await;
    // Each tenant has sessions of its own.
    let file = first.to_str().unwrap();
    back.succeed(&["sessions", "import", file, "--tenant", "acme"]).await;
    let listed = back.succeed(&["sessions", "list", "--tenant", "acme", "--json"]).await;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.len(), 4);
}

#[tokio::test]
async fn a_line_goes_without_the_run_of_a_deleted_response() {
    let (here, there) = (migrated().await, migrated().await);
    let service = Service::start(&here).await;
    let first = service.run("demo", None, "What is 1 + 1?").await;
    let second = service.run("demo", Some(&id(&first)), "What is 2 + 2?").await;
    let digits = first["run_id"].as_str().unwrap().replace('-', "");
    let path = format!("/v1/responses/resp_{digits}");
    let (status, deleted) = service.call(Method::DELETE, &path, None).await;
    assert_eq!(status.as_u16(), 200, "{deleted}");
    service.stop().await;

    let file = here.path().join("line.zst");
    export(&here, &id(&second), &file).await;
    import(&there, &file).await;
    let service = Service::start(&there).await;
    service.get(&session_path(&first, "")).await;
    for (run, expected) in [(&first, 404), (&second, 200)] {
        let (status, shown) = service.call(Method::GET, &run_path(run, ""), None).await;
        assert_eq!(status.as_u16(), expected, "{shown}");
    }
    service.stop().await;
}

/// The agent of a waiting session, as a file: the service of each store reads it.
const ASKER: &str = r#"
name = "asker"
model = "mock/m"
tools = ["write_file"]
client_tools = [{ name = "ask" }]
approvals = [{ tools = ["write_file"], approval = "always", remember = true }]
"#;

#[tokio::test]
async fn a_waiting_session_is_answered_in_the_other_store() {
    let Some(postgres) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let mock = MockModel::start(model).await;
    let (sqlite, postgres) = (Home::with_file(), Home::new(postgres.url()));
    let [here, there] = [sqlite, postgres].map(|home| home.with_mock(&mock));
    for home in [&here, &there] {
        home.write("config/agents/asker.toml", ASKER);
    }
    let service = Service::start(&here).await;
    let write = json!(["c1", "write_file", {"path": "a", "content": "first"}]);
    let first = json!({"agent": "asker", "input": json!([write]).to_string()});
    let (_, first) = service.call(Method::POST, "/v1/runs", Some(first)).await;
    let remembered = answer_to(&first, "c1", json!({"decision": "approve", "remember": true}));
    let body = json!({
        "base_session_id": first["session_id"], "answers": [remembered],
        "input": json!([write, ["c2", "ask", {}]]).to_string(),
    });
    let (_, waiting) = service.call(Method::POST, "/v1/runs", Some(body)).await;
    // The approval that was remembered covers the second writing, so only the other call is open.
    assert_eq!(
        (&waiting["status"], open_calls(&waiting)),
        (&json!("waiting"), vec!["c2"]),
        "{waiting:#}"
    );
    service.stop().await;

    let file = here.path().join("line.zst");
    export(&here, &id(&waiting), &file).await;
    there.succeed(&["migrate"]).await;
    import(&there, &file).await;
    assert_eq!(show(&there, &id(&waiting)).await, show(&here, &id(&waiting)).await);
    let service = Service::start(&there).await;
    let plain = json!({"base_session_id": waiting["session_id"], "input": "Hello?"});
    let (status, problem) = service.call(Method::POST, "/v1/runs", Some(plain)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("answers_required")));
    assert_eq!(problem["required_action"], waiting["required_action"]);
    let answers = json!([answer_to(&waiting, "c2", json!({"result": "yes"}))]);
    let body = json!({"base_session_id": waiting["session_id"], "answers": answers});
    let (_, answered) = service.call(Method::POST, "/v1/runs", Some(body)).await;
    assert_eq!(answered["status"], "completed", "{answered:#}");
    assert!(
        answered["output_text"].as_str().unwrap().ends_with(" | yes"),
        "{answered:#}"
    );
    // The approval is still remembered, too.
    let body = json!({"base_session_id": answered["session_id"], "input": json!([write]).to_string()});
    let (_, last) = service.call(Method::POST, "/v1/runs", Some(body)).await;
    assert_eq!(last["status"], "completed", "{last:#}");
    let verified = service.get(&format!("/v1/sessions/{}/verify", id(&last))).await;
    assert_members!(verified, {"valid": true, "sessions": 4});
    service.stop().await;

    // The answered line goes back, and continues the one that is there.
    let file = there.path().join("line.zst");
    export(&there, &id(&last), &file).await;
    let note = import(&here, &file).await;
    assert!(note.contains("4 sessions, 2 of them new"), "{note}");
    assert_eq!(show(&here, &id(&last)).await, show(&there, &id(&last)).await);
}

#[tokio::test]
async fn an_import_that_was_cut_is_continued() {
    let filled = Filled::new().await;
    let cut = filled.changed("cut.zst", |lines| {
        let mut sessions = (0..lines.len()).filter(|index| lines[*index]["session"].is_object());
        let second = sessions.nth(1).unwrap();
        lines.truncate(second + 1);
    });
    let cut = cut.await;
    let home = Home::with_file();
    home.succeed(&["migrate"]).await;
    let complaint = home.fail(&["sessions", "import", cut.to_str().unwrap()]).await;
    assert!(complaint.contains("the file is cut"), "{complaint}");
    let note = import(&home, &filled.export("whole.zst").await).await;
    assert!(note.contains("4 sessions, 2 of them new"), "{note}");
    assert_has_line(&home, &filled).await;
}

/// Replaces a text in the JSON of a line.
fn replace(line: &mut Value, from: &str, to: &str) {
    let text = line.to_string();
    assert!(text.contains(from), "{text}");
    *line = serde_json::from_str(&text.replace(from, to)).unwrap();
}

#[tokio::test]
async fn a_file_that_was_changed_is_refused() {
    type Change = fn(&mut Vec<Value>);
    let filled = Filled::new().await;
    let session = |line: &Value| line["session"].is_object();
    let changes: [(&str, Change); 12] = [
        ("differs from its hash", |lines| {
            let line = lines.iter_mut().find(|line| line["session"].is_object()).unwrap();
            replace(line, "What is 1 + 1?", "What is 1 + 2?");
        }),
        ("differs from its hash", |lines| {
            let line = lines.iter_mut().find(|line| line["session"].is_object()).unwrap();
            line["session"]["metadata"] = json!({"a": 1});
        }),
        ("differs from its hash", |lines| {
            let line = lines.iter_mut().find(|line| line["session"].is_object()).unwrap();
            line["session"]["environment_session_id"] = line["session"]["session_id"].clone();
        }),
        ("differs from its hash", |lines| {
            let line = lines.iter_mut().rfind(|line| line["session"].is_object()).unwrap();
            line["session"]["merged_session_id"] = Value::Null;
        }),
        ("differs from its hash", |lines| {
            let line = lines
                .iter_mut()
                .find(|line| line["content"]["text"] == "one\n")
                .unwrap();
            line["content"]["text"] = json!("uno\n");
        }),
        ("differs from its hash", |lines| {
            let line = lines
                .iter_mut()
                .find(|line| line["content"]["kind"] == "chunks")
                .unwrap();
            line["content"]["hash"] = json!("0".repeat(64));
        }),
        ("is not stored", |lines| {
            lines.retain(|line| line["content"]["text"] != "one\n");
        }),
        ("is not stored", |lines| {
            let first = lines.iter().position(|line| line["session"].is_object()).unwrap();
            lines.remove(first);
        }),
        ("differs from its hash", |lines| {
            let line = lines.iter_mut().find(|line| line["session"].is_object()).unwrap();
            line["session"]["agent_instance"]["created_at"] = json!("2026-01-01T00:00:00Z");
        }),
        ("expected struct AgentInstance", |lines| {
            let line = lines.iter_mut().find(|line| line["session"].is_object()).unwrap();
            line["session"]["agent_instance"] = Value::Null;
        }),
        ("has the version 2", |lines| {
            lines[0]["agent_runtime_sessions"]["version"] = json!(2);
        }),
        ("is no export of sessions", |lines| drop(lines.remove(0))),
    ];
    for (complaint, change) in changes {
        let file = filled.changed("changed.zst", change).await;
        let home = Home::with_file();
        home.succeed(&["migrate"]).await;
        let said = home.fail(&["sessions", "import", file.to_str().unwrap()]).await;
        assert!(said.contains(complaint), "{complaint}: {said}");
        assert!(!home.succeed(&["sessions", "list"]).await.contains(filled.tip()));
    }
    let whole = filled.export("whole.zst").await;
    let lines = zstd::decode_all(&*fs::read(whole).unwrap()).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let sessions = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(sessions.filter(session).count(), 4);
    for (bytes, complaint) in [(&b"{}\n"[..], "can't"), (b"", "can't")] {
        let file = filled.file("other");
        fs::write(&file, bytes).unwrap();
        let said = filled.home.fail(&["sessions", "import", file.to_str().unwrap()]).await;
        assert!(said.contains(complaint), "{said}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_exported() {
    let home = Home::with_file();
    home.succeed(&["migrate"]).await;
    let nowhere = "01890000-0000-7000-8000-000000000000";
    let file = home.path().join("export.zst");
    let said = home
        .fail(&["sessions", "export", nowhere, "-o", file.to_str().unwrap()])
        .await;
    assert!(said.contains("there is no session 01890000"), "{said}");
    assert!(!file.exists());
}

#[tokio::test]
async fn files_are_listed_and_printed() {
    let filled = Filled::new().await;
    let (home, second) = (&filled.home, filled.line[1].as_str());
    let files = async |arguments: &[&str]| {
        home.succeed(&[&["sessions", "files", second], arguments].concat())
            .await
    };
    let listed = files(&[]).await;
    let names: Vec<&str> = listed
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next_back().unwrap())
        .collect();
    assert_eq!(names, ["large.bin", "run", "src"]);
    assert!(listed.contains("executable  run"), "{listed}");
    assert!(files(&["--recursive"]).await.contains("src/ä.txt"));
    assert_eq!(files(&["src/ä.txt"]).await, "one\n");
    let json: Value = serde_json::from_str(&files(&["src", "--json"]).await).unwrap();
    assert_members!(json[0], {"path": "src/ä.txt", "kind": "file"});
    for (path, complaint) in [
        ("nothing", "does not exist"),
        ("../x", "must not contain"),
        ("run/x", "not a directory"),
    ] {
        let said = home.fail(&["sessions", "files", second, path]).await;
        assert!(said.contains(complaint), "{said}");
    }
    let diff: Value = serde_json::from_str(&home.succeed(&["sessions", "diff", second, filled.tip()]).await).unwrap();
    let changed = diff["files"].as_array().unwrap();
    assert_eq!(changed.len(), 2, "{changed:#?}");
    assert_eq!(
        changed[1]["diff"],
        "--- a/src/ä.txt\n+++ b/src/ä.txt\n@@ -1 +1 @@\n-one\n+two\n"
    );
}

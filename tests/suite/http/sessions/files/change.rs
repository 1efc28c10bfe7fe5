//! Changes of files: a child session with all of them, or nothing.

use serde_json::{Value, json};

use super::{change, changed, deleted, id_of, session, session_with, texts};
use crate::http::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::table::rows;

on_every_store! {
    a_change_makes_a_child_with_the_same_talk,
    files_are_written_and_deleted_in_order,
    a_file_stays_executable,
    a_change_that_is_impossible_changes_nothing,
    bad_changes_are_refused,
    a_repeated_request_makes_one_session,
    conflicts_are_decided_as_those_of_runs,
}

async fn a_change_makes_a_child_with_the_same_talk(service: &Service) {
    let run = service
        .run_with(json!({"input": "hi", "variables": {"city": "Bern"}, "metadata": {"a": 1}}))
        .await;
    let base = run["session_id"].as_str().unwrap();
    let before = service.get(&format!("/v1/sessions/{base}")).await;
    let answer = change(service, base, &json!([{"path": "notes.md", "content": "# Notes\n"}])).await;
    assert_eq!(answer.status, 201);
    let location = answer.header("location").to_owned();
    let tag = answer.header("etag").to_owned();
    let made = answer.ok();
    assert_eq!(location, format!("/v1/sessions/{}", id_of(&made)));
    assert_eq!(tag, format!("\"{}\"", made["root_hash"].as_str().unwrap()));
    assert_members!(made, {"parent_session_id": base, "run_id": null, "environment_state/variables": {"city": "Bern"}});
    let child = service.get(&location).await;
    assert_eq!(child["message_history_state"], before["message_history_state"]);
    for same in ["agent", "agent_version", "message_count", "execution_count", "metadata"] {
        assert_eq!(child[same], before[same], "{same}");
    }
    assert_eq!(child["depth"], before["depth"].as_u64().unwrap() + 1);
    let verified = service.get(&format!("{location}/verify")).await;
    assert_members!(verified, {"valid": true, "sessions": 2});
    // The base is as it was, and the child can be continued.
    assert_eq!(service.get(&format!("/v1/sessions/{base}")).await, before);
    let run = service
        .run_with(json!({"input": "again", "base_session_id": id_of(&made)}))
        .await;
    let next = run["session_id"].as_str().unwrap();
    assert_eq!(
        texts(service, next).await,
        [("notes.md".to_owned(), "# Notes\n".to_owned())]
    );
    let messages = service.get(&format!("/v1/sessions/{next}/messages?limit=3")).await;
    assert_eq!(
        (&messages["total"], messages["data"].as_array().unwrap().len()),
        (&json!(4), 3)
    );
    let verified = service.get(&format!("/v1/sessions/{next}/verify")).await;
    assert_members!(verified, {"valid": true, "sessions": 3});
}

async fn files_are_written_and_deleted_in_order(service: &Service) {
    let base = session_with(service, &[("a/1", "one"), ("a/2", "two"), ("b", "bee")]).await;
    let changes = json!([
        {"path": "a", "delete": true},
        {"path": "a/3", "content": "three"},
        {"path": "b", "content": {"base64": "QkVF"}},
        {"path": "c", "content": "sea"},
        {"path": "c", "delete": true},
    ]);
    let child = id_of(&change(service, &base, &changes).await.ok());
    let expected = [("a/3", "three"), ("b", "BEE")].map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(texts(service, &child).await, expected);
    assert_eq!(texts(service, &base).await.len(), 3);
    // A session without files has no trace of them.
    let empty = deleted(service, &child, &["a", "b"]).await;
    let shown = service.get(&format!("/v1/sessions/{empty}")).await;
    assert_eq!(shown["environment_state"], json!({"variables": {}, "resources": {}}));
}

async fn a_file_stays_executable(service: &Service) {
    let base = session(service).await;
    let changes = json!([{"path": "run.sh", "content": "1", "executable": true}, {"path": "a", "content": "1"}]);
    let first = id_of(&change(service, &base, &changes).await.ok());
    let second = changed(service, &first, &[("run.sh", "2"), ("a", "2")]).await;
    let changes = json!([{"path": "run.sh", "content": "3", "executable": false}]);
    let third = id_of(&change(service, &second, &changes).await.ok());
    for (session_id, expected) in [(first, [false, true]), (second, [false, true]), (third, [false, false])] {
        let list = service.get(&format!("/v1/sessions/{session_id}/files")).await;
        let modes = column(&list["data"], "executable");
        assert_eq!(modes, expected);
    }
}

async fn a_change_that_is_impossible_changes_nothing(service: &Service) {
    let base = session_with(service, &[("a/b", "x")]).await;
    let count = service.counts().await;
    for bad in [
        json!({"path": "a/c", "delete": true}),
        json!({"path": "a", "content": "a directory"}),
        json!({"path": "a/b/c", "content": "below a file"}),
        json!({"path": "z/y", "delete": true}),
        json!({"path": "../x", "content": ""}),
        json!({"path": "/x", "content": ""}),
        json!({"path": "", "content": ""}),
        json!({"path": "x/", "content": ""}),
        json!({"path": "x\ny", "content": ""}),
        json!({"path": "n".repeat(256), "content": ""}),
        json!({"path": vec!["d"; 65].join("/"), "content": ""}),
    ] {
        let answer = change(service, &base, &json!([{"path": "new", "content": "1"}, bad])).await;
        answer.assert_problem_at("invalid_field", "/changes/1/path");
    }
    let answer = change(service, &base, &json!([{"path": "/x", "content": ""}])).await;
    let words = "a path must not be empty, begin or end with `/`";
    assert!(answer.text().contains(words), "{}", answer.text());
    assert_eq!(service.counts().await, count);
}

/// The code and the pointer of a problem, and a body that has it.
const BAD_CHANGES: &str = r#"
missing_field | /changes                  | {}
invalid_field | /changes                  | {"changes": []}
missing_field | /changes/0                | {"changes": [{"path": "a"}]}
missing_field | /changes/0                | {"changes": [{"path": "a", "delete": false}]}
missing_field | /changes/0/path           | {"changes": [{"content": "a"}]}
invalid_field | /changes/0                | {"changes": [{"path": "a", "content": "", "delete": true}]}
invalid_field | /changes/0                | {"changes": [{"path": "a", "executable": true, "delete": true}]}
invalid_field | /changes/0/content        | {"changes": [{"path": "a", "content": 5}]}
invalid_field | /changes/0/content        | {"changes": [{"path": "a", "content": {}}]}
invalid_field | /changes/0/content/base64 | {"changes": [{"path": "a", "content": {"base64": "QQ"}}]}
invalid_field | /changes/0/content/blob   | {"changes": [{"path": "a", "content": {"blob": "x"}}]}
unknown_field | /changes/0/content/text   | {"changes": [{"path": "a", "content": {"text": "x"}}]}
nul_character | /changes/0/content        | {"changes": [{"path": "a", "content": "\u0000"}]}
unknown_field | /changes/0/mode           | {"changes": [{"path": "a", "content": "", "mode": 7}]}
invalid_field | /conflict                 | {"changes": [], "conflict": "merge"}
"#;

/// Bodies, each with the code and the pointer of its problem.
fn bad_changes() -> Vec<(Value, &'static str, &'static str)> {
    let many: Vec<Value> = (0..1_001)
        .map(|n| json!({"path": n.to_string(), "content": ""}))
        .collect();
    let large = [(json!({"changes": many}), "invalid_field", "/changes")];
    let small = rows(BAD_CHANGES).map(|[code, pointer, body]| (serde_json::from_str(body).unwrap(), code, pointer));
    large.into_iter().chain(small).collect()
}

async fn bad_changes_are_refused(service: &Service) {
    let base = session(service).await;
    let path = format!("/v1/sessions/{base}/files");
    for (body, code, pointer) in bad_changes() {
        let answer = service.post(&path, &body).await;
        answer.assert_problem_at(code, pointer);
    }
    let large = "x".repeat(11 << 20);
    let answer = change(service, &base, &json!([{"path": "a", "content": large}])).await;
    answer.assert_problem("body_too_large");
    let nowhere = format!("/v1/sessions/{}/files", crate::http::service::NOWHERE);
    let body = json!({"changes": [{"path": "a", "content": ""}]});
    service.post(&nowhere, &body).await.assert_problem("session_not_found");
    assert_eq!(service.counts().await, (1, 0));
}

async fn keyed(service: &Service, session_id: &str, key: &str, text: &str) -> Answer {
    let path = format!("/v1/sessions/{session_id}/files");
    let request = service
        .request(reqwest::Method::POST, &path)
        .header("idempotency-key", key);
    let body = json!({"changes": [{"path": "a", "content": text}]});
    read(with_json(request, &body)).await
}

async fn a_repeated_request_makes_one_session(service: &Service) {
    let base = session(service).await;
    let copies = (0..4).map(|_| keyed(service, &base, "k", "x"));
    let copies: Vec<_> = futures_util::future::join_all(copies).await;
    let replayed = copies
        .iter()
        .filter(|copy| copy.header("idempotency-replayed") == "true")
        .count();
    assert!(replayed <= 3, "{replayed}");
    let made: Vec<_> = copies.into_iter().map(Answer::ok).collect();
    assert!(made.iter().all(|one| *one == made[0]), "{made:#?}");
    assert_eq!(service.counts().await, (2, 0));
    let again = keyed(service, &base, "k", "x").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.ok(), made[0]);
    keyed(service, &base, "k", "y")
        .await
        .assert_problem("idempotency_key_reused");
}

async fn conflicts_are_decided_as_those_of_runs(service: &Service) {
    let base = session(service).await;
    let path = format!("/v1/sessions/{base}/files");
    let body = |text: &str, conflict: &str| json!({"changes": [{"path": "a", "content": text}], "conflict": conflict});
    let first = id_of(&service.post(&path, &body("1", "reject")).await.ok());
    service
        .post(&path, &body("2", "reject"))
        .await
        .assert_problem("base_session_conflict");
    let second = id_of(&service.post(&path, &body("3", "fork")).await.ok());
    for (session_id, text) in [(first, "1"), (second, "3")] {
        assert_eq!(texts(service, &session_id).await, [("a".to_owned(), text.to_owned())]);
        let verified = service.get(&format!("/v1/sessions/{session_id}/verify")).await;
        assert_eq!(verified["valid"], true);
    }
    let children = service.get(&format!("/v1/sessions/{base}/children")).await;
    assert_eq!(children["data"].as_array().unwrap().len(), 2);
}

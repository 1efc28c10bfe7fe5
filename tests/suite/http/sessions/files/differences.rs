//! The files in the comparison of two sessions.

use serde_json::{Value, json};

use super::{change, changed, deleted, hash, id_of, session, session_with};
use crate::http::service::Service;

on_every_store! {
    files_are_compared_as_texts,
    binary_and_large_files_are_compared_by_their_hash,
    many_changes_are_cut,
}

async fn diff(service: &Service, left: &str, right: &str) -> Value {
    service.get(&format!("/v1/sessions/{left}/diff/{right}")).await
}

async fn files_are_compared_as_texts(service: &Service) {
    let left = session_with(
        service,
        &[("a", "one\ntwo\n"), ("gone", "x\n"), ("same", "y\n"), ("mode", "z")],
    )
    .await;
    let changes = json!([
        {"path": "a", "content": "one\n2\n"},
        {"path": "new/b", "content": "b\n"},
        {"path": "mode", "content": "z", "executable": true},
        {"path": "gone", "delete": true},
    ]);
    let right = id_of(&change(service, &left, &changes).await.ok());
    let found = diff(service, &left, &right).await;
    assert_eq!(found["complete"], true);
    let file = |text: &str, executable: bool| json!({"kind": "file", "hash": hash(text.as_bytes()), "size": text.len(), "executable": executable});
    let expected = json!([
        {
            "path": "a", "left": file("one\ntwo\n", false), "right": file("one\n2\n", false),
            "diff": "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", "binary": false, "truncated": false,
        },
        {
            "path": "gone", "left": file("x\n", false),
            "diff": "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "binary": false, "truncated": false,
        },
        {
            "path": "mode", "left": file("z", false), "right": file("z", true), "binary": false, "truncated": false,
        },
        {
            "path": "new/b", "right": file("b\n", false),
            "diff": "--- /dev/null\n+++ b/new/b\n@@ -0,0 +1 @@\n+b\n", "binary": false, "truncated": false,
        },
    ]);
    assert_eq!(found["files"], expected, "{:#}", found["files"]);
    assert_eq!(diff(service, &right, &right).await["files"], json!([]));
    let empty = session(service).await;
    assert_eq!(
        diff(service, &empty, &right).await["files"].as_array().unwrap().len(),
        4
    );
    assert_eq!(diff(service, &empty, &empty).await["files"], json!([]));
    let without = deleted(service, &left, &["a", "gone", "same", "mode"]).await;
    assert_eq!(diff(service, &empty, &without).await["files"], json!([]));
}

async fn binary_and_large_files_are_compared_by_their_hash(service: &Service) {
    let large = "x\n".repeat(600_000);
    let left = session_with(service, &[("large", &large), ("binary", "text")]).await;
    let changes = json!([
        {"path": "large", "content": large.replace('x', "y")},
        {"path": "binary", "content": {"base64": "AAEC"}},
    ]);
    let right = id_of(&change(service, &left, &changes).await.ok());
    let found = diff(service, &left, &right).await;
    let shown = |index: usize| {
        let file = &found["files"][index];
        (
            file["path"].clone(),
            file["binary"].clone(),
            file["truncated"].clone(),
            file.get("diff").cloned(),
        )
    };
    assert_eq!(shown(0), (json!("binary"), json!(true), json!(false), None));
    assert_eq!(shown(1), (json!("large"), json!(false), json!(true), None));
}

async fn many_changes_are_cut(service: &Service) {
    let text = "line\n".repeat(400);
    let files: Vec<String> = (0..1_100).map(|n| format!("f{n:04}")).collect();
    let mut session_id = session(service).await;
    let left = session_id.clone();
    for part in files.chunks(550) {
        let part: Vec<(&str, &str)> = part.iter().map(|path| (path.as_str(), text.as_str())).collect();
        session_id = changed(service, &session_id, &part).await;
    }
    let found = diff(service, &left, &session_id).await;
    assert_eq!(found["complete"], false);
    let listed = found["files"].as_array().unwrap();
    assert!((300..=1_000).contains(&listed.len()), "{}", listed.len());
    assert!(found.to_string().len() < 2 << 20);
}

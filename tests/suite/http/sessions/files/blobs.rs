//! Contents that are uploaded ahead of their session.

use serde_json::json;

use super::{change, get_file, hash, id_of, put_blob, session};
use crate::http::service::{NOWHERE, Service};
use crate::support::answer::{Answer, read};

on_every_store! {
    a_blob_becomes_a_file,
    a_body_with_another_hash_is_not_stored,
    nobody_else_has_a_blob,
}

async fn a_blob_becomes_a_file(service: &Service) {
    let bytes = [0, 255, 10, 0];
    let stored = put_blob(service, &hash(&bytes), &bytes).await;
    assert_eq!(stored.status, 201);
    assert_eq!(stored.json(), json!({"hash": hash(&bytes), "size": 4}));
    let again = put_blob(service, &hash(&bytes), &bytes).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, stored.json()));
    assert_eq!(put_blob(service, &hash(b""), b"").await.status, 201);
    let base = session(service).await;
    let changes = json!([
        {"path": "bin/tool", "content": {"blob": hash(&bytes)}, "executable": true},
        {"path": "empty", "content": {"blob": hash(b"")}},
    ]);
    let session_id = id_of(&change(service, &base, &changes).await.ok());
    assert_eq!(get_file(service, &session_id, "bin/tool", &[]).await.body, bytes);
    assert_eq!(get_file(service, &session_id, "empty", &[]).await.body, b"");
    let list = service.get(&format!("/v1/sessions/{session_id}/files?path=bin")).await;
    assert_eq!(list["data"][0]["executable"], true);
}

async fn a_body_with_another_hash_is_not_stored(service: &Service) {
    let base = session(service).await;
    let answer = put_blob(service, &hash(b"a"), b"b").await;
    answer.assert_problem("hash_mismatch");
    assert!(answer.text().contains(&hash(b"b")));
    for hash in ["x", NOWHERE, &hash(b"a")[1..]] {
        put_blob(service, hash, b"a").await.assert_problem("malformed_id");
    }
    for unknown in [hash(b"a"), hash(b"b"), tree_of_a_file(service).await] {
        let changes = json!([{"path": "a", "content": "x"}, {"path": "b", "content": {"blob": unknown}}]);
        let answer = change(service, &base, &changes).await;
        answer.assert_problem_at("unknown_blob", "/changes/1/content/blob");
    }
    let children = service.get(&format!("/v1/sessions/{base}/children")).await;
    assert_eq!(children["data"], json!([]));
}

/// Returns the hash of a stored directory, which is no file.
async fn tree_of_a_file(service: &Service) -> String {
    let session_id = super::session_with(service, &[("x", "y")]).await;
    let session = service.get(&format!("/v1/sessions/{session_id}")).await;
    let tree = &session["environment_state"]["workspace"]["tree"];
    tree.as_str().unwrap().to_owned()
}

async fn nobody_else_has_a_blob(service: &Service) {
    use store::keys::Scope;
    let scopes = [Scope::RunsWrite, Scope::SessionsRead];
    let (_, acme) = service.make_key("acme", &scopes).await;
    let (_, other) = service.make_key("other", &scopes).await;
    let ask = async |key: &str, method: &str, path: &str, body: &str| -> Answer {
        let request = service.request(method.parse().unwrap(), path).bearer_auth(key);
        let request = request.header("content-type", "application/json").body(body.to_owned());
        read(request).await
    };
    let blob = format!("/v1/blobs/{}", hash(b"{}"));
    assert_eq!(ask(&acme, "PUT", &blob, "{}").await.status, 201);
    let changes = json!({"changes": [{"path": "a", "content": {"blob": hash(b"{}")}}]}).to_string();
    let session_id = id_of(&ask(&other, "POST", "/v1/sessions", "{}").await.ok());
    let files = format!("/v1/sessions/{session_id}/files");
    ask(&other, "POST", &files, &changes)
        .await
        .assert_problem("unknown_blob");
    // It is new for the other tenant as well.
    assert_eq!(ask(&other, "PUT", &blob, "{}").await.status, 201);
    assert_eq!(ask(&other, "POST", &files, &changes).await.status, 201);
    for (method, path) in [("GET", files.clone()), ("GET", format!("{files}/a")), ("POST", files)] {
        let body = if method == "POST" { changes.as_str() } else { "" };
        ask(&acme, method, &path, body)
            .await
            .assert_problem("session_not_found");
    }
}

#[tokio::test]
async fn a_blob_above_the_limit_of_a_file_is_refused() {
    let service = Service::start_with(&[("workspace.max_file_bytes", "1024")]).await;
    let bytes = [7; 1025];
    put_blob(&service, &hash(&bytes), &bytes)
        .await
        .assert_problem("body_too_large");
    assert_eq!(put_blob(&service, &hash(&bytes[1..]), &bytes[1..]).await.status, 201);
    let (base, text) = (session(&service).await, "x".repeat(1025));
    let answer = change(&service, &base, &json!([{"path": "a", "content": text}])).await;
    answer.assert_problem("workspace_too_large");
    service.finish().await;
}

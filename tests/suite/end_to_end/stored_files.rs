//! Where the files of sessions are stored, and how many bytes a tenant may store.

use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::object_server::{ObjectServer, Protocol};
use values::session::hash_content;

use super::on_every_store;
use crate::support::answer::read;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::TestApp;

on_every_store!(
    what_exceeds_the_limit_of_a_tenant_is_refused,
    a_run_that_can_not_store_its_files_fails,
    large_files_are_read_from_a_directory,
    large_files_are_read_from_s3,
    large_files_are_read_from_google_cloud_storage,
    large_files_are_read_from_azure,
);

const LIMIT: (&str, &str) = ("limits.tenants.default.max_stored_file_bytes", "100000");

async fn what_exceeds_the_limit_of_a_tenant_is_refused(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[LIMIT]).await;
    let put = async |bytes: Vec<u8>| {
        let path = format!("/v1/blobs/{}", hash_content(&bytes));
        read(app.request(Method::PUT, &path).body(bytes)).await
    };
    assert_eq!(put(vec![1; 90_000]).await.status, StatusCode::CREATED);
    put(vec![2; 10_001]).await.assert_problem("storage_quota_exceeded");
    assert_eq!(put(vec![1; 90_000]).await.status, StatusCode::OK);
    let base = app.run(None, "hello").await["session_id"].clone();
    let change = async |content: &str| {
        let path = format!("/v1/sessions/{}/files", base.as_str().unwrap());
        app.post(&path, &json!({"changes": [{"path": "a.txt", "content": content}]}))
            .await
    };
    let sessions = "select count(*) from sessions";
    let before = database.number(sessions).await;
    change(&"x".repeat(10_000))
        .await
        .assert_problem("storage_quota_exceeded");
    assert_eq!(database.number(sessions).await, before);
    assert_eq!(change("small").await.status, StatusCode::CREATED);
    app.finish().await;
}

async fn a_run_that_can_not_store_its_files_fails(database: TestDatabase) {
    let write = |id: &str, bytes: usize| {
        let arguments = json!({"path": format!("{id}.txt"), "content": id.repeat(bytes)});
        Reply::call(id, "write_file", &arguments)
    };
    let mock = MockModel::start(move |request| match tool_results(request).len() {
        0 => write("a", 3 << 20),
        // More than four megabytes are stored at once.
        1 => write("b", 3 << 20),
        _ => Reply::text("done"),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[LIMIT]).await;
    app.put_agent("writer", json!({"model": "mock/m", "tools": ["write_file"]}))
        .await;
    let result = app.run_with(json!({"agent": "writer", "input": "go"})).await;
    let read_by_model = tool_results(&mock.requests()[2]);
    assert!(read_by_model[0].starts_with("Wrote a.txt"), "{read_by_model:?}");
    let full = "the files of all sessions would have more than 100000 bytes, the most that may be stored";
    assert_eq!(read_by_model[1], format!("{full}; nothing was changed"));
    let error = &result["error"];
    assert_eq!(
        (&result["status"], &error["code"], &error["phase"], &error["message"]),
        (
            &json!("failed"),
            &json!("storage_quota_exceeded"),
            &json!("commit"),
            &json!(full)
        ),
        "{result:#}"
    );
    // With a journal, the run fails at the first step that can't be stored.
    let body = json!({"agent": "writer", "input": "go", "durability": "step"});
    let result = app.run_with(body).await;
    assert_members!(result, {"status": "failed", "error/code": "storage_quota_exceeded", "error/message": full});
    assert_eq!(database.number("select count(*) from sessions").await, 0);
    app.finish().await;
}

async fn large_files_are_read_from_a_directory(database: TestDatabase) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file://{}", directory.path().display());
    a_large_file_is_stored_and_read(database, &[("store.objects.url", &url)]).await;
    assert_eq!(fs::read_dir(directory.path().join("default")).unwrap().count(), 1);
}

async fn large_files_are_read_from_s3(database: TestDatabase) {
    large_files_are_read_from_a_server(database, Protocol::S3).await;
}

async fn large_files_are_read_from_google_cloud_storage(database: TestDatabase) {
    large_files_are_read_from_a_server(database, Protocol::Google).await;
}

async fn large_files_are_read_from_azure(database: TestDatabase) {
    large_files_are_read_from_a_server(database, Protocol::Azure).await;
}

async fn large_files_are_read_from_a_server(database: TestDatabase, protocol: Protocol) {
    let Some(server) = ObjectServer::start(protocol).await else {
        return;
    };
    let options = server.options();
    let options = options.iter().map(|(name, value)| (*name, value.as_str()));
    let settings: Vec<_> = options.chain([("store.objects.url", server.url())]).collect();
    a_large_file_is_stored_and_read(database, &settings).await;
    let objects = server.objects().await;
    assert!(
        objects.len() == 1 && objects[0].starts_with("pre/fix/default/"),
        "{objects:?}"
    );
}

async fn a_large_file_is_stored_and_read(database: TestDatabase, settings: &[(&str, &str)]) {
    let text = "A line that is not like the others.\n".repeat(6_000);
    let written = text.clone();
    let mock = MockModel::start(move |request| match tool_results(request).len() {
        0 => Reply::call("c1", "write_file", &json!({"path": "big.txt", "content": written})),
        1 => Reply::call("c2", "grep", &json!({"pattern": "like", "mode": "count"})),
        _ => Reply::text("done"),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, settings).await;
    app.put_agent("writer", json!({"model": "mock/m", "tools": ["write_file", "grep"]}))
        .await;
    let result = app.run_with(json!({"agent": "writer", "input": "go"})).await;
    assert_eq!(result["status"], "completed", "{result:#}");
    let session = result["session_id"].as_str().unwrap();
    assert_eq!(
        database
            .number("select count(*) from contents where encoding >= 64")
            .await,
        1
    );
    let path = format!("/v1/sessions/{session}/files/big.txt");
    let file = app.try_get(&path).await;
    assert_eq!(file.text(), text);
    let part = app.request(Method::GET, &path).header("range", "bytes=100000-100099");
    let part = read(part).await;
    assert_eq!(
        (part.status, &*part.text()),
        (StatusCode::PARTIAL_CONTENT, &text[100_000..=100_099])
    );
    let verified = app.get(&format!("/v1/sessions/{session}/verify")).await;
    assert_eq!(verified["valid"], true, "{verified:#}");
    app.finish().await;
}

//! The files of threads: read, and changed so that the thread moves and no turn is lost.

use futures_util::future::join_all;
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::test_app::run_path;

on_every_store! {
    files_of_a_thread_are_listed_and_read,
    a_change_moves_the_thread,
    changes_at_the_same_time_are_all_made,
    a_repeated_change_moves_the_thread_once,
    an_active_run_keeps_the_files_as_they_are,
    a_thread_without_a_session_has_no_files,
}

async fn change(service: &Service, path: &str, content: &str) -> Answer {
    let body = json!({"changes": [{"path": path, "content": content}]});
    service.post("/v1/threads/t/files", &body).await
}

async fn paths(service: &Service) -> Vec<Value> {
    let list = service.get("/v1/threads/t/files?recursive=true").await;
    column(&list["data"], "path").into_iter().cloned().collect()
}

async fn files_of_a_thread_are_listed_and_read(service: &Service) {
    service.run_with(json!({"thread": "t", "input": "hi"})).await;
    assert_eq!(paths(service).await, [] as [Value; 0]);
    change(service, "docs/notes.md", "# Notes\n").await.ok();
    assert_eq!(paths(service).await, ["docs", "docs/notes.md"]);
    let list = service.get("/v1/threads/t/files?path=docs&limit=1").await;
    assert_members!(list, {"data/0/path": "docs/notes.md", "data/0/size": 8, "next_cursor": null});
    let file = service.try_get("/v1/threads/t/files/docs/notes.md").await;
    assert_eq!(file.text(), "# Notes\n");
    assert_eq!(file.header("content-type"), "text/markdown; charset=utf-8");
    let again = service.request(Method::GET, "/v1/threads/t/files/docs/notes.md");
    let again = read(again.header(header::IF_NONE_MATCH, file.header("etag"))).await;
    assert_eq!(again.status, 304);
    let part = service.request(Method::GET, "/v1/threads/t/files/docs/notes.md");
    let part = read(part.header(header::RANGE, "bytes=2-6")).await;
    assert_eq!((part.status.as_u16(), part.text().as_str()), (206, "Notes"));
    service
        .try_get("/v1/threads/t/files/nothing")
        .await
        .assert_problem("file_not_found");
    for path in ["/v1/threads/nobody/files", "/v1/threads/nobody/files/notes.md"] {
        service.try_get(path).await.assert_problem("thread_not_found");
    }
}

async fn a_change_moves_the_thread(service: &Service) {
    let run = service.run_with(json!({"thread": "t", "input": "hi"})).await;
    let answer = change(service, "notes.txt", "one").await;
    assert_eq!(answer.status, 201);
    let child = answer.ok();
    assert_members!(child, {"parent_session_id": run["session_id"], "run_id": null, "thread": "t"});
    let thread = service.get("/v1/threads/t").await;
    assert_members!(thread, {"session_id": child["session_id"], "version": 2, "run_count": 1, "message_count": 2});
    let next = service.run_with(json!({"thread": "t", "input": "again"})).await;
    assert_eq!(next["base_session_id"], child["session_id"]);
    assert_eq!(paths(service).await, ["notes.txt"]);
    let sessions = service.get("/v1/sessions?thread=t").await;
    assert_eq!(
        column(&sessions["data"], "session_id"),
        [&next["session_id"], &child["session_id"], &run["session_id"]]
    );
    let nobody = json!({"changes": [{"path": "a", "content": "b"}]});
    service
        .post("/v1/threads/nobody/files", &nobody)
        .await
        .assert_problem("thread_not_found");
    // A change that is impossible moves nothing.
    let before = service.get("/v1/threads/t").await;
    let impossible = json!({"changes": [{"path": "new", "content": "x"}, {"path": "nothing", "delete": true}]});
    let answer = service.post("/v1/threads/t/files", &impossible).await;
    answer.assert_problem_at("invalid_field", "/changes/1/path");
    assert_eq!(service.get("/v1/threads/t").await, before);
}

async fn changes_at_the_same_time_are_all_made(service: &Service) {
    service.run_with(json!({"thread": "t", "input": "hi"})).await;
    let names: Vec<String> = (0..6).map(|number| format!("f{number}")).collect();
    let changing = names.iter().map(|name| change(service, name, name));
    for answer in join_all(changing).await {
        answer.ok();
    }
    assert_eq!(paths(service).await, names);
    assert_eq!(service.get("/v1/threads/t").await["version"], 7);
}

async fn a_repeated_change_moves_the_thread_once(service: &Service) {
    service.run_with(json!({"thread": "t", "input": "hi"})).await;
    let send = async || {
        let body = json!({"changes": [{"path": "notes.txt", "content": "one"}]});
        let request = service.request(Method::POST, "/v1/threads/t/files");
        read(with_json(request.header("idempotency-key", "k-1"), &body)).await
    };
    let first = send().await;
    assert_eq!(first.header("idempotency-replayed"), "");
    service.run_with(json!({"thread": "t", "input": "again"})).await;
    let thread = service.get("/v1/threads/t").await;
    let second = send().await;
    assert_eq!(second.header("idempotency-replayed"), "true");
    assert_eq!(second.ok()["session_id"], first.ok()["session_id"]);
    assert_eq!(service.get("/v1/threads/t").await, thread);
}

async fn an_active_run_keeps_the_files_as_they_are(service: &Service) {
    service.run_with(json!({"thread": "t", "input": "hi"})).await;
    change(service, "notes.txt", "one").await.ok();
    let body = json!({"thread": "t", "input": "hi", "model": "mock/gated", "mode": "async"});
    let run = service.post("/v1/runs", &body).await.json();
    service.gate.until_waiting(1).await;
    let answer = change(service, "late.txt", "two").await;
    answer.assert_problem("thread_busy");
    assert_eq!(answer.json()["run_id"], run["run_id"]);
    assert_eq!(paths(service).await, ["notes.txt"]);
    service.gate.open(1);
    while service.get(&run_path(&run, "?wait=30s")).await["status"] != "completed" {}
    change(service, "late.txt", "two").await.ok();
    assert_eq!(paths(service).await, ["late.txt", "notes.txt"]);
    assert_eq!(service.get("/v1/threads/t").await["message_count"], 4);
}

async fn a_thread_without_a_session_has_no_files(service: &Service) {
    service.post("/v1/threads", &json!({"name": "t"})).await.ok();
    for path in ["/v1/threads/t/files", "/v1/threads/t/files/notes.txt"] {
        service.try_get(path).await.assert_problem("session_not_found");
    }
    let answer = change(service, "notes.txt", "one").await;
    answer.assert_problem("session_not_found");
    assert_members!(service.get("/v1/threads/t").await, {"session_id": null, "version": 0});
}

//! The stream of changes: a tenant reads the ids of its runs, sessions and threads, on any replica.

use std::time::Duration;

use agent_runtime::http::openapi;
use agent_runtime::run::process;
use board::TenantChange;
use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::redis_server::shared_url;
use tokio::time::timeout;
use values::ids::{SessionId, UuidV7Source};
use values::tenant::TenantId;

use super::docs::validator;
use super::refused::assert_refused;
use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::changes::{Changes, PATIENCE};
use crate::support::members::assert_members;

on_every_store! {
    a_tenant_follows_its_runs_sessions_and_threads,
    a_queued_run_is_followed_and_so_is_its_cancellation,
}

async fn call(service: &Service, key: &str, method: Method, path: &str, body: Value) -> Answer {
    read(with_json(service.request(method, path).bearer_auth(key), &body)).await
}

fn removed() -> TenantChange {
    TenantChange::SessionRemoved {
        session_id: SessionId::generate(&UuidV7Source),
    }
}

async fn a_tenant_follows_its_runs_sessions_and_threads(service: &Service) {
    let (_, ours) = service.make_key("ours", &[Scope::Admin]).await;
    let (_, theirs) = service.make_key("theirs", &[Scope::Admin]).await;
    let (mut changes, mut others) = (
        Changes::open(service, &ours).await,
        Changes::open(service, &theirs).await,
    );
    let post = async |path: &str, body: Value| call(service, &ours, Method::POST, path, body).await.ok();
    let run = post("/v1/runs", json!({"input": "hi"})).await;
    let session = post("/v1/sessions", json!({})).await;
    let thread = json!({"session_id": session["session_id"]});
    call(service, &ours, Method::PUT, "/v1/threads/t", thread).await.ok();
    let title = json!({"title": "Hidden"});
    call(service, &ours, Method::PATCH, "/v1/threads/t", title).await.ok();
    let files = json!({"changes": [{"path": "hidden.txt", "content": "hidden"}]});
    let changed = post("/v1/threads/t/files", files).await;
    let thread = service.request(Method::DELETE, "/v1/threads/t").bearer_auth(&ours);
    assert_eq!(read(thread).await.status, 204);
    let path = format!("/v1/sessions/{}", changed["session_id"].as_str().unwrap());
    let removal = service.request(Method::DELETE, &path).bearer_auth(&ours);
    assert_eq!(read(removal).await.status, 204);

    let of_run = |status: &str, session: &Value| {
        json!({"type": "run.changed", "data": {
            "run_id": run["run_id"], "status": status, "session_id": session, "thread": null,
        }})
    };
    let of_session = |name: &str, session: &Value| json!({"type": name, "data": {"session_id": session["session_id"]}});
    let of_thread = |session: &Value| {
        json!({"type": "thread.changed", "data": {
            "thread": "t", "session_id": session["session_id"],
        }})
    };
    let description = serde_json::to_value(openapi()).unwrap();
    let described = validator(&description, "Change");
    for expected in [
        of_run("running", &Value::Null),
        of_run("completed", &run["session_id"]),
        of_session("session.published", &session),
        of_thread(&session),
        of_thread(&session),
        of_session("session.published", &changed),
        of_thread(&changed),
        json!({"type": "thread.removed", "data": {"thread": "t"}}),
        of_session("session.removed", &changed),
    ] {
        let event = changes.next().await.unwrap();
        assert_eq!(event, expected);
        assert!(described.is_valid(&event), "{event}");
    }
    // The other tenant has read none of these.
    let body = json!({"input": "hi"});
    let run = call(service, &theirs, Method::POST, "/v1/runs", body).await.ok();
    let event = others.next().await.unwrap();
    assert_members!(event, {"type": "run.changed", "data/run_id": run["run_id"], "data/status": "running"});

    let (_, writer) = service.make_key("ours", &[Scope::RunsWrite]).await;
    let request = |path: &str, key: &str| service.request(Method::GET, path).bearer_auth(key);
    read(request("/v1/changes", &writer))
        .await
        .assert_problem("missing_scope");
    assert_refused(request("/v1/changes?after=1", &ours), "unknown_parameter", "after", "").await;
}

async fn a_queued_run_is_followed_and_so_is_its_cancellation(service: &Service) {
    let (_, key) = service.make_key("acme", &[Scope::Admin]).await;
    let mut changes = Changes::open(service, &key).await;
    let body = json!({"input": "hi", "mode": "async", "thread": "t"});
    let run = call(service, &key, Method::POST, "/v1/runs", body).await.ok();
    let statuses = changes.statuses_until("completed").await;
    // A worker may begin the run before its acceptance is reported.
    assert!(statuses.contains(&json!("running")), "{statuses:?}");

    let body = json!({"input": "hi", "mode": "async", "model": "mock/gated", "thread": "t"});
    let gated = call(service, &key, Method::POST, "/v1/runs", body).await.ok();
    assert_ne!(gated["run_id"], run["run_id"]);
    changes.statuses_until("running").await;
    let path = format!("/v1/runs/{}/cancel", gated["run_id"].as_str().unwrap());
    call(service, &key, Method::POST, &path, json!({})).await.ok();
    let event = changes.next().await.unwrap();
    assert_members!(event, {
        "data/run_id": gated["run_id"], "data/status": "cancelled", "data/session_id": null, "data/thread": "t",
    });
}

#[tokio::test]
async fn a_reader_that_lags_is_dropped_and_counts_no_longer() {
    let service = Service::start_with(&[("limits.each_tenant.readers", "1")]).await;
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let mut changes = Changes::open(&service, &key).await;
    let request = service.request(Method::GET, "/v1/changes").bearer_auth(&key);
    read(request).await.assert_problem("too_many_readers");
    let tenant: TenantId = "acme".parse().unwrap();
    // The service runs on this thread, so that no reader reads meanwhile.
    for _ in 0..2_000 {
        service.app.runs.board.change_publish(&tenant, removed());
    }
    let reason = "the reader is too slow: changes are missing";
    let dropped = json!({"type": "stream.dropped", "data": {"reason": reason}});
    assert_eq!(changes.next().await, Some(dropped));
    assert_eq!(changes.next().await, None);
    drop(Changes::open(&service, &key).await);
    service.finish().await;
}

#[tokio::test]
async fn a_silent_stream_has_comments_and_ends_with_the_service() {
    let service = Service::start_with(&[("http.keep_alive_interval", "20ms")]).await;
    let mut response = service.request(Method::GET, "/v1/changes").send().await.unwrap();
    let mut text = String::new();
    while !text.contains("\n\n: keep-alive\n\n") {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    process::shut_down(&service.app.runs, Duration::ZERO).await;
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("event: stream.dropped\ndata: "), "{text}");
    assert!(last.contains("shutting down"), "{last}");
    service.finish().await;
}

#[tokio::test]
async fn a_replica_streams_the_changes_of_another() {
    let Some(url) = shared_url() else { return };
    let settings = [("board.url", url.as_str())];
    let here = Service::start_with(&settings).await;
    let there = Service::start_with(&settings).await;
    // Other tests use the same server.
    let tenant = format!("t-{}", SessionId::generate(&UuidV7Source));
    let (_, key) = here.make_key(&tenant, &[Scope::Admin]).await;
    let (_, reading) = there.make_key(&tenant, &[Scope::SessionsRead]).await;
    let run = async || {
        call(&here, &key, Method::POST, "/v1/runs", json!({"input": "hi"}))
            .await
            .ok()
    };
    // A replica that has just started may have to subscribe first, and then drops its readers.
    let followed = timeout(PATIENCE, async {
        loop {
            let mut changes = Changes::open(&there, &reading).await;
            let run = run().await;
            let first = timeout(Duration::from_secs(1), changes.next()).await;
            let Ok(Some(first)) = first else { continue };
            if first["data"]["run_id"] == run["run_id"] {
                return (changes, run, first);
            }
        }
    });
    let (mut changes, run, first) = followed.await.unwrap();
    assert_members!(first, {"data/run_id": run["run_id"], "data/status": "running", "data/session_id": null});
    let completed = changes.next().await.unwrap();
    assert_members!(completed, {
        "data/run_id": run["run_id"], "data/status": "completed", "data/session_id": run["session_id"],
    });
    drop(changes);
    here.finish().await;
    there.finish().await;
}

//! Requests that are sent again: the same run, the same session, and never another one under the
//! same key.

use std::sync::Arc;
use std::time::Duration;

use agent_runtime::retention::{SweepSettings, Sweeper};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use store::keys::Scope;
use store::open;
use store::retention::RetentionRules;
use test_support::databases::TestDatabase;
use test_support::wait::until;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::on_every_store;
use crate::support::answer::{read, with_json};
use crate::support::gated::{GatedApp, assert_without_gap, id, request};
use crate::support::members::assert_members;
use crate::support::test_app::sse_data;

on_every_store!(
    a_request_that_is_sent_again_is_answered_with_the_same_run,
    a_request_that_is_sent_again_while_its_run_works_waits_for_the_same,
    a_request_whose_secret_was_taken_away_is_answered_with_the_same_run,
    a_caller_that_was_cut_off_finds_its_run,
    a_run_that_allows_no_rival_is_none_of_its_own,
    a_key_belongs_to_one_request,
    keys_of_tenants_are_their_own,
    an_import_that_is_sent_again_makes_one_session,
    a_key_is_free_after_its_time,
    what_may_be_repeated_is_checked_for_being_the_same
);

const REPLAYED: &str = "idempotency-replayed";

async fn counts(database: &TestDatabase) -> (i64, i64) {
    (
        database.number("select count(*) from runs").await,
        database.number("select count(*) from sessions").await,
    )
}

async fn a_request_that_is_sent_again_is_answered_with_the_same_run(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    for (mode, key) in [("sync", "k-1"), ("async", "k-2")] {
        let body = request(mode, "hi", json!({}));
        let first = app.post_keyed("/v1/runs", key, &body).await;
        assert_eq!(first.header(REPLAYED), "", "{mode}");
        let ended = app.ended(&first.json()).await;
        let again = app.post_keyed("/v1/runs", key, &body).await;
        assert_eq!((again.status, again.header(REPLAYED)), (first.status, "true"), "{mode}");
        assert_eq!(again.header("location"), first.header("location"), "{mode}");
        let again = again.json();
        assert_members!(again, {"run_id": ended["run_id"], "session_id": ended["session_id"]}, "{mode}");
        assert_eq!(app.shown(&again).await, ended, "{mode}");
    }
    let body = request("stream", "hi", json!({}));
    let first = app.post_keyed("/v1/runs", "k-3", &body).await;
    let again = app.post_keyed("/v1/runs", "k-3", &body).await;
    assert_eq!((first.header(REPLAYED), again.header(REPLAYED)), ("", "true"));
    let (first, again) = (sse_data(&first.text()), sse_data(&again.text()));
    assert_without_gap(&first);
    assert_eq!(again, first);
    assert_eq!(counts(&database).await, (3, 3));
    assert_eq!(app.mock.asked(), 3);
    app.finish().await;
}

async fn a_request_that_is_sent_again_while_its_run_works_waits_for_the_same(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let body = request("sync", "wait", json!({}));
    let first = app.post_keyed("/v1/runs", "k", &body);
    let again = async {
        app.gate.until_waiting(1).await;
        let background = request("sync", "wait", json!({}));
        let post = app
            .request(Method::POST, "/v1/runs")
            .header("idempotency-key", "k")
            .header("prefer", "respond-async");
        // What the caller prefers is no part of the request.
        let seen = read(with_json(post, &background)).await;
        assert_eq!((seen.status, seen.header(REPLAYED)), (StatusCode::ACCEPTED, "true"));
        let again = app.post_keyed("/v1/runs", "k", &body);
        let opening = async { app.gate.open(1) };
        let (again, ()) = tokio::join!(again, opening);
        assert_eq!(again.header(REPLAYED), "true");
        let again = again.ok();
        assert_eq!(seen.json()["run_id"], again["run_id"]);
        again
    };
    let (first, again) = tokio::join!(first, again);
    assert_eq!(first.header(REPLAYED), "");
    assert_eq!(first.ok(), again);
    assert_eq!(again["status"], "completed");
    assert_eq!(counts(&database).await, (1, 1));
    assert_eq!(app.mock.asked(), 1);
    app.finish().await;
}

async fn a_request_whose_secret_was_taken_away_is_answered_with_the_same_run(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n").unwrap();
    let webhook = json!({"url": "https://example.org/", "events": ["run.failed"], "secret": "main"});
    let body = request("sync", "hi", json!({"webhook": webhook}));
    let settings = [
        ("webhooks.secrets.main.file", file.to_str().unwrap()),
        ("webhooks.secrets.main.tenants", "[\"*\"]"),
    ];
    let app = GatedApp::start(&database, &settings).await;
    let first = app.post_keyed("/v1/runs", "k", &body).await.ok();
    app.finish().await;

    let app = GatedApp::start(&database, &[]).await;
    let again = app.post_keyed("/v1/runs", "k", &body).await;
    assert_eq!((again.status, again.header(REPLAYED)), (StatusCode::OK, "true"));
    assert_eq!(again.json()["run_id"], first["run_id"]);
    app.post_keyed("/v1/runs", "new", &body)
        .await
        .assert_problem("invalid_field");
    app.finish().await;
}

async fn a_caller_that_was_cut_off_finds_its_run(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let body = request("sync", "wait", json!({}));
    let text = body.to_string();
    let mut connection = TcpStream::connect(app.address).await.unwrap();
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nidempotency-key: k\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    connection.write_all(format!("{head}{text}").as_bytes()).await.unwrap();
    app.gate.until_waiting(1).await;
    drop(connection);
    let again = app.post_keyed("/v1/runs", "k", &body);
    let opening = async { app.gate.open(1) };
    let (again, ()) = tokio::join!(again, opening);
    assert_eq!(again.header(REPLAYED), "true");
    assert_eq!(again.ok()["status"], "completed");
    assert_eq!(counts(&database).await, (1, 1));
    app.finish().await;
}

async fn a_run_that_allows_no_rival_is_none_of_its_own(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let base = app.run(None, "root").await;
    let alone = json!({"base_session_id": base["session_id"], "conflict": "reject"});
    let body = request("sync", "hi", alone);
    let first = app.post_keyed("/v1/runs", "k", &body).await.ok();
    let again = app.post_keyed("/v1/runs", "k", &body).await;
    assert_eq!(again.header(REPLAYED), "true", "{}", again.text());
    assert_eq!(again.ok(), first);
    let rival = app.post_keyed("/v1/runs", "k-2", &body).await;
    rival.assert_problem("base_session_conflict");
    assert_eq!(rival.json()["run_id"], first["run_id"]);
    app.finish().await;
}

async fn a_key_belongs_to_one_request(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let body = request("sync", "hi", json!({}));
    let first = app.post_keyed("/v1/runs", "k", &body).await.ok();
    for other in [
        request("sync", "ho", json!({})),
        request("async", "hi", json!({})),
        request("sync", "hi", json!({"metadata": {}})),
    ] {
        let refused = app.post_keyed("/v1/runs", "k", &other).await;
        refused.assert_problem("idempotency_key_reused");
    }
    let import = app.post_keyed("/v1/sessions", "k", &json!({})).await;
    import.assert_problem("idempotency_key_reused");
    assert_eq!(counts(&database).await, (1, 1));
    let replayed = app.post_keyed("/v1/runs", "k", &body).await.ok();
    assert_eq!(replayed, first);
    // What was refused has no key: it may be mended and sent again with it.
    let bad = json!({"agent": "nobody", "input": "hi"});
    app.post_keyed("/v1/runs", "k-2", &bad)
        .await
        .assert_problem("agent_not_found");
    assert_eq!(
        app.post_keyed("/v1/runs", "k-2", &body).await.ok()["status"],
        "completed"
    );
    app.finish().await;
}

async fn keys_of_tenants_are_their_own(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let mut runs = Vec::new();
    for tenant in ["ours", "theirs"] {
        let (_, secret) = app.make_key(tenant, &[Scope::Admin]).await;
        let post = |path: &str, body: Value| {
            let request = app.request(Method::POST, path);
            let request = request.header(header::AUTHORIZATION, format!("Bearer {secret}"));
            read(with_json(request.header("idempotency-key", "k"), &body))
        };
        let body = json!({"model": "mock/m", "input": tenant});
        let run = post("/v1/runs", body.clone()).await;
        assert_eq!(run.header(REPLAYED), "", "{tenant}");
        let run = run.ok();
        assert_eq!(post("/v1/runs", body).await.ok(), run);
        runs.push(run);
    }
    assert_ne!(runs[0]["run_id"], runs[1]["run_id"]);
    app.finish().await;
}

async fn an_import_that_is_sent_again_makes_one_session(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let body = json!({"message_history_state": {"messages": [{"role": "user", "content": "hi"}]}});
    let post = || app.post_keyed("/v1/sessions", "k", &body);
    let at_once = tokio::join!(post(), post(), post());
    let answers = [at_once.0, at_once.1, at_once.2, post().await];
    let made: Vec<Value> = answers.iter().map(crate::support::answer::Answer::json).collect();
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        assert_eq!(answer.header("location"), answers[0].header("location"));
        assert_eq!(answer.header("etag"), answers[0].header("etag"));
    }
    assert!(made.iter().all(|session| *session == made[0]), "{made:#?}");
    let firsts = answers.iter().filter(|answer| answer.header(REPLAYED).is_empty());
    assert_eq!(firsts.count(), 1);
    assert_eq!(counts(&database).await, (0, 1));
    app.post_keyed("/v1/sessions", "k", &json!({}))
        .await
        .assert_problem("idempotency_key_reused");
    // Without a key each request makes a session.
    app.post("/v1/sessions", &body).await.ok();
    assert_eq!(counts(&database).await, (0, 2));
    app.finish().await;
}

async fn a_key_is_free_after_its_time(database: TestDatabase) {
    let app = GatedApp::start(&database, &[("idempotency.retention", "1s")]).await;
    let import = json!({});
    let first = app.post_keyed("/v1/sessions", "k", &import).await.ok();
    until("the key of a session is kept", async || {
        app.post_keyed("/v1/sessions", "k", &import).await.ok()["session_id"] != first["session_id"]
    })
    .await;
    let body = request("sync", "hi", json!({}));
    let first = app.post_keyed("/v1/runs", "k-2", &body).await.ok();
    until("the key of a run is kept", async || {
        app.post_keyed("/v1/runs", "k-2", &body).await.ok()["run_id"] != first["run_id"]
    })
    .await;
    app.finish().await;
}

async fn what_may_be_repeated_is_checked_for_being_the_same(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    let path = |action: &str| format!("/v1/runs/{}/{action}", id(&run));
    let message = json!({"id": "m-1", "input": "mind this"});
    for _ in 0..2 {
        let steered = app.post_keyed(&path("steer"), "k-1", &message).await;
        assert_eq!(steered.json(), json!({"id": "m-1", "status": "received"}));
    }
    let other = json!({"id": "m-2", "input": "mind this"});
    app.post_keyed(&path("steer"), "k-1", &other)
        .await
        .assert_problem("idempotency_key_reused");
    let control = async |action: &str| {
        let request = app.request(Method::POST, &path(action));
        read(request.header("idempotency-key", "k-2")).await
    };
    assert_eq!(control("stop").await.status, StatusCode::ACCEPTED);
    control("cancel").await.assert_problem("idempotency_key_reused");
    assert_eq!(app.ended(&run).await["status"], "stopped");
    assert_eq!(control("stop").await.status, StatusCode::OK);
    app.finish().await;
}

/// Puts the clock of a database that far back, so that those of all machines are ahead of it.
const LATE: &str = "create function public.clock_timestamp() returns timestamptz language sql volatile as
        'select pg_catalog.clock_timestamp() - interval ''25 hours''';
    do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_live_by_the_time_of_the_database() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    database.execute(LATE).await.unwrap();
    let app = GatedApp::start(&database, &[("idempotency.retention", "24h")]).await;
    let run = request("async", "hi", json!({}));
    let session = json!({});
    let first_run = app.post_keyed("/v1/runs", "k", &run).await.json();
    let first_session = app.post_keyed("/v1/sessions", "k-2", &session).await.ok();
    app.ended(&first_run).await;
    app.finish().await;

    // A process that takes no runs from the queue.
    let front = GatedApp::start(&database, &[("queue.role", "api")]).await;
    let again = front.post_keyed("/v1/runs", "k", &run).await;
    assert_eq!(again.header(REPLAYED), "true");
    assert_eq!(again.json()["run_id"], first_run["run_id"]);
    let again = front.post_keyed("/v1/sessions", "k-2", &session).await.ok();
    assert_eq!(again["session_id"], first_session["session_id"]);
    front.finish().await;

    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    let hour = Duration::from_hours(1);
    let rules = RetentionRules {
        max_age: None,
        min_age: hour,
        keep_last: None,
        events: hour,
        deliveries: hour,
        unreferenced_contents: hour,
    };
    let settings = SweepSettings {
        interval: hour,
        batch: 100,
    };
    let sweeper = Sweeper::new(Arc::clone(&store), rules, settings);
    assert_eq!(sweeper.plan().await.unwrap().idempotency_keys, 0);
    assert_eq!(sweeper.sweep().await.unwrap().idempotency_keys, 0);
    let expire = "update idempotency_keys set expires_at = expires_at - interval '24 hours'";
    database.execute(expire).await.unwrap();
    assert_eq!(sweeper.sweep().await.unwrap().idempotency_keys, 2);
    store.close().await;
}

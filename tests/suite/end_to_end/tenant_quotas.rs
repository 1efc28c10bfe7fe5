//! Quotas of tenants: runs, readers and requests beyond them are refused, and other tenants notice
//! nothing.

use std::time::Instant;

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use store::keys::Scope;
use test_support::databases::{Engine, TestDatabase};
use test_support::redis_server::PrivateServer;
use test_support::wait::until;

use super::on_every_store;
use crate::support::answer::{Answer, read, with_json};
use crate::support::gated::{GatedApp, id, request};
use crate::support::members::assert_members;
use crate::support::test_app::{TestApp, run_path};

on_every_store!(
    a_tenant_has_so_many_light_runs_at_work,
    a_run_that_its_agent_queues_needs_no_light_slot,
    a_tenant_has_so_many_runs_in_the_queue,
    a_tenant_has_so_many_readers,
    a_tenant_makes_so_many_requests,
    replicas_with_a_redis_count_requests_together,
);

async fn get_as(app: &TestApp, secret: &str, path: &str) -> Answer {
    read(app.request(Method::GET, path).bearer_auth(secret)).await
}

async fn post_as(app: &TestApp, secret: &str, body: &serde_json::Value) -> Answer {
    read(with_json(
        app.request(Method::POST, "/v1/runs").bearer_auth(secret),
        body,
    ))
    .await
}

/// Asks for a run that waits, always the same one, and waits for it or prefers not to.
async fn keyed(app: &TestApp, secret: &str, waits: bool) -> Answer {
    let post = app.request(Method::POST, "/v1/runs").bearer_auth(secret);
    let mut keyed = post.header("idempotency-key", "the-same");
    if !waits {
        keyed = keyed.header("prefer", "respond-async");
    }
    read(with_json(keyed, &request("sync", "wait", json!({})))).await
}

/// Makes a key for the tenant of what is there already, and one for another tenant with an agent of
/// its own.
async fn two_tenants(app: &TestApp) -> (String, String) {
    let (_, own) = app.make_key("default", &[Scope::Admin]).await;
    let (_, other) = app.make_key("other", &[Scope::Admin]).await;
    let put = app.request(Method::PUT, "/v1/agents/echo").bearer_auth(&other);
    read(with_json(put, &json!({"model": "mock/m"}))).await.ok();
    (own, other)
}

fn assert_refused(answer: &Answer, code: &str) {
    answer.assert_problem(code);
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.header("retry-after").parse::<u32>().unwrap() >= 1);
}

async fn a_tenant_has_so_many_light_runs_at_work(database: TestDatabase) {
    let app = GatedApp::start(&database, &[("limits.each_tenant.light_runs", "2")]).await;
    let (own, other) = two_tenants(&app).await;
    let held = request("sync", "wait", json!({}));
    let running = join_all((0..2).map(|_| post_as(&app, &own, &held)));
    let short = request("sync", "hi", json!({}));
    let meanwhile = async {
        app.gate.until_waiting(2).await;
        assert_refused(&post_as(&app, &own, &short).await, "too_many_runs");
        assert_eq!(post_as(&app, &other, &short).await.status, StatusCode::OK);
        // One in the queue is no light run.
        let queued = request("async", "hi", json!({}));
        assert_eq!(post_as(&app, &own, &queued).await.status, StatusCode::ACCEPTED);
        app.gate.open(2);
    };
    let (answers, ()) = tokio::join!(running, meanwhile);
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK));
    assert_eq!(post_as(&app, &own, &short).await.status, StatusCode::OK);
    app.finish().await;
}

async fn a_run_that_its_agent_queues_needs_no_light_slot(database: TestDatabase) {
    let settings = [("limits.each_tenant.light_runs", "1"), ("runs.max_concurrent", "1")];
    let app = GatedApp::start(&database, &settings).await;
    app.put_agent("durable", json!({"model": "mock/m", "durability": "step"}))
        .await;
    let held = request("sync", "wait", json!({}));
    let running = app.post("/v1/runs", &held);
    let meanwhile = async {
        app.gate.until_waiting(1).await;
        let light = app.post("/v1/runs", &request("sync", "hi", json!({}))).await;
        assert_refused(&light, "too_many_runs");
        // Nothing but the agent says that the run is queued.
        let durable = request("sync", "hi", json!({"agent": "durable"}));
        let run = app.post("/v1/runs", &durable).await.ok();
        assert_members!(run, {"status": "completed", "durability": "step"});
        app.gate.open(1);
    };
    let (answer, ()) = tokio::join!(running, meanwhile);
    assert_eq!(answer.status, StatusCode::OK);
    app.finish().await;
}

/// Each names an agent of its own, which no cache has, so planning it waits for the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_without_a_slot_are_planned_a_few_at_a_time() {
    let Some(database) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let settings = [("runs.max_concurrent", "1"), ("store.max_connections", "40")];
    let app = GatedApp::start(&database, &settings).await;
    let held = request("sync", "wait", json!({}));
    let mut rival = PgConnection::connect(database.url()).await.unwrap();
    let meanwhile = async {
        app.gate.until_waiting(1).await;
        let mut locking = rival.begin().await.unwrap();
        sqlx::raw_sql("lock table agents").execute(&mut *locking).await.unwrap();
        let body = |number| request("sync", "hi", json!({"agent": format!("agent-{number}")}));
        let bodies: Vec<_> = (0..20).map(body).collect();
        let refused = join_all(bodies.iter().map(|body| app.post("/v1/runs", body)));
        let watching = async {
            let waiting = "select count(*) from pg_stat_activity where datname = current_database()
                and wait_event_type = 'Lock' and query like '%from agents a%'";
            let planned = async || database.number(waiting).await;
            // Half of all turns: a tenant leaves the other half to others.
            until("nothing is planned", async || planned().await >= 4).await;
            for _ in 0..20 {
                assert!(planned().await <= 4);
            }
            locking.rollback().await.unwrap();
        };
        let (refused, ()) = tokio::join!(refused, watching);
        for answer in &refused {
            answer.assert_problem("agent_not_found");
        }
        app.gate.open(1);
    };
    let (answer, ()) = tokio::join!(app.post("/v1/runs", &held), meanwhile);
    assert_eq!(answer.status, StatusCode::OK);
    app.finish().await;
}

async fn a_tenant_has_so_many_runs_in_the_queue(database: TestDatabase) {
    let settings = [("queue.role", "api"), ("limits.tenants.default.queued_runs", "2")];
    let app = GatedApp::start(&database, &settings).await;
    let (own, other) = two_tenants(&app).await;
    let queued = request("async", "hi", json!({}));
    let answers = join_all((0..6).map(|_| post_as(&app, &own, &queued))).await;
    let (accepted, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == StatusCode::ACCEPTED);
    assert_eq!((accepted.len(), refused.len()), (2, 4));
    for answer in refused {
        assert_refused(answer, "queue_full");
    }
    for _ in 0..3 {
        assert_eq!(post_as(&app, &other, &queued).await.status, StatusCode::ACCEPTED);
    }
    app.finish().await;
}

async fn a_tenant_has_so_many_readers(database: TestDatabase) {
    let app = GatedApp::start(&database, &[("limits.each_tenant.readers", "1")]).await;
    let (own, _) = two_tenants(&app).await;
    let run = keyed(&app, &own, false).await.json();
    app.gate.until_waiting(1).await;
    let path = run_path(&run, "");
    let (events, wait) = (format!("{path}/events"), format!("{path}?wait=1ms"));
    let encoded = format!("{path}?%77ait=1ms");
    let follow = || app.request(Method::GET, &events).bearer_auth(&own).send();
    let reader = follow().await.unwrap();
    assert_eq!(reader.status(), StatusCode::OK);
    for path in [&events, &wait, &encoded] {
        assert_refused(&get_as(&app, &own, path).await, "too_many_readers");
    }
    assert_refused(&keyed(&app, &own, true).await, "too_many_readers");
    assert_eq!(id(&keyed(&app, &own, false).await.json()), id(&run));
    assert_eq!(get_as(&app, &own, &path).await.status, StatusCode::OK);
    drop(reader);
    until("the reader is gone", async || {
        get_as(&app, &own, &wait).await.status == StatusCode::OK
    })
    .await;
    // A wait that is over is none any more.
    let reader = follow().await.unwrap();
    assert_eq!(reader.status(), StatusCode::OK);
    app.gate.open(1);
    assert!(reader.text().await.unwrap().contains("run.completed"));
    assert_eq!(get_as(&app, &own, &wait).await.status, StatusCode::OK);
    // Nor does a caller wait who repeats the request for a run that has ended.
    let next = post_as(&app, &own, &request("async", "wait", json!({}))).await.json();
    app.gate.until_waiting(1).await;
    let next = run_path(&next, "/events");
    let reader = app.request(Method::GET, &next).bearer_auth(&own).send().await.unwrap();
    assert_refused(&get_as(&app, &own, &events).await, "too_many_readers");
    assert_eq!(keyed(&app, &own, true).await.json()["status"], "completed");
    drop(reader);
    app.gate.open(1);
    app.finish().await;
}

/// Counts the requests that are allowed of many at once.
async fn allowed_of(app: &TestApp, secret: &str, requests: usize) -> (usize, Vec<Answer>) {
    let answers = join_all((0..requests).map(|_| get_as(app, secret, "/v1/runs"))).await;
    let (allowed, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == StatusCode::OK);
    (allowed.len(), refused)
}

async fn a_tenant_makes_so_many_requests(database: TestDatabase) {
    let settings = [
        ("limits.tenants.default.requests_per_second", "1"),
        ("limits.tenants.default.request_burst", "5"),
        ("limits.tenants.other.requests_per_second", "1000"),
    ];
    let app = GatedApp::start(&database, &settings).await;
    let (own, other) = two_tenants(&app).await;
    let begun = Instant::now();
    let first = get_as(&app, &other, "/v1/runs").await;
    assert_eq!(first.header("ratelimit-policy"), r#""requests";q=1000;w=1"#);
    assert_eq!(first.header("ratelimit"), r#""requests";r=999;t=1"#);
    assert_eq!(first.header("x-ratelimit-limit-requests"), "");
    // Clients of OpenAI know the same figures by other names.
    let listed = get_as(&app, &other, "/v1/models").await;
    let header = |name: &str| listed.header(&format!("x-ratelimit-{name}-requests")).to_owned();
    assert_eq!((header("limit").as_str(), header("reset").as_str()), ("1000", "1s"));
    assert!(
        ["998", "999"].contains(&header("remaining").as_str()),
        "{}",
        header("remaining")
    );
    let (allowed, refused) = allowed_of(&app, &own, 30).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    assert!((1..=5 + seconds).contains(&allowed), "{allowed} in {seconds}");
    for answer in &refused {
        assert_refused(answer, "rate_limited");
        assert_eq!(answer.header("ratelimit-policy"), r#""requests";q=5;w=5"#);
        assert!(answer.header("ratelimit").starts_with(r#""requests";r=0;t="#));
    }
    let (allowed, refused) = allowed_of(&app, &other, 30).await;
    assert_eq!((allowed, refused.len()), (30, 0));
    // Probes and the documentation are nobody's.
    for path in ["/healthz", "/openapi.json", "/docs/problems"] {
        assert_eq!(app.try_get(path).await.status, StatusCode::OK, "{path}");
    }
    app.finish().await;
}

async fn replicas_with_a_redis_count_requests_together(database: TestDatabase) {
    let Some(mut redis) = PrivateServer::start() else {
        return;
    };
    let url = redis.url();
    let settings = [
        ("board.url", url.as_str()),
        ("limits.tenants.default.requests_per_second", "1"),
        ("limits.tenants.default.request_burst", "20"),
    ];
    // The agent of the fixture is put by the tenant that is limited.
    let here = GatedApp::start(&database, &settings).await;
    let there = GatedApp::start(&database, &settings).await;
    let (_, secret) = here.make_key("default", &[Scope::Admin]).await;
    let begun = Instant::now();
    let ((one, _), (two, _)) = tokio::join!(allowed_of(&here, &secret, 25), allowed_of(&there, &secret, 25));
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 2;
    assert!(
        (1..=20 + seconds).contains(&(one + two)),
        "{one} and {two} in {seconds}"
    );

    redis.stop();
    // Each counts by itself, and none is stopped by the outage.
    until("requests are counted here", async || {
        get_as(&here, &secret, "/v1/runs").await.status == StatusCode::OK
    })
    .await;
    let (allowed, refused) = allowed_of(&here, &secret, 60).await;
    assert!(allowed > 0 && !refused.is_empty(), "{allowed} and {}", refused.len());
    for answer in &refused {
        assert_refused(answer, "rate_limited");
    }
    here.finish().await;
    there.finish().await;
}

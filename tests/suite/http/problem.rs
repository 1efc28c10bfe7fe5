//! A store that is away, damaged or slow, and a panic: each is a problem without internals.

use futures_util::future::join_all;
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::internals::INTERNALS;
use test_support::wait::until;

use super::service::Service;
use crate::support::answer::Answer;
use crate::support::test_app::session_path;

on_every_store! {
    a_damaged_store_is_a_problem_without_internals,
    a_closed_store_is_a_problem_without_internals,
}
on_every_store! {
    a_loop_that_panics_makes_the_process_unready,
}
on_every_store! {
    with &[("store.max_connections", "2")];
    probes_of_readiness_share_one_check,
}
on_every_store! {
    with &[("store.acquire_timeout", "3s")];
    a_store_that_is_away_is_a_problem_without_internals,
}
on_every_store! {
    a_full_store_is_not_ready_and_says_so,
}
on_every_store! {
    with &[("http.request_timeout", "2s")];
    an_answer_that_takes_too_long_is_a_problem,
}

/// Paths that read the store, each from another table.
const READS: [&str; 5] = [
    "/v1/runs",
    "/v1/sessions",
    "/v1/agents",
    "/v1/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11",
    "/readyz",
];

/// The tables that those paths read.
const TABLES: [&str; 4] = ["runs", "sessions", "agents", "schema_migrations"];

async fn assert_all_fail(service: &Service, paths: &[&str], code: &str) {
    // The result of a readiness check holds for a second.
    until("the service stays ready", async || {
        service.try_get("/readyz").await.status != 200
    })
    .await;
    for path in paths {
        let answer = service.try_get(path).await;
        assert_eq!(answer.code(), code, "{path}: {}", answer.text());
        answer.assert_problem(code);
        assert!(!format!("{answer:?}").contains(INTERNALS));
        assert_eq!(answer.header("retry-after").is_empty(), code == "internal_error");
    }
    assert_eq!(service.get("/healthz").await, json!({"status": "ok"}));
}

async fn a_loop_that_panics_makes_the_process_unready(service: &Service) {
    let supervisor = service.app.runs.supervisor.clone();
    let panicking = tokio::spawn(supervisor.keep("test", async || panic!("a test")));
    until("the panic goes unnoticed", async || {
        service.try_get("/readyz").await.status == 503
    })
    .await;
    let answer = service.try_get("/readyz").await;
    answer.assert_problem("not_ready");
    assert!(answer.text().contains("restarted: test"), "{}", answer.text());
    panicking.abort();
}

async fn assert_works(service: &Service) {
    // All who ask within a second share one look. A request whose connection takes too long is
    // refused even now.
    let agent = json!({"model": "mock/echo"});
    until("the service does not recover", async || {
        service.try_get("/readyz").await.status == 200 && service.put("/v1/agents/new", &agent).await.status == 200
    })
    .await;
    assert_eq!(service.get("/readyz").await, json!({"status": "ready"}));
}

async fn a_damaged_store_is_a_problem_without_internals(service: &Service) {
    service.database.break_tables(&TABLES).await;
    assert_all_fail(service, &READS, "internal_error").await;
    service.database.mend_tables(&TABLES).await;
    assert_works(service).await;
}

async fn a_store_that_is_away_is_a_problem_without_internals(service: &Service) {
    let outage = service.database.begin_outage().await;
    // SQLite's readers do not need the lock.
    if service.database.engine == Engine::Postgres {
        assert_all_fail(service, &READS, "store_unavailable").await;
    }
    let agent = json!({"model": "mock/echo"});
    let answer = service.put("/v1/agents/new", &agent).await;
    answer.assert_problem("store_unavailable");
    assert_ne!(answer.header("retry-after"), "");
    outage.end().await;
    assert_works(service).await;
}

async fn a_full_store_is_not_ready_and_says_so(service: &Service) {
    let reason = "the store can't be written now: its disk is full";
    let says_so = |answer: &Answer| {
        answer.assert_problem("store_unavailable");
        assert_eq!(answer.json()["detail"], reason);
        assert_ne!(answer.header("retry-after"), "");
    };
    let run = json!({"agent": "demo", "input": "hi"});
    let root = service.post("/v1/runs", &run).await.ok();
    service.database.count_writes().await;
    service.database.make_room(Some(0)).await;
    // Nobody else writes.
    until("the service stays ready", async || {
        service.try_get("/readyz").await.status == 503
    })
    .await;
    says_so(&service.try_get("/readyz").await);
    says_so(&service.put("/v1/agents/new", &json!({"model": "mock/echo"})).await);
    let mut queued = run.clone();
    queued["mode"] = json!("async");
    says_so(&service.post("/v1/runs", &queued).await);
    let lost = service.post("/v1/runs", &run).await.ok();
    assert_eq!(lost["error"]["code"], "store_unavailable", "{lost:#}");
    assert!(
        lost["error"]["message"].as_str().unwrap().starts_with(reason),
        "{lost:#}"
    );
    assert_eq!(
        service.get(&session_path(&root, "")).await["session_id"],
        root["session_id"]
    );
    service.database.make_room(None).await;
    assert_works(service).await;
    until("the record of the run is not stored", async || {
        service
            .database
            .number("select count(*) from runs where status = 'failed'")
            .await
            == 1
    })
    .await;
    let next = service.post("/v1/runs", &run).await.ok();
    assert_eq!(next["status"], "completed", "{next:#}");
}

/// The other reasons for which PostgreSQL takes no writes, as its own errors.
#[tokio::test]
async fn a_store_that_takes_no_writes_says_why() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let service = Service::start_on(database, &[]).await;
    for (state, reason) in [
        ("53200", "the store has no memory or no connection left"),
        ("58030", "the store can't be used now: its disk reports errors"),
        ("25006", "the store can't be written now: it is read-only"),
        ("57P03", "the store can't be reached"),
    ] {
        let refuse = format!(
            "create function refuse() returns trigger language plpgsql as \
             $$ begin raise exception '{INTERNALS}' using errcode = '{state}'; end $$; \
             create trigger refuse before insert on write_checks for each row execute function refuse(); \
             create trigger refuse before insert on agents for each row execute function refuse()"
        );
        service.database.execute(&refuse).await.unwrap();
        let agent = json!({"model": "mock/echo", "system_prompt": state});
        until("the service stays ready", async || {
            service.try_get("/readyz").await.status == 503
        })
        .await;
        for answer in [
            service.try_get("/readyz").await,
            service.put("/v1/agents/new", &agent).await,
        ] {
            answer.assert_problem("store_unavailable");
            assert_eq!(answer.json()["detail"], reason, "{state}");
        }
        service
            .database
            .execute("drop function refuse() cascade")
            .await
            .unwrap();
        assert_works(&service).await;
    }
    assert_eq!(service.database.number("select count(*) from write_checks").await, 0);
    service.finish().await;
}

async fn a_closed_store_is_a_problem_without_internals(service: &Service) {
    service.app.runs.store.close().await;
    assert_all_fail(service, &READS, "store_unavailable").await;
}

async fn probes_of_readiness_share_one_check(service: &Service) {
    let stall = service.database.begin_stall("schema_migrations").await;
    let asked = join_all((0..20).map(|_| service.try_get("/readyz")));
    let others = async {
        // Had each of them a connection of the store, there would be none left.
        for _ in 0..10 {
            service.get("/v1/sessions").await;
        }
        stall.end().await;
    };
    let (answers, ()) = tokio::join!(asked, others);
    for answer in answers {
        assert_eq!(answer.ok(), json!({"status": "ready"}));
    }
}

async fn an_answer_that_takes_too_long_is_a_problem(service: &Service) {
    service.get("/v1/runs").await;
    let stall = service.database.begin_stall("agents").await;
    let mut answers = vec![service.put("/v1/agents/new", &json!({"model": "mock/echo"})).await];
    // SQLite's readers wait for nobody.
    if service.database.engine == Engine::Postgres {
        answers.push(service.try_get("/v1/agents").await);
    }
    for answer in answers {
        answer.assert_problem("answer_timeout");
        assert_eq!(answer.header("retry-after"), "5");
    }
    stall.end().await;
}

#[tokio::test]
async fn a_panic_is_a_problem_without_internals() {
    let service = Service::start().await;
    service.clock.set_panics(true);
    let thread = json!({"session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"});
    let answer = service.put("/v1/threads/t", &thread).await;
    answer.assert_problem("internal_error");
    service.clock.set_panics(false);
    service.get("/v1/runs").await;
    service.finish().await;
}

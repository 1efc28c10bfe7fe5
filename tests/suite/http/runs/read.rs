//! Runs are shown, listed and waited for, while they work and afterwards.

use std::time::Duration;

use board::{Board, RedisSettings};
use chrono::Utc;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use tasks::supervision::Supervisor;
use test_support::live_run::new_run;
use test_support::redis_server::PrivateServer;
use test_support::wait::until;
use tokio::task::JoinHandle;
use uuid::Uuid;
use values::ids::{RunId, UuidV7Source};
use values::tenant::TenantId;

use crate::http::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::members::{assert_members, column};
use crate::support::test_app::{run_path, session_path};

on_every_store! {
    a_run_is_seen_while_it_works_and_its_session_is_not,
    runs_are_listed_newest_first_in_pages_and_filtered,
    steps_are_listed_in_their_order_in_pages,
    steps_of_a_run_at_work_are_read_from_the_end,
    metadata_are_compared_in_one_way_while_a_run_works_and_afterwards,
    runs_at_work_are_chosen_and_paged_as_those_that_have_ended,
}

async fn a_run_is_seen_while_it_works_and_its_session_is_not(service: &Service) {
    let body = json!({"input": "hi", "model": "mock/gated"});
    let running = service.post("/v1/runs", &body);
    let watching = async {
        service.gate.until_waiting(1).await;
        let list = service.get("/v1/runs?status=running").await;
        let run = list["data"][0].clone();
        let shown = service.get(&run_path(&run, "")).await;
        assert_members!(shown, {"status": "running", "output_text": ""});
        let session = session_path(&run, "");
        for path in [
            session.clone(),
            format!("{session}/messages"),
            format!("{session}/children"),
        ] {
            let answer = service.try_get(&path).await;
            answer.assert_problem("session_not_committed");
            let problem = answer.json();
            assert_members!(problem, {"run_id": run["run_id"], "run_status": "running"});
        }
        let continued = json!({"input": "hi", "base_session_id": run["session_id"]});
        service
            .post("/v1/runs", &continued)
            .await
            .assert_problem("session_not_committed");
        service.gate.open(1);
        session
    };
    let (answer, session) = tokio::join!(running, watching);
    assert_eq!(answer.ok()["status"], "completed");
    service.get(&session).await;
}

async fn runs_are_listed_newest_first_in_pages_and_filtered(service: &Service) {
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(service.run_with(json!({"input": n.to_string()})).await["run_id"].clone());
    }
    ids.reverse();
    for statuses in ["completed", "failed,completed,completed"] {
        let path = format!("/v1/runs?limit=2&agent=demo&status={statuses}");
        let listed = service.rows(&path).await;
        assert!(listed.iter().all(|run| run.get("output").is_none()));
        assert_eq!(json!(column(&json!(listed), "run_id")), json!(ids), "{statuses}");
    }
    for none in [
        "status=failed",
        "status=failed,cancelled,queued",
        "agent=other",
        "base_session_id=0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11",
    ] {
        assert_eq!(
            service.get(&format!("/v1/runs?{none}")).await,
            json!({"data": [], "next_cursor": null}),
            "{none}"
        );
    }
    assert_eq!(service.rows("/v1/runs?limit=200").await.len(), 5);
}

async fn steps_are_listed_in_their_order_in_pages(service: &Service) {
    let call = json!({"tool_calls": [{"name": "calculator", "arguments": {"expression": "1+1"}}]});
    let script = json!([call, call, call, call, {"text": "done"}]);
    let agent = json!({"model": "mock/echo", "driver": "scripted", "tools": ["calculator"], "script": script});
    service.put_agent("stepping", agent).await;
    let run = service.run_with(json!({"agent": "stepping", "input": "hi"})).await;
    let path = run_path(&run, "/steps");
    let whole = service.get(&path).await;
    assert_eq!(whole["data"].as_array().unwrap().len(), 5);
    assert_members!(whole, {"next_cursor": null, "from": 0, "total": 5}, "without a limit all stand on one page");

    let pages = service.pages(&format!("{path}?limit=2")).await;
    let pages: Vec<_> = pages.iter().map(|page| page["data"].as_array().unwrap()).collect();
    let rows = whole["data"].as_array().unwrap();
    assert_eq!(pages, [&rows[..2], &rows[2..4], &rows[4..]]);
    let full = service.get(&format!("{path}?limit=5")).await;
    assert_eq!(full, whole, "a full page that is the last has no cursor");
    let last = service.get(&format!("{path}?from=3")).await;
    assert_members!(last, {"data": rows[3..], "next_cursor": null, "from": 3, "total": 5});
    let middle = service.get(&format!("{path}?from=1&limit=2")).await;
    assert_members!(middle, {"data": rows[1..3], "next_cursor": "n0000000000000003", "from": 1});
    for beyond in ["from=9".to_owned(), format!("cursor=n{:016x}", u64::MAX)] {
        let beyond = service.get(&format!("{path}?{beyond}")).await;
        assert_eq!(beyond, json!({"data": [], "next_cursor": null, "from": 5, "total": 5}));
    }
    for (query, code) in [
        ("limit=0", "invalid_parameter"),
        ("limit=201", "invalid_parameter"),
        ("limit=-1", "invalid_parameter"),
        ("cursor=m0000000000000001", "invalid_cursor"),
        ("cursor=x", "invalid_cursor"),
    ] {
        let answer = read(service.request(Method::GET, &format!("{path}?{query}"))).await;
        answer.assert_problem(code);
    }
}

async fn steps_of_a_run_at_work_are_read_from_the_end(service: &Service) {
    let body = json!({"input": "calculate 1+1", "model": "mock/gated", "mode": "async"});
    let path = run_path(&service.post("/v1/runs", &body).await.ok(), "/steps");
    until("the first step was never shown", async || {
        service.get(&path).await["total"] == 1
    })
    .await;
    let first = service.get(&format!("{path}?from=0")).await;
    assert_members!(first, {"data/0/step_number": 1, "data/0/model_requests/0/attempts": 1, "from": 0});
    let end = service.get(&format!("{path}?from=1")).await;
    assert_eq!(end, json!({"data": [], "next_cursor": null, "from": 1, "total": 1}));
    service.gate.open(1);
    until("the last step was never shown", async || {
        service.get(&path).await["total"] == 2
    })
    .await;
    let end = service.get(&format!("{path}?from=1")).await;
    assert_members!(end, {"data/0/step_number": 2, "from": 1, "total": 2, "next_cursor": null});
    let first = service.get(&format!("{path}?limit=1")).await;
    assert_members!(first, {"data/0/step_number": 1, "from": 0, "total": 2, "next_cursor": "n0000000000000001"});
    service.until_idle().await;
}

async fn metadata_are_compared_in_one_way_while_a_run_works_and_afterwards(service: &Service) {
    let metadata = json!({"n": 1, "f": 2.0, "deep": {"list": [1, 2.5, {"a": null}], "text": "x"}});
    let body = json!({"input": "hi", "model": "mock/gated", "metadata": metadata});
    let filters = [
        (json!({"n": 1}), true),
        (json!({"n": 1.0, "f": 2}), true),
        (json!({"n": 1.5}), false),
        (json!({"n": "1"}), false),
        (json!({"n": true}), false),
        (json!({"f": 2, "other": 1}), false),
        (json!({"deep": {"text": "x", "list": [1.0, 2.5, {"a": null}]}}), true),
        (json!({"deep": {"text": "x", "list": [1, 2.5, {"a": 0}]}}), false),
        (json!({"deep": {"text": "x", "list": [2.5, 1, {"a": null}]}}), false),
        (json!({"deep": {"text": "x", "list": [1, 2.5]}}), false),
        (json!({"deep": {"text": "x"}}), false),
        (json!({"deep": []}), false),
    ];
    let check = async |when: &str| {
        for (filter, is_found) in &filters {
            let list = service.get(&format!("/v1/runs?metadata={filter}")).await;
            let found = list["data"].as_array().unwrap().len();
            assert_eq!(found, usize::from(*is_found), "{when}: {filter}");
        }
    };
    let watching = async {
        service.gate.until_waiting(1).await;
        check("at work").await;
        service.gate.open(1);
    };
    tokio::join!(service.run_with(body), watching);
    check("ended").await;
}

async fn runs_at_work_are_chosen_and_paged_as_those_that_have_ended(service: &Service) {
    service.put_agent("other", json!({"model": "mock/gated"})).await;
    let ended = service.run_with(json!({"input": "hi"})).await;
    let plain = json!({"input": "hi", "model": "mock/gated", "metadata": {"n": 1}});
    let continuing = json!({"input": "hi", "model": "mock/gated", "base_session_id": ended["session_id"]});
    let on_thread = json!({"agent": "other", "input": "hi", "thread": "t", "mode": "async"});
    let list = async |query: &str| service.get(&format!("/v1/runs?{query}")).await;
    let watching = async {
        service.gate.until_waiting(1).await;
        assert_eq!(service.post("/v1/runs", &on_thread).await.status, 202);
        service.gate.until_waiting(2).await;
        let last = async {
            service.gate.until_waiting(3).await;
            let all = list("").await["data"].clone();
            check_chosen(service, &all, &ended).await;
            let pages = json!(service.pages("/v1/runs?limit=1").await);
            assert_eq!(json!(column(&pages, "data/0")), all);
            service.gate.open(3);
        };
        tokio::join!(service.post("/v1/runs", &continuing), last).0.ok()
    };
    let (plain, continuing) = tokio::join!(service.post("/v1/runs", &plain), watching);
    for run in [plain.ok(), continuing] {
        assert_eq!(run["status"], "completed");
    }
    until("the run of the thread never ended", async || {
        list("status=completed").await["data"].as_array().unwrap().len() == 4
    })
    .await;
}

/// Checks which of four runs are listed, newest first: one that continues another, one on a thread,
/// a plain one, and one that has ended.
async fn check_chosen(service: &Service, all: &Value, ended: &Value) {
    let run = |index: usize| all[index].clone();
    let session = ended["session_id"].as_str().unwrap();
    let created = |index: usize| all[index]["created_at"].as_str().unwrap();
    for (filter, chosen) in [
        ("status=running".to_owned(), vec![run(0), run(1), run(2)]),
        ("status=completed".to_owned(), vec![run(3)]),
        ("status=queued,running".to_owned(), vec![run(0), run(1), run(2)]),
        ("status=completed,running".to_owned(), (0..4).map(run).collect()),
        ("agent=other".to_owned(), vec![run(1)]),
        ("model=mock/gated".to_owned(), vec![run(0), run(1), run(2)]),
        ("model=mock/echo".to_owned(), vec![run(3)]),
        (r#"metadata={"n":1}"#.to_owned(), vec![run(2)]),
        ("thread=t".to_owned(), vec![run(1)]),
        (format!("base_session_id={session}"), vec![run(0)]),
        (format!("created_from={}", created(2)), vec![run(0), run(1), run(2)]),
        (format!("created_from={}", created(0)), vec![run(0)]),
        (format!("created_until={}", created(0)), vec![run(1), run(2), run(3)]),
        (format!("created_until={}", created(2)), vec![run(3)]),
        ("agent=other&status=completed".to_owned(), Vec::new()),
    ] {
        let listed = service.get(&format!("/v1/runs?{filter}")).await;
        assert_eq!(listed["data"], json!(chosen), "{filter}");
    }
    assert_eq!(all.as_array().unwrap().len(), 4);
}

/// Returns how often something was read from the server that it does not have.
fn misses(server: &PrivateServer) -> u64 {
    let stats = server.text(&["INFO", "stats"]);
    let misses = stats.lines().find_map(|line| line.strip_prefix("keyspace_misses:"));
    misses.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_run_is_found_as_soon_as_its_caller_knows_it() {
    let Some(server) = PrivateServer::start() else { return };
    let service = Service::start_with(&[("board.url", &server.url())]).await;
    let elsewhere = Board::open(&server.url(), RedisSettings::default(), &Supervisor::default())
        .await
        .unwrap();
    for wait in ["", "?wait=1s"] {
        let run = new_run(None);
        let path = format!("/v1/runs/{}{wait}", run.summary.run_id);
        let before = misses(&server);
        let showing = async {
            // The board of another process shows the run after that process has responded to its
            // caller, and after the service has read the board in vain.
            until("nobody looks for the run", async || misses(&server) > before).await;
            let tenant = TenantId::anonymous();
            elsewhere.run_open(&tenant, run, false).await.unwrap();
        };
        let (shown, ()) = tokio::join!(service.get(&path), showing);
        assert_eq!(shown["status"], "running");
    }
    let unknown = format!("/v1/runs/{}", RunId::generate(&UuidV7Source));
    service.try_get(&unknown).await.assert_problem("run_not_found");
    elsewhere.close().await;
    service.finish().await;
}

/// Far more waits than looks that go on at once.
const WAITS: u64 = 100;

/// How long something may take that has no clock to wait for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The runtime's clock, standing still. It would jump to the next timer as soon as all tasks are
/// idle, so one task never is.
struct StoppedClock(JoinHandle<()>);

impl StoppedClock {
    fn new() -> Self {
        tokio::time::pause();
        Self(tokio::spawn(async {
            loop {
                tokio::task::yield_now().await;
            }
        }))
    }

    /// Lets others do something.
    async fn let_others_work(&self) {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }

    fn go_on(self) {
        self.0.abort();
        tokio::time::resume();
    }
}

#[tokio::test]
async fn waits_for_unknown_runs_do_not_delay_other_tenants() {
    let Some(server) = PrivateServer::start() else { return };
    let service = Service::start_with(&[("board.url", &server.url())]).await;
    let scopes = [Scope::SessionsRead, Scope::RunsWrite];
    let (_, many) = service.make_key("many", &scopes).await;
    let (_, one) = service.make_key("one", &scopes).await;
    let body = json!({"input": "hi"});
    let run = with_json(service.request(Method::POST, "/v1/runs").bearer_auth(&one), &body);
    let run = read(run).await.json();
    let wait = |key: &str, id: &str| {
        let path = format!("/v1/runs/{id}?wait=60s");
        service.request(Method::GET, &path).bearer_auth(key).send()
    };
    // A tenth of them begin in a year, if their ids were believed.
    let ids = (0_u64..WAITS).map(|number| {
        let ahead = if number % 10 == 0 { 31_536_000 } else { 0 };
        let seconds = Utc::now().timestamp().cast_unsigned() + ahead;
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0)).to_string()
    });
    let mut waits = std::pin::pin!(join_all(ids.map(|id| wait(&many, &id))));
    let before = misses(&server);
    let stopped = StoppedClock::new();
    let beside = async {
        // All of them have looked, far more than may look at once, and none of them ends.
        let begun = std::time::Instant::now();
        while misses(&server) < before + WAITS {
            assert!(begun.elapsed() < PATIENCE, "they wait for each other");
            stopped.let_others_work().await;
        }
        for _ in 0..3 {
            let shown = wait(&one, run["run_id"].as_str().unwrap()).await.unwrap();
            assert_eq!(shown.status(), 200);
        }
    };
    tokio::select! {
        () = beside => (),
        answers = &mut waits => panic!("{} waits end while the clock stands still", answers.len()),
    }
    stopped.go_on();
    let answers = tokio::time::timeout(PATIENCE, waits).await;
    for answer in answers.expect("the times of their ids are believed") {
        assert_eq!(answer.unwrap().status(), 404);
    }
    service.finish().await;
}

//! Runs in the background: accepted at once, waited for, followed, stopped and cancelled.

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::clock::time;
use test_support::databases::TestDatabase;
use test_support::wait::until;

use super::on_every_store;
use crate::support::answer::{read, with_json};
use crate::support::gated::{GatedApp, assert_without_gap, numbers, request};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, last_user_text};
use crate::support::test_app::{TestApp, run_path, session_path, sse_data};

on_every_store!(
    a_run_is_accepted_before_its_work_is_done,
    the_header_prefer_makes_a_run_asynchronous,
    a_wait_ends_when_the_status_changes,
    the_events_of_an_ended_run_are_read_from_any_of_them_on,
    the_end_of_a_run_is_read_when_all_of_its_events_are_gone,
    the_events_of_a_run_at_work_are_followed_to_its_end,
    a_stopped_run_publishes_what_it_has,
    a_cancelled_run_publishes_nothing,
    runs_that_have_not_begun_are_stopped_and_cancelled,
    a_run_that_somebody_waits_for_is_stopped_as_well,
    a_run_shows_its_durability_and_its_thread,
    a_priority_counts_among_all_tenants_where_it_is_global
);

/// Checks that the session of a run is there, or reserved.
async fn assert_session(app: &GatedApp, run: &Value, is_there: bool) {
    let answer = app.try_get(&session_path(run, "")).await;
    if is_there {
        assert_eq!(answer.ok()["run_id"], run["run_id"]);
    } else {
        answer.assert_problem("session_not_committed");
        assert_eq!(answer.json()["run_id"], run["run_id"]);
    }
}

async fn a_run_is_accepted_before_its_work_is_done(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let answer = app.post("/v1/runs", &request("async", "wait", json!({}))).await;
    let accepted = answer.json();
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.header("location"), run_path(&accepted, ""));
    assert_eq!(
        (
            answer.header("preference-applied"),
            answer.header("idempotency-replayed")
        ),
        ("", "")
    );
    assert_members!(accepted, {"status": "queued", "mode": "async", "attempts": 0});
    assert_members!(accepted, {"output_text": "", "started_at": null});
    assert_session(&app, &accepted, false).await;
    app.gate.until_waiting(1).await;
    let listed = app.get("/v1/runs?status=running").await;
    assert_eq!(listed["data"][0]["run_id"], accepted["run_id"]);
    app.gate.open(1);

    let ended = app.ended(&accepted).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: wait", "attempts": 1});
    assert_members!(ended, {"session_id": accepted["session_id"], "created_at": accepted["created_at"]});
    assert_session(&app, &accepted, true).await;
    app.finish().await;
}

async fn the_header_prefer_makes_a_run_asynchronous(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    for (mode, status, applied) in [
        ("sync", 202, "respond-async"),
        ("async", 202, "respond-async"),
        ("stream", 200, ""),
    ] {
        let post = app
            .request(Method::POST, "/v1/runs")
            .header("prefer", "respond-async, wait=5");
        let answer = read(with_json(post, &request(mode, "hi", json!({})))).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("preference-applied")),
            (status, applied),
            "{mode}"
        );
        if status == 202 {
            let ended = app.ended(&answer.json()).await;
            assert_members!(ended, {"mode": "async", "status": "completed"});
        }
    }
    app.finish().await;
}

async fn a_wait_ends_when_the_status_changes(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    let path = run_path(&run, "");
    for no_wait in ["", "?wait=0", "?wait=0s", "?wait=10ms"] {
        assert_eq!(
            app.get(&format!("{path}{no_wait}")).await["status"],
            "running",
            "{no_wait}"
        );
    }
    let long = format!("{path}?wait=60");
    let waiting = app.get(&long);
    let opening = async { app.gate.open(1) };
    let (ended, ()) = tokio::join!(waiting, opening);
    assert_eq!(ended["status"], "completed");
    // A run that has ended changes no more.
    assert_eq!(app.get(&format!("{path}?wait=60s")).await, ended);
    app.finish().await;
}

async fn the_events_of_an_ended_run_are_read_from_any_of_them_on(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("hi", json!({})).await;
    let ended = app.ended(&run).await;
    let all = app.events_after(&run, 0).await;
    let last = all.len() as u64;
    assert_eq!(numbers(&all), (1..=last).collect::<Vec<_>>());
    let ends = all
        .iter()
        .filter(|event| event["data"]["status"] == "completed" && event["type"] == "run.completed");
    assert_eq!(ends.count(), 1);
    assert_eq!(all[all.len() - 1]["data"], ended);
    assert_eq!(all[all.len() - 2]["type"], "session.committed");
    assert!(all.is_sorted_by_key(|event| time(&event["time"])), "{all:#?}");
    assert!(all.iter().all(|event| event["run_id"] == run["run_id"]));
    let path = run_path(&run, "/events");
    for after in 0..=last {
        let rest = &all[usize::try_from(after).unwrap()..];
        assert_eq!(app.events_after(&run, after).await, rest, "{after}");
        // A reader that continues after the end receives the end once more.
        let rest = if after == last { &all[all.len() - 2..] } else { rest };
        let asked = app.try_get(&format!("{path}?after={after}")).await;
        assert_eq!(sse_data(&asked.text()), rest, "{after}");
    }
    // What a reader says of itself wins over the address that it began with.
    let both = app.request(Method::GET, &format!("{path}?after=1"));
    let both = read(both.header("last-event-id", last - 1)).await;
    assert_eq!(sse_data(&both.text()), &all[all.len() - 1..]);
    let ids: Vec<_> = both
        .text()
        .lines()
        .filter(|line| line.starts_with("id: "))
        .map(str::to_owned)
        .collect();
    assert_eq!(ids, [format!("id: {last}")]);
    for end in [last, last + 1, i64::MAX.unsigned_abs()] {
        let again = app.request(Method::GET, &path).header("last-event-id", end);
        let again = read(again).await;
        assert_eq!((again.status.as_u16(), again.text()), (204, String::new()), "{end}");
        let asked = app.try_get(&format!("{path}?after={end}")).await;
        assert_eq!(sse_data(&asked.text()), &all[all.len() - 2..], "{end}");
    }
    app.finish().await;
}

async fn the_end_of_a_run_is_read_when_all_of_its_events_are_gone(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let completed = app.begin("hi", json!({})).await;
    app.ended(&completed).await;
    let stopped = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    app.control(&stopped, "stop").await;
    app.ended(&stopped).await;
    app.gate.until_waiting(0).await;
    let cancelled = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    app.control(&cancelled, "cancel").await;
    app.ended(&cancelled).await;
    let mut reported = Vec::new();
    for (run, ends) in [
        (completed, vec!["session.committed", "run.completed"]),
        (stopped, vec!["session.committed", "run.stopped"]),
        (cancelled, vec!["run.cancelled"]),
    ] {
        let all = app.events_after(&run, 0).await;
        let last = all[all.len() - ends.len()..].to_vec();
        let types: Vec<_> = last.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ends);
        reported.push((run, all.len() as u64, last));
    }
    app.finish().await;
    database.execute("delete from run_events").await.unwrap();

    // A board of its own, which has never heard of them.
    let app = GatedApp::start(&database, &[]).await;
    for (run, count, last) in reported {
        for after in 0..=count {
            let rest = if after == count { &[][..] } else { &last };
            assert_eq!(app.events_after(&run, after).await, rest, "{after}");
        }
    }
    app.finish().await;
}

async fn the_events_of_a_run_at_work_are_followed_to_its_end(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("wait", json!({})).await;
    let path = run_path(&run, "/events");
    let response = app.request(Method::GET, &path).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("event: model.requested") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    // A second reader comes later, and from the middle.
    let late = app.events_after(&run, 2);
    let first = async {
        app.gate.open(1);
        while let Some(piece) = stream.next().await {
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        sse_data(&text)
    };
    let (late, first) = tokio::join!(late, first);
    assert_without_gap(&first);
    assert_eq!(first.last().unwrap()["type"], "run.completed");
    assert_eq!(late, first[2..]);
    assert_eq!(app.events_after(&run, 0).await, first);
    app.finish().await;
}

async fn a_stopped_run_publishes_what_it_has(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    let response = app.control(&run, "stop").await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.text());
    assert_eq!(response.json()["run_id"], run["run_id"]);
    let ended = app.ended(&run).await;
    assert_members!(ended, {"status": "stopped", "stop_reason": "user_requested"});
    app.gate.until_waiting(0).await;
    assert_session(&app, &run, true).await;
    assert_eq!(app.events_after(&run, 0).await.last().unwrap()["type"], "run.stopped");
    let shown = without_output(&ended);
    for action in ["stop", "cancel"] {
        let late = app.control(&run, action).await;
        assert_eq!((late.status, late.json()), (StatusCode::OK, shown.clone()), "{action}");
    }
    let next = json!({"base_session_id": run["session_id"]});
    let continued = app.post("/v1/runs", &request("sync", "go on", next)).await.ok();
    assert_eq!(continued["output_text"], "echo: go on");
    app.finish().await;
}

/// Returns the run as stopping and cancelling show it: a key that may only write runs reads no
/// output there.
fn without_output(run: &Value) -> Value {
    let mut run = run.clone();
    for field in [
        "input",
        "output",
        "output_text",
        "output_value",
        "finish_reason",
        "stop_signal",
        "required_action",
    ] {
        assert!(run.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    run
}

async fn a_cancelled_run_publishes_nothing(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let run = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    for _ in 0..2 {
        // The second one may come before the end, or after it.
        let response = app.control(&run, "cancel").await;
        assert!(
            [StatusCode::ACCEPTED, StatusCode::OK].contains(&response.status),
            "{}",
            response.text()
        );
    }
    let ended = app.ended(&run).await;
    assert_members!(ended, {"status": "cancelled", "stop_reason": "user_requested"});
    app.gate.until_waiting(0).await;
    assert_session(&app, &run, false).await;
    assert_eq!(app.get("/v1/sessions").await["data"], json!([]));
    assert_eq!(app.events_after(&run, 0).await.last().unwrap()["type"], "run.cancelled");
    let shown = without_output(&ended);
    for action in ["stop", "cancel"] {
        let late = app.control(&run, action).await;
        assert_eq!((late.status, late.json()), (StatusCode::OK, shown.clone()), "{action}");
    }
    app.finish().await;
}

async fn runs_that_have_not_begun_are_stopped_and_cancelled(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let queued = json!({"thread": "t", "if_busy": "queue"});
    let stopped = app.begin("stopped", queued.clone()).await;
    let cancelled = app.begin("cancelled", queued.clone()).await;
    let spared = app.begin("spared", queued).await;
    assert_eq!(app.control(&stopped, "stop").await.status, StatusCode::ACCEPTED);
    assert_eq!(app.control(&cancelled, "cancel").await.status, StatusCode::ACCEPTED);
    app.gate.open(1);
    assert_eq!(app.ended(&first).await["status"], "completed");
    assert_eq!(app.ended(&stopped).await["status"], "stopped");
    assert_eq!(app.ended(&cancelled).await["status"], "cancelled");
    assert_eq!(app.ended(&spared).await["output_text"], "echo: spared");
    let asked = app.mock.requests();
    assert_eq!(asked.len(), 2, "no model works for a run that shall not: {asked:#?}");
    app.finish().await;
}

async fn a_run_that_somebody_waits_for_is_stopped_as_well(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    for (action, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let body = request("sync", "wait", json!({}));
        let waiting = app.post("/v1/runs", &body);
        let telling = async {
            app.gate.until_waiting(1).await;
            let run = app.get("/v1/runs?status=running").await["data"][0].clone();
            assert_eq!(app.control(&run, action).await.status, StatusCode::ACCEPTED);
        };
        let (answer, ()) = tokio::join!(waiting, telling);
        let ended = answer.ok();
        assert_members!(ended, {"status": status, "stop_reason": "user_requested"});
        assert_session(&app, &ended, action == "stop").await;
        until("the record is not stored", async || {
            app.control(&ended, action).await.status == StatusCode::OK
        })
        .await;
    }
    app.finish().await;
}

async fn a_run_shows_its_durability_and_its_thread(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    app.put_agent("durable", json!({"model": "mock/m", "durability": "step"}))
        .await;
    for (more, durability, thread) in [
        (json!({}), "session", Value::Null),
        (json!({"durability": "step", "priority": -100}), "step", Value::Null),
        (json!({"agent": "durable", "priority": 100}), "step", Value::Null),
        (
            json!({"agent": "durable", "durability": "session", "thread": "t"}),
            "session",
            json!("t"),
        ),
    ] {
        let run = app.begin("hi", more.clone()).await;
        let ended = app.ended(&run).await;
        for shown in [&run, &ended] {
            assert_members!(shown, {"durability": durability, "thread": thread}, "{more}");
        }
        assert_members!(ended, {"status": "completed", "attempts": 1}, "{more}");
    }
    app.finish().await;
}

/// Has runs of two tenants wait, and returns their inputs in the order in which a worker takes
/// them.
async fn order_of_tenants(database: &TestDatabase, settings: &[(&str, &str)]) -> Vec<String> {
    let mock = MockModel::echoing().await;
    let settings = [&[("queue.role", "api")], settings].concat();
    let api = TestApp::start_bare(database.url(), &mock, &settings).await;
    for (tenant, runs) in [
        ("early", [("early", 0), ("early, too", 0)]),
        ("late", [("late", 0), ("late, but urgent", 9)]),
    ] {
        let (_, key) = api.make_key(tenant, &[Scope::Admin]).await;
        let send = async |method: Method, path: &str, body: &Value| {
            let answer = read(with_json(api.request(method, path).bearer_auth(&key), body)).await;
            assert!(answer.status.is_success(), "{}", answer.text());
        };
        send(Method::PUT, "/v1/agents/echo", &json!({"model": "mock/m"})).await;
        for (text, priority) in runs {
            let body = request("async", text, json!({"priority": priority}));
            send(Method::POST, "/v1/runs", &body).await;
        }
    }
    api.finish().await;
    let worker = TestApp::start_bare(database.url(), &mock, &[("queue.concurrency", "1")]).await;
    until("not all runs begin", async || mock.asked() == 4).await;
    worker.until_idle().await;
    worker.finish().await;
    mock.requests().iter().map(last_user_text).collect()
}

async fn a_priority_counts_among_all_tenants_where_it_is_global(database: TestDatabase) {
    let in_turn = ["early", "late, but urgent", "early, too", "late"];
    assert_eq!(order_of_tenants(&database, &[]).await, in_turn);
    assert_eq!(
        order_of_tenants(&database, &[("queue.priority", "tenant")]).await,
        in_turn
    );
    assert_eq!(
        order_of_tenants(&database, &[("queue.priority", "global")]).await,
        ["late, but urgent", "early", "late", "early, too"]
    );
}

//! Threads and the runs on them: each continues what the one before has published, and one at a
//! time moves the thread.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::answer::read;
use crate::support::gated::{GatedApp, id, request};
use crate::support::members::assert_members;
use crate::support::mock_model::{content_text, last_user_text};
use crate::support::test_app::session_path;

on_every_store!(
    a_thread_is_made_by_its_first_run_and_moved_by_each,
    a_run_that_fails_moves_nothing,
    a_busy_thread_refuses_a_run_and_names_the_other,
    runs_wait_for_their_thread_in_order,
    an_interrupted_run_stops_with_what_it_has,
    an_interrupted_run_that_waits_ends_without_a_worker,
    an_interrupting_run_queues_behind_those_that_wait_already,
    a_run_that_waits_has_the_agent_of_the_run_ahead,
    an_interrupting_run_has_the_agent_of_the_run_that_gives_way,
    a_run_retains_its_agent_when_the_run_ahead_publishes_nothing,
    a_fork_leaves_the_thread_alone,
    a_run_starts_from_a_chosen_session_and_moves_the_thread,
    a_run_starts_from_none_on_a_thread_that_has_a_session,
    a_chosen_start_waits_for_its_turn,
    bad_starts_are_refused,
    files_that_arrive_during_a_run_lose_no_turn,
    a_thread_that_was_taken_away_begins_anew
);

async fn on_thread(app: &GatedApp, text: &str) -> Value {
    let body = request("sync", text, json!({"thread": "t"}));
    app.post("/v1/runs", &body).await.ok()
}

async fn at(app: &GatedApp) -> Value {
    app.get("/v1/threads/t").await["session_id"].clone()
}

async fn a_thread_is_made_by_its_first_run_and_moved_by_each(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = on_thread(&app, "one").await;
    assert_members!(first, {"thread": "t", "base_session_id": null, "status": "completed", "thread_moved": true});
    assert_eq!(app.shown(&first).await, first);
    assert_eq!(at(&app).await, first["session_id"]);
    let version = app.get("/v1/threads/t").await["version"].as_u64().unwrap();
    let second = app.begin("two", json!({"thread": "t"})).await;
    let second = app.ended(&second).await;
    assert_eq!(second["base_session_id"], first["session_id"]);
    assert_eq!(at(&app).await, second["session_id"]);
    assert_eq!(app.get("/v1/threads/t").await["version"], version + 1);
    let streamed = app
        .stream(json!({"agent": "echo", "input": "three", "thread": "t"}))
        .await;
    let third = &streamed.last().unwrap()["data"];
    assert_eq!(third["base_session_id"], second["session_id"]);
    let messages = app.get(&session_path(third, "/messages")).await;
    assert_eq!(messages["total"], 6);

    app.run(None, "elsewhere").await;
    let at_work = app.begin("wait", json!({"thread": "other"})).await;
    app.gate.until_waiting(1).await;
    let listed = async |thread: &str| -> Vec<Value> {
        let listed = app.get(&format!("/v1/runs?thread={thread}")).await;
        let runs = listed["data"].as_array().unwrap().iter();
        runs.map(|run| run["run_id"].clone()).collect()
    };
    let wanted = [third, &second, &first].map(|run| run["run_id"].clone());
    assert_eq!(listed("t").await, wanted);
    assert_eq!(listed("other").await, [at_work["run_id"].clone()]);
    assert!(listed("none").await.is_empty());
    app.try_get("/v1/runs?thread=a%20b")
        .await
        .assert_problem("invalid_parameter");
    app.gate.open(1);
    app.ended(&at_work).await;
    app.finish().await;
}

async fn a_run_that_fails_moves_nothing(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = on_thread(&app, "one").await;
    app.put_agent(
        "broken",
        json!({"model": "mock/m", "system_prompt": "{{ variables.none }}"}),
    )
    .await;
    let failing = request("sync", "two", json!({"thread": "t", "agent": "broken"}));
    let failed = app.post("/v1/runs", &failing).await.ok();
    assert_members!(failed, {"status": "failed", "thread_moved": null});
    assert_eq!(at(&app).await, first["session_id"]);
    assert_eq!(on_thread(&app, "three").await["base_session_id"], first["session_id"]);
    app.finish().await;
}

async fn a_busy_thread_refuses_a_run_and_names_the_other(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    for mode in ["sync", "async", "stream"] {
        for more in [json!({"thread": "t"}), json!({"thread": "t", "if_busy": "reject"})] {
            let refused = app.post("/v1/runs", &request(mode, "two", more)).await;
            refused.assert_problem("thread_busy");
            assert_eq!(refused.json()["run_id"], first["run_id"], "{mode}");
            let detail = refused.json()["detail"].to_string();
            assert!(detail.contains("`if_busy`"), "{detail}");
        }
    }
    // Another thread is not busy.
    let other = app.begin("hi", json!({"thread": "t2"})).await;
    assert_eq!(app.ended(&other).await["status"], "completed");
    app.gate.open(1);
    assert_eq!(app.ended(&first).await["status"], "completed");
    assert_eq!(on_thread(&app, "two").await["base_session_id"], first["session_id"]);
    app.finish().await;
}

async fn runs_wait_for_their_thread_in_order(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let queued = json!({"thread": "t", "if_busy": "queue"});
    let second = app.begin("two", queued.clone()).await;
    let third = app.begin("three", queued.clone()).await;
    for run in [&second, &third] {
        let shown = app.shown(run).await;
        assert_members!(shown, {"status": "queued", "attempts": 0});
    }
    let fourth = request("sync", "four", queued);
    let opening = async { app.gate.open(1) };
    let (fourth, ()) = tokio::join!(app.post("/v1/runs", &fourth), opening);
    let fourth = fourth.ok();
    let [first, second, third] = [
        app.ended(&first).await,
        app.ended(&second).await,
        app.ended(&third).await,
    ];
    assert_eq!(second["base_session_id"], first["session_id"]);
    assert_eq!(third["base_session_id"], second["session_id"]);
    assert_eq!(fourth["base_session_id"], third["session_id"]);
    assert_eq!(at(&app).await, fourth["session_id"]);
    app.finish().await;
}

async fn an_interrupted_run_stops_with_what_it_has(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let second = app.begin("two", json!({"thread": "t", "if_busy": "interrupt"})).await;
    let (first, second) = (app.ended(&first).await, app.ended(&second).await);
    assert_members!(first, {"status": "stopped", "stop_reason": "user_requested"});
    assert_members!(second, {"status": "completed", "base_session_id": first["session_id"]});
    assert_eq!(at(&app).await, second["session_id"]);
    app.finish().await;
}

async fn an_interrupting_run_queues_behind_those_that_wait_already(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let second = app.begin("two", json!({"thread": "t", "if_busy": "queue"})).await;
    let third = app.begin("three", json!({"thread": "t", "if_busy": "interrupt"})).await;
    let mut base = Value::Null;
    for (run, status) in [(first, "stopped"), (second, "completed"), (third, "completed")] {
        let ended = app.ended(&run).await;
        assert_members!(ended, {"status": status, "base_session_id": base});
        base = ended["session_id"].clone();
    }
    assert_eq!(at(&app).await, base);
    app.finish().await;
}

async fn an_interrupted_run_that_waits_ends_without_a_worker(database: TestDatabase) {
    let app = GatedApp::start(&database, &[("queue.concurrency", "1")]).await;
    let root = on_thread(&app, "root").await;
    let blocking = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    // The only place is taken, so this one waits.
    let first = app.begin("one", json!({"thread": "t"})).await;
    assert_eq!(app.shown(&first).await["status"], "queued");
    let second = app.begin("two", json!({"thread": "t", "if_busy": "interrupt"})).await;
    let first = app.ended(&first).await;
    assert_members!(first, {"status": "stopped", "stop_reason": "user_requested", "thread_moved": true});
    assert_eq!(first["base_session_id"], root["session_id"]);
    assert_eq!(app.shown(&blocking).await["status"], "running");
    assert_eq!(app.shown(&second).await["status"], "queued");
    app.gate.open(1);
    let second = app.ended(&second).await;
    assert_members!(second, {"status": "completed", "base_session_id": first["session_id"]});
    assert_eq!(at(&app).await, second["session_id"]);
    app.ended(&blocking).await;
    app.finish().await;
}

/// Starts a service with agents that say their names to the model.
async fn with_agents(database: &TestDatabase) -> GatedApp {
    let app = GatedApp::start(database, &[]).await;
    for name in ["slow", "quick"] {
        app.put_agent(
            name,
            json!({"model": "mock/m", "system_prompt": format!("You are {name}.")}),
        )
        .await;
    }
    app
}

/// Begins a run that names no agent.
async fn follow_up(app: &GatedApp, text: &str, if_busy: &str) -> Value {
    let body = json!({"thread": "t", "input": text, "if_busy": if_busy, "mode": "async"});
    let answer = app.post("/v1/runs", &body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    answer.json()
}

/// Asserts that a run was accepted for an agent, and that it is this agent that the model was asked
/// for and whose session there is.
async fn assert_agent(app: &GatedApp, accepted: &Value, agent: &str, text: &str) -> Value {
    assert_eq!(accepted["agent"], agent, "{text}");
    let ended = app.ended(accepted).await;
    assert_members!(ended, {"status": "completed", "agent": agent, "agent_version": accepted["agent_version"]});
    assert_eq!(app.get(&session_path(&ended, "")).await["agent"], agent, "{text}");
    let requests = app.mock.requests();
    let request = requests.iter().find(|request| last_user_text(request) == text);
    let prompt = &request.unwrap()["messages"][0];
    assert_eq!(prompt["role"], "system");
    assert_eq!(content_text(&prompt["content"]), format!("You are {agent}."));
    ended
}

async fn a_run_that_waits_has_the_agent_of_the_run_ahead(database: TestDatabase) {
    let app = with_agents(&database).await;
    let first = app.begin("wait", json!({"thread": "t", "agent": "slow"})).await;
    app.gate.until_waiting(1).await;
    let second = follow_up(&app, "two", "queue").await;
    let third = json!({"thread": "t", "agent": "quick", "if_busy": "queue"});
    let third = app.begin("three", third).await;
    let fourth = follow_up(&app, "four", "queue").await;
    // Nothing is published yet, so a fork begins a line of its own.
    assert_eq!(follow_up(&app, "aside", "fork").await["agent"], "demo");
    app.gate.open(1);
    let mut ahead = app.ended(&first).await;
    for (run, agent, text) in [
        (second, "slow", "two"),
        (third, "quick", "three"),
        (fourth, "quick", "four"),
    ] {
        let ended = assert_agent(&app, &run, agent, text).await;
        assert_eq!(ended["base_session_id"], ahead["session_id"]);
        ahead = ended;
    }
    // Nobody is ahead any more.
    let last = follow_up(&app, "five", "queue").await;
    assert_agent(&app, &last, "quick", "five").await;
    app.finish().await;
}

async fn an_interrupting_run_has_the_agent_of_the_run_that_gives_way(database: TestDatabase) {
    let app = with_agents(&database).await;
    let first = app.begin("wait", json!({"thread": "t", "agent": "slow"})).await;
    app.gate.until_waiting(1).await;
    let second = follow_up(&app, "two", "interrupt").await;
    let ended = assert_agent(&app, &second, "slow", "two").await;
    assert_eq!(ended["base_session_id"], app.ended(&first).await["session_id"]);
    app.finish().await;
}

async fn a_run_retains_its_agent_when_the_run_ahead_publishes_nothing(database: TestDatabase) {
    let app = with_agents(&database).await;
    let root = app.begin("root", json!({"thread": "t", "agent": "quick"})).await;
    let root = app.ended(&root).await;
    let first = app.begin("wait", json!({"thread": "t", "agent": "slow"})).await;
    app.gate.until_waiting(1).await;
    let second = follow_up(&app, "two", "queue").await;
    app.control(&first, "cancel").await;
    assert_eq!(app.ended(&first).await["status"], "cancelled");
    let ended = assert_agent(&app, &second, "slow", "two").await;
    assert_eq!(ended["base_session_id"], root["session_id"]);
    app.finish().await;
}

async fn a_fork_leaves_the_thread_alone(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let root = on_thread(&app, "root").await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let forked = app.begin("aside", json!({"thread": "t", "if_busy": "fork"})).await;
    let forked = app.ended(&forked).await;
    assert_members!(forked, {"status": "completed", "base_session_id": root["session_id"], "thread_moved": null});
    assert_eq!(at(&app).await, root["session_id"]);
    app.gate.open(1);
    let first = app.ended(&first).await;
    assert_eq!(first["base_session_id"], root["session_id"]);
    assert_eq!(at(&app).await, first["session_id"]);
    app.finish().await;
}

async fn a_run_starts_from_a_chosen_session_and_moves_the_thread(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = on_thread(&app, "one").await;
    let second = on_thread(&app, "two").await;
    for mode in ["sync", "async"] {
        let from = json!({"thread": "t", "thread_from": {"session_id": first["session_id"]}});
        let run = app.post("/v1/runs", &request(mode, "instead", from)).await.ok();
        let run = app.ended(&run).await;
        assert_members!(run, {
            "status": "completed", "thread": "t", "base_session_id": first["session_id"], "thread_moved": true,
        });
        assert_eq!(at(&app).await, run["session_id"]);
        assert_eq!(app.get("/v1/threads/t/messages").await["total"], 4);
    }
    // The turn that was left behind is still there.
    app.get(&session_path(&second, "")).await;
    assert_eq!(app.get("/v1/threads/t").await["run_count"], 4);
    app.finish().await;
}

async fn a_run_starts_from_none_on_a_thread_that_has_a_session(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    on_thread(&app, "one").await;
    for mode in ["sync", "async"] {
        let from = json!({"thread": "t", "thread_from": {"session_id": null}});
        let run = app.post("/v1/runs", &request(mode, "anew", from)).await.ok();
        let run = app.ended(&run).await;
        assert_members!(run, {"status": "completed", "base_session_id": null, "thread_moved": true});
        assert_eq!(at(&app).await, run["session_id"]);
        assert_eq!(app.get("/v1/threads/t/messages").await["total"], 2);
    }
    app.finish().await;
}

async fn a_chosen_start_waits_for_its_turn(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let root = on_thread(&app, "root").await;
    let active = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let from = json!({"session_id": root["session_id"]});
    let refused = json!({"thread": "t", "thread_from": from});
    app.post("/v1/runs", &request("async", "edit", refused))
        .await
        .assert_problem("thread_busy");
    let queued = json!({"thread": "t", "thread_from": from, "if_busy": "interrupt"});
    let edited = app.begin("edit", queued).await;
    let aside = json!({"thread": "t", "thread_from": {"session_id": null}, "if_busy": "fork"});
    let aside = app.begin("aside", aside).await;
    let aside = app.ended(&aside).await;
    assert_members!(aside, {"status": "completed", "base_session_id": null, "thread_moved": null});
    let active = app.ended(&active).await;
    assert_eq!(active["status"], "stopped");
    let edited = app.ended(&edited).await;
    assert_members!(edited, {
        "status": "completed", "base_session_id": root["session_id"], "thread_moved": true,
    });
    assert_eq!(at(&app).await, edited["session_id"]);
    app.finish().await;
}

async fn bad_starts_are_refused(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = on_thread(&app, "one").await;
    let nowhere = json!({"session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"});
    let session = json!({"session_id": first["session_id"]});
    for (more, code, pointer) in [
        (json!({"thread_from": session}), "invalid_field", "/thread_from"),
        (
            json!({"thread": "t", "thread_from": {}}),
            "missing_field",
            "/thread_from/session_id",
        ),
        (
            json!({"thread": "t", "thread_from": {"session_id": "x"}}),
            "malformed_id",
            "/thread_from/session_id",
        ),
        (
            json!({"thread": "t", "thread_from": session, "base_session_id": first["session_id"]}),
            "invalid_field",
            "/thread",
        ),
        (json!({"thread": "t", "thread_from": nowhere}), "session_not_found", ""),
    ] {
        let answer = app.post("/v1/runs", &request("sync", "two", more)).await;
        answer.assert_problem_at(code, pointer);
    }
    assert_eq!(at(&app).await, first["session_id"]);
    app.finish().await;
}

async fn files_that_arrive_during_a_run_lose_no_turn(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let root = on_thread(&app, "root").await;
    let upload = json!({"changes": [{"path": "notes.txt", "content": "late"}]});
    let session = |of: &Value, rest: &str| format!("/v1/sessions/{}{rest}", of["session_id"].as_str().unwrap());
    let working = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let uploaded = app.post(&session(&root, "/files"), &upload).await.json();
    let to_upload = json!({"session_id": uploaded["session_id"], "expected_session_id": root["session_id"]});
    for refused in [
        app.put("/v1/threads/t", &to_upload).await,
        app.put("/v1/threads/t", &json!({"session_id": uploaded["session_id"]}))
            .await,
        read(app.request(Method::DELETE, "/v1/threads/t")).await,
    ] {
        refused.assert_problem("thread_busy");
        assert_eq!(refused.json()["run_id"], working["run_id"]);
    }
    assert_eq!(at(&app).await, root["session_id"]);
    app.gate.open(1);
    let ended = app.ended(&working).await;
    assert_members!(ended, {"status": "completed", "thread_moved": true});
    assert_eq!(at(&app).await, ended["session_id"]);

    // The files go into the turn that has ended.
    let with = json!({"with": uploaded["session_id"]});
    let merged = app.post(&session(&ended, "/merge"), &with).await.json();
    let to_merged = json!({"session_id": merged["session_id"], "expected_session_id": ended["session_id"]});
    app.put("/v1/threads/t", &to_merged).await.ok();
    let next = on_thread(&app, "next").await;
    assert_eq!(next["base_session_id"], merged["session_id"]);
    let messages = app.get("/v1/threads/t/messages").await;
    assert_eq!(messages["total"], 6, "{messages:#}");
    let file = app.get(&session(&next, "/files")).await;
    assert_eq!(file["data"][0]["path"], "notes.txt", "{file:#}");
    app.finish().await;
}

async fn a_thread_that_was_taken_away_begins_anew(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = on_thread(&app, "one").await;
    let deleted = read(app.request(Method::DELETE, "/v1/threads/t")).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    app.get(&session_path(&first, "")).await;
    let second = on_thread(&app, "two").await;
    assert_members!(second, {"base_session_id": null, "status": "completed"});
    assert_ne!(id(&second), id(&first));
    assert_eq!(at(&app).await, second["session_id"]);
    app.finish().await;
}

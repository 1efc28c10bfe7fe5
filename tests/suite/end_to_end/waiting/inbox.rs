//! The list of the runs that wait for a person, or for a program.

use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;
use store::keys::Scope;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, asker, mixed};
use crate::end_to_end::on_every_store;
use crate::support::answer::read;
use crate::support::members::{assert_members, column};
use crate::support::test_app::{run_path, session_path};

on_every_store!(
    runs_are_listed_until_they_are_answered,
    lists_are_filtered_and_show_one_tenant,
    expired_calls_are_not_listed,
    pages_and_calls_are_bounded_in_bytes,
);

/// Returns the ids of the listed runs. Checks pages of one run, and the number of all.
async fn listed(app: &WaitingApp, query: &str) -> Vec<Value> {
    let rows = app.rows(&format!("/v1/approvals?limit=1&{query}")).await;
    let whole = app.try_get(&format!("/v1/approvals?{query}")).await;
    assert_eq!(whole.json(), json!({"data": rows, "next_cursor": null}));
    assert_eq!(whole.header("x-total"), rows.len().to_string());
    rows.iter().map(|row| row["run_id"].clone()).collect()
}

async fn runs_are_listed_until_they_are_answered(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let base = app.run_with(json!({"agent": "asker", "input": "hello"})).await;
    let from_base = |input: &str| json!({"base_session_id": base["session_id"], "input": input});
    let run = app.run_with(from_base(&mixed().to_string())).await;
    let client = app.wait_for(json!([["c1", "ask", {"question": "?"}]])).await;
    let ids = [&client, &run].map(|run| run["run_id"].clone());
    assert_eq!(listed(&app, "").await, ids[1..]);
    assert_eq!(listed(&app, "kind=client").await, ids);
    let list = app.get("/v1/approvals").await;
    assert_members!(list["data"][0], {
        "run_id": run["run_id"],
        "session_id": run["session_id"],
        "thread": null,
        "agent": "asker",
        "agent_version": run["agent_version"],
        "asked_at": run["completed_at"],
        "expires_at": run["required_action"]["calls"][0]["expires_at"],
        "required_action": run["required_action"],
    });

    // A fork from the session before, and other files of the waiting session, answer nothing.
    app.run_with(from_base("elsewhere")).await;
    let change = json!({"changes": [{"path": "a.txt", "content": "a"}]});
    app.post(&session_path(&run, "/files"), &change).await.ok();
    assert_eq!(listed(&app, "").await, ids[1..]);
    let answers = json!([
        answer_to(&run, "c2", json!({"result": {"choice": "yes"}})),
        answer_to(&run, "c3", json!({"decision": "approve"})),
    ]);
    assert_eq!(app.answer(&run, answers).await.ok()["status"], "completed");
    assert_eq!(listed(&app, "").await, [] as [Value; 0]);
    assert_eq!(listed(&app, "kind=client").await, ids[..1]);
    app.finish().await;
}

async fn lists_are_filtered_and_show_one_tenant(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    app.put_agent("other", asker()).await;
    // A fork reads its thread and does not move it.
    app.run_with(json!({"agent": "other", "thread": "t1", "input": "hello"}))
        .await;
    let fork = json!({
        "agent": "other", "thread": "t1", "if_busy": "fork", "input": json!([["c1", "deploy", {}]]).to_string(),
    });
    let fork = app.run_with(fork).await;
    assert_members!(fork, {"status": "waiting", "thread": "t1", "thread_moved": null});
    let mut ids = vec![fork["run_id"].clone()];
    for (agent, thread) in [("asker", "t0"), ("other", "t1"), ("asker", "t2")] {
        let input = json!([["c1", "deploy", {}]]).to_string();
        let run = app
            .run_with(json!({"agent": agent, "thread": thread, "input": input}))
            .await;
        ids.insert(0, run["run_id"].clone());
    }
    for (query, expected) in [
        ("", &[0, 1, 2, 3][..]),
        ("agent=asker", &[0, 2]),
        ("agent=other", &[1, 3]),
        ("thread=t1", &[1]),
        ("agent=other&thread=t1", &[1]),
        ("agent=asker&thread=t1", &[]),
        ("agent=nobody", &[]),
        ("kind=client", &[]),
    ] {
        let expected: Vec<_> = expected.iter().map(|index: &usize| ids[*index].clone()).collect();
        assert_eq!(listed(&app, query).await, expected, "{query}");
    }
    let list = app.get("/v1/approvals").await;
    let threads = json!(column(&list["data"], "thread"));
    assert_eq!(threads, json!(["t2", "t1", "t0", null]));

    let (_, secret) = app.make_key("elsewhere", &[Scope::SessionsRead]).await;
    let elsewhere = read(app.request(Method::GET, "/v1/approvals").bearer_auth(secret)).await;
    assert_eq!(elsewhere.header("x-total"), "0");
    assert_eq!(elsewhere.ok(), json!({"data": [], "next_cursor": null}));
    app.finish().await;
}

async fn expired_calls_are_not_listed(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let mut agent = asker();
    agent["approvals"][0]["expires_after_seconds"] = json!(60);
    app.put_agent("asker", agent).await;
    let run = app
        .wait_for(json!([["c1", "ask", {"question": "?"}], ["c2", "deploy", {}]]))
        .await;
    let (action, id) = (&run["required_action"], run["run_id"].clone());
    let list = app.get("/v1/approvals").await;
    assert_eq!(list["data"][0]["expires_at"], action["calls"][1]["expires_at"]);

    app.clock.advance(TimeDelta::seconds(61));
    assert_eq!(listed(&app, "").await, [] as [Value; 0]);
    assert_eq!(listed(&app, "kind=client").await, std::slice::from_ref(&id));
    let list = app.get("/v1/approvals?kind=client").await;
    assert_members!(list["data"][0], {
        "expires_at": action["calls"][0]["expires_at"],
        "required_action": {"calls": [action["calls"][0]], "answers": [action["answers"][0]]},
    });
    app.clock.advance(TimeDelta::days(8));
    assert_eq!(listed(&app, "kind=client").await, [] as [Value; 0]);
    assert_eq!(app.get(&run_path(&run, "")).await["status"], "waiting");
    app.finish().await;
}

async fn pages_and_calls_are_bounded_in_bytes(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let call = |id: &str| json!([id, "deploy", {"note": "x".repeat(600_000)}]);
    let mut ids = Vec::new();
    for calls in [
        json!([call("c1")]),
        json!([call("c1"), call("c2")]),
        json!([call("c1")]),
    ] {
        ids.insert(0, app.wait_for(calls).await["run_id"].clone());
    }
    let pages = app.pages("/v1/approvals?limit=200").await;
    assert!(pages.len() > 1, "{} pages", pages.len());
    let rows: Vec<_> = pages.iter().flat_map(|page| page["data"].as_array().unwrap()).collect();
    let found: Vec<_> = rows.iter().map(|row| row["run_id"].clone()).collect();
    assert_eq!(found, ids);
    let shown = |row: &Value| {
        let action = &row["required_action"];
        let length = |list: &str| action[list].as_array().unwrap().len();
        (length("calls"), action["omitted_calls"].clone(), length("answers"))
    };
    let found: Vec<_> = rows.into_iter().map(shown).collect();
    assert_eq!(found, [(1, Value::Null, 1), (1, json!(1), 2), (1, Value::Null, 1)]);
    app.finish().await;
}

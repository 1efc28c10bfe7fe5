//! Trees of sessions: listed by their roots and by their members, also after the root is removed.
//! What lists show of a session, so that people recognise it.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use store::open;
use store::retention::{RetentionRules, SweepCursor};
use test_support::databases::TestDatabase;
use test_support::drafts::now;

use super::{ids, line_of_sessions};
use crate::http::service::{NOWHERE, Service};
use crate::support::members::assert_members;

on_every_store! {
    trees_are_listed_by_their_roots,
    a_tree_outlives_its_root,
    sessions_are_recognised_in_lists,
}

fn id(session: &Value) -> &str {
    session["session_id"].as_str().unwrap()
}

async fn trees_are_listed_by_their_roots(service: &Service) {
    let line = line_of_sessions(service, 3).await;
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": line[0]}))
        .await;
    let single = service.run_with(json!({"input": "single", "thread": "one"})).await;
    let imported = service.post("/v1/sessions", &json!({})).await.ok();
    for (thread, session) in [("b", &line[1]), ("a", &line[2])] {
        let body = json!({"session_id": session});
        service.put(&format!("/v1/threads/{thread}"), &body).await.ok();
    }
    let trees = service.rows("/v1/sessions?roots=true&limit=1").await;
    let (root, middle, tip) = (line[0].as_str(), line[1].as_str(), line[2].as_str());
    assert_eq!(ids(&trees), [id(&imported), id(&single), root]);
    let figures = trees.iter().map(|row| &row["tree"]);
    let figures: Vec<Value> = figures
        .map(|tree| json!([tree["session_count"], tree["threads"]]))
        .collect();
    let expected = [json!([1, []]), json!([1, ["one"]]), json!([4, ["a", "b"]])];
    assert_eq!(figures, expected);
    let newest = service.get(&format!("/v1/sessions/{}?include=", id(&fork))).await;
    assert_members!(newest, {"root_session_id": root, "parent_session_id": root});
    assert_eq!(trees[2]["tree"]["last_activity_at"], newest["created_at"]);
    let of_tree = async |root: &str| service.rows(&format!("/v1/sessions?root={root}&limit=2")).await;
    let members = of_tree(root).await;
    assert_eq!(ids(&members), [id(&fork), tip, middle, root]);
    assert!(members.iter().all(|member| member.get("tree").is_none()));
    // A session inside a tree is the root of none.
    for other in [middle, NOWHERE] {
        assert_eq!(ids(&of_tree(other).await), [""; 0]);
    }
    let tips = service
        .rows(&format!("/v1/sessions?root={root}&tips=true&limit=9"))
        .await;
    assert_eq!(ids(&tips), [id(&fork), tip]);
}

/// Removes all sessions to which no thread points.
async fn remove_aged(service: &Service) {
    let store = open(service.database.url(), TestDatabase::settings()).await.unwrap();
    let hour = Duration::from_hours(1);
    let rules = RetentionRules {
        max_age: Some(hour),
        min_age: hour,
        keep_last: None,
        events: hour,
        deliveries: hour,
        unreferenced_contents: hour,
    };
    let mut next = Some(SweepCursor::Start);
    while let Some(cursor) = next {
        let step = store.retention_step(rules, now() + TimeDelta::hours(2), &cursor, 100);
        next = step.await.unwrap().1;
    }
    store.close().await;
}

async fn a_tree_outlives_its_root(service: &Service) {
    let turn = async |input: &str| service.run_with(json!({"input": input, "thread": "main"})).await;
    let root = turn("root").await;
    service
        .run_with(json!({"input": "aside", "base_session_id": root["session_id"]}))
        .await;
    service.run_with(json!({"input": "another tree"})).await;
    let tip = turn("tip").await;
    remove_aged(service).await;
    let removed = service.try_get(&format!("/v1/sessions/{}", id(&root))).await;
    removed.assert_problem("session_not_found");
    let trees = async || service.rows("/v1/sessions?roots=true&limit=1").await;
    let left = trees().await;
    assert_eq!(ids(&left), [id(&tip)]);
    assert_members!(left[0], {
        "root_session_id": root["session_id"], "preview": "tip",
        "tree/session_count": 1, "tree/threads": ["main"],
    });
    // What continues it is of the same tree.
    let grown = turn("more").await;
    let left = trees().await;
    assert_eq!(ids(&left), [id(&tip)]);
    assert_members!(left[0], {"tree/session_count": 2});
    let members = service.rows(&format!("/v1/sessions?root={}&limit=9", id(&root))).await;
    assert_eq!(ids(&members), [id(&grown), id(&tip)]);
    let verified = service.get(&format!("/v1/sessions/{}/verify", id(&grown))).await;
    assert_members!(verified, {"valid": true, "sessions": 2, "removed": 1});
}

async fn sessions_are_recognised_in_lists(service: &Service) {
    let long = "word ".repeat(100);
    let shown = async |session: &Value| {
        let shown = service.get(&format!("/v1/sessions/{}?include=", id(session))).await;
        let listed = service.get("/v1/sessions?limit=1").await["data"][0].clone();
        assert_eq!(shown, listed);
        shown
    };
    let change = async |session: &Value, change: Value| {
        let path = format!("/v1/sessions/{}/files", id(session));
        service.post(&path, &json!({"changes": [change]})).await.ok()
    };
    let body = json!({"input": " Hello\n\n wörld ", "metadata": {"title": "Greeting"}});
    let asked = service.run_with(body).await;
    assert_members!(shown(&asked).await, {
        "title": "Greeting", "preview": "Hello wörld", "run_status": "completed", "has_files_changed": false,
        "merged_session_id": null, "environment_session_id": null, "root_session_id": asked["session_id"],
    });
    // A session without a message of its own has its parent's preview.
    let written = change(&asked, json!({"path": "a", "content": "1"})).await;
    assert_members!(shown(&written).await, {
        "title": "Greeting", "preview": "Hello wörld", "run_status": null, "has_files_changed": true,
    });
    let body = json!({"input": long, "base_session_id": written["session_id"], "metadata": {"title": 7}});
    let continued = service.run_with(body).await;
    assert_members!(shown(&continued).await, {
        "title": null, "preview": long[..159], "run_status": "completed", "has_files_changed": false,
    });
    let emptied = change(&continued, json!({"path": "a", "delete": true})).await;
    assert_members!(shown(&emptied).await, {"has_files_changed": true});
    // An imported session has what its states have.
    let states = service.get(&format!("/v1/sessions/{}", id(&written))).await;
    let body = json!({
        "environment_state": states["environment_state"],
        "message_history_state": {"messages": [{"role": "user", "content": "Imported"}]},
    });
    let imported = service.post("/v1/sessions", &body).await.ok();
    assert_members!(shown(&imported).await, {
        "title": null, "preview": "Imported", "run_status": null, "has_files_changed": true,
        "root_session_id": imported["session_id"], "parent_session_id": null,
    });
}

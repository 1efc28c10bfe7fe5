//! Common ancestors, and merges of two sessions over them.

use serde_json::{Value, json};

use super::{changed, deleted, id_of, session, session_with, texts};
use crate::http::service::{NOWHERE, Service};
use crate::support::answer::Answer;
use crate::support::members::assert_members;

on_every_store! {
    the_nearest_common_ancestor_is_found,
    a_merge_has_the_changes_of_both,
    conflicts_are_listed_and_nothing_is_written,
    variables_and_resources_are_merged_by_name,
    sessions_of_different_lines_are_not_merged,
    bad_merges_are_refused,
}

async fn merge(service: &Service, session_id: &str, with: &str) -> Answer {
    service
        .post(&format!("/v1/sessions/{session_id}/merge"), &json!({"with": with}))
        .await
}

async fn ancestor(service: &Service, one: &str, other: &str) -> Value {
    service.get(&format!("/v1/sessions/{one}/ancestor/{other}")).await
}

async fn the_nearest_common_ancestor_is_found(service: &Service) {
    let root = session_with(service, &[("a", "1")]).await;
    let middle = changed(service, &root, &[("a", "2")]).await;
    let left = changed(service, &middle, &[("a", "3")]).await;
    let mut right = middle.clone();
    for turn in 0..3 {
        right = changed(service, &right, &[("b", &turn.to_string())]).await;
    }
    for (one, other, nearest) in [
        (&left, &right, &middle),
        (&right, &left, &middle),
        (&left, &left, &left),
        (&root, &right, &root),
        (&right, &middle, &middle),
    ] {
        assert_eq!(id_of(&ancestor(service, one, other).await), **nearest);
    }
    // The root has the session without files above it.
    let found = ancestor(service, &left, &right).await;
    assert_members!(found, {"depth": 2, "agent": "demo"});
    // Sessions of different lines have none.
    let stranger = session(service).await;
    let answer = service
        .try_get(&format!("/v1/sessions/{left}/ancestor/{stranger}"))
        .await;
    answer.assert_problem("no_common_ancestor");
    for path in [
        format!("{NOWHERE}/ancestor/{left}"),
        format!("{left}/ancestor/{NOWHERE}"),
    ] {
        let answer = service.try_get(&format!("/v1/sessions/{path}")).await;
        answer.assert_problem("session_not_found");
    }
}

async fn a_merge_has_the_changes_of_both(service: &Service) {
    let lines = (0..9).map(|line| format!("line {line}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    let files = [("text", lines.as_str()), ("gone", "x"), ("left", "1"), ("right", "1")];
    let base = session_with(service, &files).await;
    let run = service.run_with(json!({"input": "hi", "base_session_id": base})).await;
    let left = run["session_id"].as_str().unwrap();
    let left_text = lines.replace("line 0", "LINE 0");
    let left = changed(service, left, &[("text", &left_text), ("left", "2")]).await;
    let right_text = lines.replace("line 8", "LINE 8");
    let right = changed(service, &base, &[("text", &right_text), ("right", "2"), ("new/x", "3")]).await;
    let right = deleted(service, &right, &["gone"]).await;

    let answer = merge(service, &left, &right).await;
    assert_eq!(answer.status, 201);
    let made = answer.ok();
    assert_members!(made, {"parent_session_id": left, "run_id": null});
    assert_members!(made, {"merged_session_id": right, "environment_session_id": null, "has_files_changed": true});
    assert_eq!(made["message_count"], 2, "the talk is that of the session in the path");
    let both = left_text.replace("line 8", "LINE 8");
    let expected = [("left", "2"), ("new/x", "3"), ("right", "2"), ("text", both.as_str())];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(texts(service, &id_of(&made)).await, expected);
    let verified = service.get(&format!("/v1/sessions/{}/verify", id_of(&made))).await;
    assert_eq!(verified["valid"], true);
    // The other direction has the same files and the other talk.
    let other = merge(service, &right, &left).await.ok();
    assert_members!(other, {"message_count": 0, "merged_session_id": left});
    let listed = service.get("/v1/sessions?limit=1").await;
    assert_members!(listed, {"data/0/session_id": other["session_id"], "data/0/merged_session_id": left});
    assert_eq!(
        texts(service, &id_of(&other)).await,
        texts(service, &id_of(&made)).await
    );
    // Nothing new comes from an ancestor, and all of a descendant.
    let same = merge(service, &left, &base).await.ok();
    assert_eq!(texts(service, &id_of(&same)).await, texts(service, &left).await);
    let all = merge(service, &base, &left).await.ok();
    assert_eq!(texts(service, &id_of(&all)).await, texts(service, &left).await);
}

async fn conflicts_are_listed_and_nothing_is_written(service: &Service) {
    let base = session_with(service, &[("both", "1"), ("gone", "1"), ("same", "1")]).await;
    let left = changed(
        service,
        &base,
        &[("both", "2"), ("gone", "2"), ("new", "a"), ("same", "2"), ("x", "1")],
    )
    .await;
    let right = changed(
        service,
        &base,
        &[("both", "3"), ("new", "b"), ("same", "2"), ("x/y", "1")],
    )
    .await;
    let right = deleted(service, &right, &["gone"]).await;
    let count = service.counts().await;
    let answer = merge(service, &left, &right).await;
    answer.assert_problem("merge_conflict");
    let conflict = |name: &str, kind: &str| json!({"part": "files", "name": name, "kind": kind});
    let expected = json!([
        conflict("both", "both_changed"),
        conflict("gone", "changed_and_deleted"),
        conflict("new", "both_added"),
        conflict("x", "file_and_directory"),
    ]);
    assert_eq!(answer.json()["conflicts"], expected, "{}", answer.text());
    assert_eq!(answer.json()["detail"], "both sessions changed both and 3 more");
    assert_eq!(service.counts().await, count);
}

async fn variables_and_resources_are_merged_by_name(service: &Service) {
    let states = json!({"environment_state": {"variables": {"a": 1, "b": 1, "c": 1}, "resources": {"r": {"x": 1}}}});
    let base = id_of(&service.post("/v1/sessions", &states).await.ok());
    let run = async |variables: Value| {
        let run = json!({"input": "hi", "base_session_id": base, "variables": variables});
        service.run_with(run).await["session_id"].as_str().unwrap().to_owned()
    };
    let left = run(json!({"a": 2, "d": 4})).await;
    let right = run(json!({"b": 2, "c": null, "d": 4})).await;
    let made = merge(service, &left, &right).await.ok();
    let expected = json!({"variables": {"a": 2, "b": 2, "d": 4}, "resources": {"r": {"x": 1}}});
    assert_eq!(made["environment_state"], expected);
    let other = run(json!({"a": 3, "d": null})).await;
    let answer = merge(service, &left, &other).await;
    answer.assert_problem("merge_conflict");
    let expected = json!([{"part": "variables", "name": "a", "kind": "both_changed"}]);
    assert_eq!(answer.json()["conflicts"], expected);
}

async fn sessions_of_different_lines_are_not_merged(service: &Service) {
    let (one, other) = (session(service).await, session(service).await);
    merge(service, &one, &other).await.assert_problem("no_common_ancestor");
    merge(service, &one, NOWHERE).await.assert_problem("session_not_found");
    merge(service, NOWHERE, &one).await.assert_problem("session_not_found");
}

async fn bad_merges_are_refused(service: &Service) {
    let one = session(service).await;
    let path = format!("/v1/sessions/{one}/merge");
    for (body, code, pointer) in [
        (json!({}), "missing_field", "/with"),
        (json!({"with": "x"}), "malformed_id", "/with"),
        (json!({"with": one, "strategy": "ours"}), "unknown_field", "/strategy"),
        (json!({"with": one, "conflict": "x"}), "invalid_field", "/conflict"),
    ] {
        let answer = service.post(&path, &body).await;
        answer.assert_problem_at(code, pointer);
    }
    let first = changed(service, &one, &[("a", "1")]).await;
    let body = json!({"with": first, "conflict": "reject"});
    service.post(&path, &body).await.assert_problem("base_session_conflict");
}

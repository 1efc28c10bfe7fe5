//! Sessions over HTTP: shown whole and in parts, compared, listed.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::service::Service;
use crate::support::answer::{Answer, read};

on_every_store! {
    a_session_shows_its_states_or_those_asked_for,
    a_session_that_the_caller_has_is_not_sent_again,
    messages_are_paged_by_index,
    the_tree_of_sessions_can_be_walked,
    two_sessions_are_compared,
    sessions_are_found_by_their_metadata,
    the_session_of_a_failed_run_is_never_there,
}

async fn line_of_sessions(service: &Service, length: usize) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for turn in 0..length {
        let run = service
            .run_with(
                json!({"input": format!("turn {turn}"), "base_session_id": ids.last(), "variables": {"turn": turn}}),
            )
            .await;
        ids.push(run["session_id"].as_str().unwrap().to_owned());
    }
    ids
}

async fn get_if_changed(service: &Service, path: &str, tag: &str) -> Answer {
    read(service.request(Method::GET, path).header(header::IF_NONE_MATCH, tag)).await
}

/// Follows the cursors of a list and returns all rows.
async fn all_rows(service: &Service, path: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = service.get(&format!("{path}{cursor}")).await;
        rows.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_cursor"].as_str() else {
            return rows;
        };
        cursor = format!("&cursor={next}");
    }
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["session_id"].as_str().unwrap()).collect()
}

async fn a_session_shows_its_states_or_those_asked_for(service: &Service) {
    let run = service
        .run_with(json!({"input": "hi", "variables": {"city": "Bern"}, "metadata": {"user": "u1"}}))
        .await;
    let path = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
    let answer = service.try_get(&path).await;
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    let tag = answer.header("etag").to_owned();
    let session = answer.ok();
    assert_eq!(tag, format!("\"{}\"", session["root_hash"].as_str().unwrap()));
    assert_eq!(
        (&session["run_id"], &session["parent_session_id"]),
        (&run["run_id"], &Value::Null)
    );
    assert_eq!(
        (
            &session["depth"],
            &session["execution_count"],
            &session["message_count"]
        ),
        (&json!(0), &json!(1), &json!(2))
    );
    assert_eq!(session["environment_state"]["variables"], json!({"city": "Bern"}));
    assert_eq!(session["context_state"]["metadata"], session["metadata"]);
    assert_eq!(
        session["message_history_state"]["messages"][1]["content"][0]["text"],
        "echo: hi"
    );
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| key.ends_with("_state"))
            .cloned()
            .collect::<Vec<_>>()
    };
    for (include, shown) in [
        ("context_state", &["context_state"][..]),
        (
            "message_history_state,environment_state",
            &["environment_state", "message_history_state"],
        ),
        ("", &[]),
    ] {
        assert_eq!(
            keys(&service.get(&format!("{path}?include={include}")).await),
            shown,
            "{include}"
        );
    }
}

async fn a_session_that_the_caller_has_is_not_sent_again(service: &Service) {
    let id = line_of_sessions(service, 1).await.remove(0);
    let path = format!("/v1/sessions/{id}");
    let tag = service.try_get(&path).await.header("etag").to_owned();
    for given in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = get_if_changed(service, &path, &given).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body.len(), answer.header("etag")),
            (304, 0, tag.as_str()),
            "{given}"
        );
    }
    assert_eq!(get_if_changed(service, &path, "\"x\"").await.status, 200);
    let nowhere = "/v1/sessions/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
    get_if_changed(service, nowhere, "*")
        .await
        .assert_problem("session_not_found");
}

async fn messages_are_paged_by_index(service: &Service) {
    let id = line_of_sessions(service, 3).await.remove(2);
    let path = format!("/v1/sessions/{id}");
    let whole = service.get(&path).await["message_history_state"]["messages"].clone();
    assert_eq!(
        Value::from(all_rows(service, &format!("{path}/messages?limit=4")).await),
        whole
    );
    let page = service.get(&format!("{path}/messages?from=4&limit=2")).await;
    assert_eq!(
        (&page["from"], &page["total"], &page["next_cursor"]),
        (&json!(4), &json!(6), &Value::Null)
    );
    assert_eq!(page["data"][0], whole[4]);
    let beyond = service.get(&format!("{path}/messages?from=100")).await;
    assert_eq!((&beyond["data"], &beyond["next_cursor"]), (&json!([]), &Value::Null));
}

async fn the_tree_of_sessions_can_be_walked(service: &Service) {
    let line = line_of_sessions(service, 4).await;
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": line[0]}))
        .await["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let lineage = all_rows(service, &format!("/v1/sessions/{}/lineage?limit=2", line[3])).await;
    assert_eq!(ids(&lineage), [&line[3], &line[2], &line[1], &line[0]]);
    let children = all_rows(service, &format!("/v1/sessions/{}/children?limit=1", line[0])).await;
    assert_eq!(ids(&children), [&fork, &line[1]]);
    assert_eq!(
        ids(&all_rows(service, "/v1/sessions?tips=true").await),
        [&fork, &line[3]]
    );
    assert_eq!(all_rows(service, "/v1/sessions?limit=2").await.len(), 5);
    assert!(lineage[0].get("message_history_state").is_none());
    let verified = service.get(&format!("/v1/sessions/{}/verify", line[3])).await;
    assert_eq!(
        verified,
        json!({"session_id": line[3], "valid": true, "sessions": 4, "removed": 0, "messages": 8, "faults": []})
    );
}

async fn two_sessions_are_compared(service: &Service) {
    let line = line_of_sessions(service, 2).await;
    let fork = service
        .run_with(json!({"input": "fork", "base_session_id": line[0], "variables": {"x": 1}}))
        .await;
    let diff = service
        .get(&format!(
            "/v1/sessions/{}/diff/{}",
            line[1],
            fork["session_id"].as_str().unwrap()
        ))
        .await;
    assert_eq!(
        (&diff["left_session_id"], &diff["right_session_id"]),
        (&json!(line[1]), &fork["session_id"])
    );
    assert_eq!(diff["shared_messages"], 2);
    assert_eq!(
        (
            diff["left_messages"].as_array().unwrap().len(),
            diff["right_messages"].as_array().unwrap().len()
        ),
        (2, 2)
    );
    let changes = json!([{"path": "/variables/turn", "left": 1, "right": 0}, {"path": "/variables/x", "right": 1}]);
    assert_eq!(diff["environment"], changes);
}

async fn sessions_are_found_by_their_metadata(service: &Service) {
    for user in ["ann", "bob"] {
        service
            .run_with(json!({"input": "hi", "metadata": {"user": user, "n": 1}}))
            .await;
    }
    let count = async |query: &str| all_rows(service, &format!("/v1/sessions?limit=10&{query}")).await.len();
    assert_eq!(count("metadata.user=ann").await, 1);
    assert_eq!(count("metadata={\"n\":1}").await, 2);
    assert_eq!(count("metadata={\"n\":1}&metadata.user=bob&agent=demo").await, 1);
    assert_eq!(count("metadata.user=eve").await, 0);
    assert_eq!(count("created_until=2020-01-01T00:00:00Z").await, 0);
    assert_eq!(count("created_from=2020-01-01T00:00:00%2B01:00").await, 2);
}

async fn the_session_of_a_failed_run_is_never_there(service: &Service) {
    let failing = json!({"model": "mock/echo", "system_prompt": "{{ variables.gone }}"});
    service.put("/v1/agents/failing", &failing).await.ok();
    let run = service.run_with(json!({"agent": "failing", "input": "hi"})).await;
    assert_eq!(run["status"], "failed", "{run:#}");
    let session = run["session_id"].as_str().unwrap();
    let answer = service.try_get(&format!("/v1/sessions/{session}")).await;
    answer.assert_problem("session_not_committed");
    let continued = service
        .post("/v1/runs", &json!({"input": "hi", "base_session_id": session}))
        .await;
    continued.assert_problem("session_not_committed");
    for problem in [answer.json(), continued.json()] {
        assert_eq!(problem["run_id"], run["run_id"]);
        assert_eq!(problem["run_status"], "failed");
        let words = problem["detail"].as_str().unwrap();
        assert!(words.contains("will never be committed"), "{words}");
    }
}

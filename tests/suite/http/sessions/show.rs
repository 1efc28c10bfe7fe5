//! A session is shown whole and in parts, with its messages by index.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::line_of_sessions;
use crate::http::service::Service;
use crate::support::answer::{Answer, read};
use crate::support::members::assert_members;
use crate::support::test_app::session_path;

on_every_store! {
    a_session_shows_its_states_or_those_asked_for,
    a_session_that_the_caller_has_is_not_sent_again,
    messages_are_paged_by_index,
    the_session_of_a_failed_run_is_never_there,
}

async fn get_if_changed(service: &Service, path: &str, tag: &str) -> Answer {
    read(service.request(Method::GET, path).header(header::IF_NONE_MATCH, tag)).await
}

async fn a_session_shows_its_states_or_those_asked_for(service: &Service) {
    let run = service
        .run_with(json!({"input": "hi", "variables": {"city": "Bern"}, "metadata": {"user": "u1"}}))
        .await;
    let path = session_path(&run, "");
    let answer = service.try_get(&path).await;
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    let tag = answer.header("etag").to_owned();
    let session = answer.ok();
    assert_eq!(tag, format!("\"{}\"", session["root_hash"].as_str().unwrap()));
    assert_members!(session, {"run_id": run["run_id"], "parent_session_id": null});
    assert_members!(session, {"depth": 0, "execution_count": 1, "message_count": 2});
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
        Value::from(service.rows(&format!("{path}/messages?limit=4")).await),
        whole
    );
    let page = service.get(&format!("{path}/messages?from=4&limit=2")).await;
    assert_members!(page, {"from": 4, "total": 6, "next_cursor": null, "data/0": whole[4]});
    // Backwards, from the end of which nothing is known.
    let last = service
        .get(&format!("{path}/messages?before={}&limit=2", u32::MAX))
        .await;
    assert_eq!(last, page);
    let before = service.get(&format!("{path}/messages?before=4&limit=3")).await;
    assert_members!(before, {"from": 1, "total": 6, "data": whole.as_array().unwrap()[1..4]});
    let cursor = before["next_cursor"].as_str().unwrap();
    let after = service.get(&format!("{path}/messages?cursor={cursor}")).await;
    assert_members!(after, {"from": 4, "data/0": whole[4]});
    let first = service.get(&format!("{path}/messages?before=1")).await;
    assert_members!(first, {"from": 0, "data": whole.as_array().unwrap()[..1]});
    let none = service.get(&format!("{path}/messages?before=0")).await;
    assert_members!(none, {"from": 0, "total": 6, "data": []});
    let beyond = service.get(&format!("{path}/messages?from=100")).await;
    assert_members!(beyond, {"data": [], "next_cursor": null});
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
        assert_members!(problem, {"run_id": run["run_id"], "run_status": "failed"});
        let words = problem["detail"].as_str().unwrap();
        assert!(words.contains("will never be committed"), "{words}");
    }
}

//! Sessions that are made of given states.

use serde_json::{Value, json};

use super::service::Service;

on_every_store! {
    a_session_is_made_of_given_states_and_continued,
}

async fn a_session_is_made_of_given_states_and_continued(service: &Service) {
    let first = service
        .run_with(json!({"input": "hi", "variables": {"city": "Bern"}}))
        .await;
    let shown = service
        .get(&format!("/v1/sessions/{}", first["session_id"].as_str().unwrap()))
        .await;
    let states = ["environment_state", "context_state", "message_history_state"];
    let body: Value = states
        .iter()
        .map(|state| ((*state).to_owned(), shown[*state].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let answer = service.post("/v1/sessions", &body).await;
    let location = answer.header("location").to_owned();
    assert_eq!(answer.status, 201);
    let made = answer.ok();
    assert_eq!(
        location,
        format!("/v1/sessions/{}", made["session_id"].as_str().unwrap())
    );
    assert_eq!(
        (&made["run_id"], &made["parent_session_id"], &made["agent"]),
        (&Value::Null, &Value::Null, &json!("demo"))
    );
    assert_eq!(made["message_history_state"], shown["message_history_state"]);
    assert_eq!(made["environment_state"], shown["environment_state"]);
    assert_eq!(
        made["context_state"], shown["context_state"],
        "its times stay as they were"
    );
    assert_eq!(service.get(&location).await, made);
    let continued = service
        .run_with(json!({"input": "again", "base_session_id": made["session_id"]}))
        .await;
    assert_eq!(continued["output_text"], "echo: again");
    // A short form: ids and times are made, unknown keys are kept.
    let short = json!({"environment_state": {"theme": "dark"}, "message_history_state": {"messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]}});
    let made = service.post("/v1/sessions", &short).await.ok();
    assert_eq!(
        (&made["message_count"], &made["environment_state"]["theme"]),
        (&json!(2), &json!("dark"))
    );
}

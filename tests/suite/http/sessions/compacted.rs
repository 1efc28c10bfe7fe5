//! Compacted sessions: all messages stay readable under their indexes, and a run reads from the
//! summary on.

use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::members::assert_members;
use crate::support::test_app::session_path;

on_every_store! {
    a_compacted_session_shows_all_its_messages,
    a_run_of_a_compacted_session_reads_what_is_not_covered,
    a_summary_that_covers_what_it_can_not_is_refused,
}

/// A history of five messages, of which the last stands for the first three.
fn messages(from: u64, to: u64) -> Value {
    json!([
        {"role": "user", "content": "first question"},
        {"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "calculator", "arguments": "{}"}]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "calculator", "content": []}]},
        {"role": "assistant", "content": "kept answer"},
        {"role": "user", "content": "what came before", "tags": {"section": "summary", "covers": {"from": from, "to": to}}},
    ])
}

/// Makes the session; returns its path and what was answered.
async fn import(service: &Service) -> (String, Value) {
    let body = json!({"message_history_state": {"messages": messages(0, 3)}});
    let made = service.post("/v1/sessions", &body).await.ok();
    (session_path(&made, ""), made)
}

fn texts(messages: &Value) -> Vec<&str> {
    messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0]["text"].as_str().unwrap_or("-"))
        .collect()
}

const IMPORTED: [&str; 5] = ["first question", "-", "-", "kept answer", "what came before"];

async fn a_compacted_session_shows_all_its_messages(service: &Service) {
    let (path, made) = import(service).await;
    assert_eq!(made["message_count"], 5);
    assert_eq!(texts(&made["message_history_state"]["messages"]), IMPORTED);
    assert_eq!(service.get(&path).await, made);
    let covers = &made["message_history_state"]["messages"][4]["tags"]["covers"];
    assert_eq!(*covers, json!({"from": 0, "to": 3}));
    let page = service.get(&format!("{path}/messages?from=1&limit=3")).await;
    assert_members!(page, {"from": 1, "total": 5, "next_cursor": "m0000000000000004"});
    assert_eq!(texts(&page["data"]), IMPORTED[1..4]);
    let continued = |text: &str| json!({"input": text, "base_session_id": made["session_id"]});
    let (left, right) = (
        service.run_with(continued("left")).await,
        service.run_with(continued("right")).await,
    );
    let [left, right] = [&left, &right].map(|run| run["session_id"].as_str().unwrap());
    let shown = service.get(&format!("/v1/sessions/{left}")).await;
    assert_eq!(shown["message_count"], 7);
    let shown = texts(&shown["message_history_state"]["messages"]);
    assert_eq!((&shown[..5], &shown[5..]), (&IMPORTED[..], &["left", "echo: left"][..]));
    let diff = service.get(&format!("/v1/sessions/{left}/diff/{right}")).await;
    assert_eq!(diff["shared_messages"], 5);
    assert_eq!(texts(&diff["right_messages"]), ["right", "echo: right"]);
    let verified = service.get(&format!("/v1/sessions/{left}/verify")).await;
    assert_members!(verified, {"valid": true, "messages": 7});
    // What is shown can be sent back.
    let shown = service.get(&format!("/v1/sessions/{left}")).await;
    let again = json!({"message_history_state": shown["message_history_state"]});
    let again = service.post("/v1/sessions", &again).await.ok();
    assert_eq!(again["message_history_state"], shown["message_history_state"]);
}

async fn a_run_of_a_compacted_session_reads_what_is_not_covered(service: &Service) {
    let (_, made) = import(service).await;
    let run = service
        .run_with(json!({"input": "and now", "base_session_id": made["session_id"]}))
        .await;
    assert_eq!(run["output_text"], "echo: and now");
    let sent = service.models.requests().remove(0).to_string();
    for text in ["kept answer", "and now"] {
        assert!(sent.contains(text), "{text}: {sent}");
    }
    assert!(!sent.contains("first question"), "{sent}");
}

async fn a_summary_that_covers_what_it_can_not_is_refused(service: &Service) {
    for (from, to) in [(0, 5), (1, 3), (0, 2), (0, 0)] {
        let body = json!({"message_history_state": {"messages": messages(from, to)}});
        let answer = service.post("/v1/sessions", &body).await;
        answer.assert_problem("invalid_history");
    }
    assert_eq!(service.counts().await, (0, 0));
}

//! The request prefix is byte-stable: what a provider has cached of one request begins the next.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    each_request_begins_with_the_bytes_of_the_one_before,
    a_continued_run_begins_with_what_the_stopped_one_has_done,
);

async fn each_request_begins_with_the_bytes_of_the_one_before(database: TestDatabase) {
    let mock = MockModel::start(|request| Reply::text(&format!("noted: {}", last_user_text(request)))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({"model": "mock/m", "system_prompt": "Answer in {{ variables.language }}.", "tools": ["calculator", "current_time"]});
    app.put_agent("steady", agent).await;
    let mut base = None;
    for turn in 0..4 {
        let mut body = json!({"agent": "steady", "input": format!("turn {turn} \u{1F980}"), "budget": {"max_tokens": 100_000 - turn}});
        match &base {
            Some(base) => body["base_session_id"] = json!(base),
            None => body["variables"] = json!({"language": "French"}),
        }
        let result = app.run_with(body).await;
        assert_eq!(result["status"], "completed", "{result:#}");
        base = result["session_id"].as_str().map(ToOwned::to_owned);
    }
    let requests = mock.raw_requests();
    assert_eq!(requests.len(), 4);
    assert!(String::from_utf8_lossy(&requests[0]).contains("Answer in French."));
    for pair in requests.windows(2) {
        let stable = through_messages(&pair[0]);
        assert!(
            pair[1].starts_with(stable),
            "{}\nis not the beginning of\n{}",
            String::from_utf8_lossy(stable),
            String::from_utf8_lossy(&pair[1])
        );
    }
    app.finish().await;
}

/// The body up to the end of its last message: the bracket that closes the list is where the next
/// request goes on.
fn through_messages(body: &[u8]) -> &[u8] {
    let parsed: serde_json::Value = serde_json::from_slice(body).unwrap();
    let last = serde_json::to_string(&last_user_text(&parsed)).unwrap();
    let text = std::str::from_utf8(body).unwrap();
    let at = text.rfind(&last).unwrap() + last.len();
    let end = at + text[at..].find('}').unwrap() + 1;
    &body[..end]
}

/// Asks for a tool as long as it is told to work.
fn working(request: &Value) -> Reply {
    let words = last_user_text(request);
    if words.starts_with("work") {
        let step = request["messages"].as_array().unwrap().len();
        return Reply::call(
            &format!("call_{step}"),
            "calculator",
            &json!({"expression": format!("{step} + 1")}),
        );
    }
    Reply::text(&format!("did {words}"))
}

async fn a_continued_run_begins_with_what_the_stopped_one_has_done(database: TestDatabase) {
    let mock = MockModel::start(working).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for (name, traces) in [("steady", None), ("forgetful", Some("none")), ("thorough", Some("all"))] {
        let mut agent = json!({"model": "mock/m", "system_prompt": "Work.", "tools": ["calculator"]});
        if let Some(traces) = traces {
            agent["traces"] = json!(traces);
        }
        app.put_agent(name, agent).await;
    }
    let turn = async |agent: &str, base: &Value, input: &str, status: &str| {
        let mut body = json!({"agent": agent, "input": input, "budget": {"max_steps": 2}});
        if !base.is_null() {
            body["base_session_id"] = base.clone();
        }
        let result = app.run_with(body).await;
        assert_eq!(result["status"], status, "{result:#}");
        result["session_id"].clone()
    };
    let first = turn("steady", &Value::Null, "work", "stopped").await;
    let second = turn("steady", &first, "work on", "stopped").await;
    let answered = turn("steady", &second, "finish", "completed").await;
    let later = turn("steady", &answered, "thanks", "completed").await;
    turn("steady", &later, "bye", "completed").await;
    let requests = mock.raw_requests();
    assert_eq!(requests.len(), 7);
    // Two steps of each of the first two turns, and the one that finishes: each goes on from the
    // bytes of the one before.
    for pair in requests[..5].windows(2) {
        assert_begins(&pair[1], &pair[0]);
    }
    // The work has led to an answer and is left out: once, the prefix is that of the first turn.
    assert_begins(&requests[5], &requests[0]);
    assert!(!requests[5].starts_with(messages_of(&requests[1])));
    assert_eq!(call_count(&requests[5]), 0);
    assert_begins(&requests[6], &requests[5]);

    // A fork of the stopped session sees the work as well, unless its agent wants none, and more
    // where it wants all.
    turn("steady", &second, "finish otherwise", "completed").await;
    turn("forgetful", &second, "finish", "completed").await;
    turn("thorough", &answered, "finish", "completed").await;
    let forks: Vec<usize> = mock.raw_requests()[7..]
        .iter()
        .map(|request| call_count(request))
        .collect();
    assert_eq!(forks, [4, 0, 4]);
    app.finish().await;
}

#[track_caller]
fn assert_begins(body: &[u8], before: &[u8]) {
    let stable = messages_of(before);
    assert!(
        body.starts_with(stable),
        "{}\nis not the beginning of\n{}",
        String::from_utf8_lossy(stable),
        String::from_utf8_lossy(body)
    );
}

/// The body up to the end of its last message.
fn messages_of(body: &[u8]) -> &[u8] {
    let text = std::str::from_utf8(body).unwrap();
    let open = text.find("\"messages\":[").unwrap() + "\"messages\":[".len();
    let (mut depth, mut is_text, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' if !is_text && depth == 0 => return &body[..at],
            b']' | b'}' if !is_text => depth -= 1,
            _ => {}
        }
    }
    panic!("the messages have no end: {text}")
}

fn call_count(body: &[u8]) -> usize {
    let request: Value = serde_json::from_slice(body).unwrap();
    let messages = request["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message.get("tool_calls").is_some())
        .count()
}

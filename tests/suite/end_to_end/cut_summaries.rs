//! A summary that is not whole: it replaces nothing, and the conversation goes on without it.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::compaction::{id, is_summary, long, said, start};
use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    a_summary_that_is_not_whole_replaces_nothing,
    a_cut_summary_does_not_replace_the_last_one,
);

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

/// Words that end for a reason.
fn ends(words: &str, reason: &str) -> Reply {
    Reply::Events(vec![
        chunk(&json!({"content": words}), None),
        chunk(&json!({}), Some(reason)),
    ])
}

/// A summary that is cut by a limit or a filter, refused, empty or broken.
fn broken(kind: &str) -> Reply {
    match kind {
        "refusal" => Reply::Events(vec![
            chunk(&json!({"refusal": "I won't. STOLEN"}), None),
            chunk(&json!({}), Some("stop")),
        ]),
        "empty" => ends(" ", "stop"),
        "status" => Reply::Status(500, "{}".to_owned()),
        "connection" => Reply::Cut(vec!["They said STOLEN".to_owned(), "and more".to_owned()]),
        reason => ends("They said STOLEN", reason),
    }
}

async fn messages(app: &TestApp, run: &Value) -> Vec<Value> {
    let session = app.get(&format!("/v1/sessions/{}", id(run))).await;
    session["message_history_state"]["messages"].as_array().unwrap().clone()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

async fn a_summary_that_is_not_whole_replaces_nothing(database: TestDatabase) {
    for kind in [
        "length",
        "content_filter",
        "unheard_of",
        "refusal",
        "empty",
        "status",
        "connection",
    ] {
        let mock = MockModel::start(move |request| {
            if is_summary(request) {
                return broken(kind);
            }
            Reply::text("fine")
        });
        let mock = mock.await;
        let app = start(&database, &mock, json!({"context_window": 100})).await;
        let first = app.run(None, &long("one", 20)).await;
        let events = app
            .stream(json!({"agent": "echo", "input": long("two", 200), "base_session_id": id(&first)}))
            .await;
        let warnings = of_kind(&events, "hook.warned");
        assert_eq!(warnings.len(), 1, "{kind}: {events:#?}");
        assert_eq!(warnings[0]["data"]["hook"], "summarisation", "{kind}");
        let words = warnings[0]["data"]["message"].as_str().unwrap();
        assert!(
            words.starts_with("the conversation is not summarised: "),
            "{kind}: {words}"
        );
        assert!(of_kind(&events, "history.compacted").is_empty(), "{kind}");
        // The step after it reads the whole history, and so does the next turn.
        let talk = |requests: Vec<Value>| said(requests.last().unwrap());
        assert_eq!(
            talk(mock.requests()),
            ["user: one", "assistant: fine", "user: two"],
            "{kind}"
        );
        let second = &events.last().unwrap()["data"];
        let stored = messages(&app, second).await;
        assert_eq!(stored.len(), 4, "{kind}: {stored:#?}");
        assert!(!json!(stored).to_string().contains("STOLEN"), "{kind}");
        let third = app.run(Some(id(second)), "three").await;
        assert_eq!(
            talk(mock.requests()),
            [
                "user: one",
                "assistant: fine",
                "user: two",
                "assistant: fine",
                "user: three"
            ],
            "{kind}"
        );
        assert_eq!(messages(&app, &third).await.len(), 6, "{kind}");
        let verified = app.get(&format!("/v1/sessions/{}/verify", id(&third))).await;
        assert_members!(verified, {"valid": true, "messages": 6});
        app.finish().await;
    }
}

async fn a_cut_summary_does_not_replace_the_last_one(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if is_summary(request) {
            let is_second = last_user_text(request).contains("They said one.");
            return ends("They said one.", if is_second { "length" } else { "stop" });
        }
        Reply::text("fine")
    });
    let mock = mock.await;
    let app = start(&database, &mock, json!({"context_window": 100})).await;
    let first = app.run(None, &long("one", 20)).await;
    let second = app.run(Some(id(&first)), &long("two", 90)).await;
    let third = app.run(Some(id(&second)), &long("three", 90)).await;
    assert_eq!(
        said(mock.requests().last().unwrap()),
        ["user: <They said one.>", "user: two", "assistant: fine", "user: three"]
    );
    let stored = messages(&app, &third).await;
    let covers: Vec<_> = stored
        .iter()
        .map(|message| &message["tags"]["covers"])
        .filter(|covers| covers.is_object())
        .collect();
    assert_eq!(covers, [&json!({"from": 0, "to": 2})]);
    app.finish().await;
}

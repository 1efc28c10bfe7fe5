//! Long conversations over HTTP: the hook `summarisation` keeps requests short, nothing is deleted,
//! and a summary never costs a run.

use std::sync::Arc;

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::tenant::TenantId;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text};
use crate::support::test_app::TestApp;
use crate::support::text::assert_lacks;

on_every_store!(
    a_long_conversation_goes_on_from_its_summary,
    a_fork_from_before_the_summary_reads_everything,
    work_within_a_run_is_summarised_between_its_calls,
    a_conversation_that_the_provider_finds_too_long_is_summarised_and_asked_again,
    a_conversation_that_stays_too_long_fails_after_one_more_try,
    a_summary_that_takes_too_many_requests_is_given_up_before_the_first,
    a_run_cancelled_during_its_summary_publishes_nothing,
    a_model_of_its_own_writes_the_summaries,
    a_window_that_is_not_known_is_refused_with_the_agent,
    ten_thousand_turns_run_like_twenty
);

const TOO_LONG: &str = r#"{"error": {"message": "too long", "code": "context_length_exceeded"}}"#;

/// Tells whether the request asks for a summary.
pub(super) fn is_summary(request: &Value) -> bool {
    let first = &request["messages"][0];
    first["role"] == "system" && content_text(&first["content"]).starts_with("You keep the memory")
}

/// Returns who says what in a request; of long texts the first word.
pub(super) fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let line = |message: &Value| {
        let text = content_text(&message["content"]);
        let text = match text.split_once("\n\n") {
            Some((head, summary)) if head.starts_with("This is a summary") => format!("<{summary}>"),
            _ => text.split(' ').next().unwrap_or_default().to_owned(),
        };
        format!("{}: {text}", message["role"].as_str().unwrap())
    };
    messages.map(line).collect()
}

/// Says "echo" to the user and "summary N" to the hook.
async fn summarising_mock() -> MockModel {
    let count = std::sync::atomic::AtomicUsize::new(0);
    MockModel::start(move |request| {
        if is_summary(request) {
            let number = 1 + count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Reply::text(&format!("summary {number}"));
        }
        Reply::text(&format!("echo {}", last_user_text(request)))
    })
    .await
}

pub(super) async fn start(database: &TestDatabase, mock: &MockModel, config: Value) -> TestApp {
    let app = TestApp::start_bare(database.url(), mock, &[]).await;
    let hook = json!({"name": "summarisation", "config": config});
    app.put_agent(
        "echo",
        json!({"model": "mock/m", "hooks": [hook], "tools": ["calculator"]}),
    )
    .await;
    app
}

/// A word and what makes it as many tokens, as sizes are estimated.
pub(super) fn long(word: &str, tokens: usize) -> String {
    format!("{word} {}", "x".repeat(4 * tokens - word.len() - 1))
}

pub(super) fn id(run: &Value) -> &str {
    assert_eq!(run["status"], "completed", "{run:#}");
    run["session_id"].as_str().unwrap()
}

async fn messages(app: &TestApp, session_id: &str) -> Vec<Value> {
    let session = app.get(&format!("/v1/sessions/{session_id}")).await;
    session["message_history_state"]["messages"].as_array().unwrap().clone()
}

async fn a_long_conversation_goes_on_from_its_summary(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = start(&database, &mock, json!({"context_window": 100})).await;
    let first = app.run(None, &long("one", 20)).await;
    let events = app
        .stream(json!({"agent": "echo", "input": long("two", 90), "base_session_id": id(&first)}))
        .await;
    let compacted: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "history.compacted")
        .collect();
    assert_eq!(compacted.len(), 1);
    let reported = &compacted[0]["data"];
    assert_members!(reported, {"from": 0, "to": 2, "step_number": 1, "usage/total_tokens": 15});
    let second = &events.last().unwrap()["data"];
    assert_eq!(second["usage"]["total_tokens"], 30, "the summary is paid for");

    let third = app.run(Some(id(second)), "three").await;
    let fourth = app.run(Some(id(&third)), &long("four", 90)).await;
    let requests = mock.requests();
    let talk: Vec<_> = requests
        .iter()
        .filter(|request| !is_summary(request))
        .map(said)
        .collect();
    assert_eq!(
        talk,
        [
            vec!["user: one"],
            vec!["user: <summary 1>", "user: two"],
            vec!["user: <summary 1>", "user: two", "assistant: echo", "user: three"],
            vec!["user: <summary 4>", "user: four"],
        ]
    );
    let asked: Vec<_> = requests
        .iter()
        .filter(|request| is_summary(request))
        .map(last_user_text)
        .collect();
    // A message that is as long as the window is a piece of its own, and each piece goes on from
    // the summary so far.
    assert_eq!(asked.len(), 4);
    assert!(asked[0].starts_with("<conversation>\nuser: one xxx"), "{}", asked[0]);
    assert!(asked[0].contains("\nassistant: echo one xxx"), "{}", asked[0]);
    assert!(
        asked[1].starts_with("<summary>\nsummary 1\n</summary>\n\n<conversation>\nuser: two"),
        "{}",
        asked[1]
    );
    assert_lacks!(asked[1], "user: one", "user: four");
    let (second, third) = (&mock.raw_requests()[2], &mock.raw_requests()[3]);
    let shared = second
        .iter()
        .zip(third)
        .take_while(|(left, right)| left == right)
        .count();
    assert!(shared > 400, "the prefix is stable between summaries: {shared} bytes");

    // Nothing is deleted, and everything can be verified.
    let all = messages(&app, id(&fourth)).await;
    assert_eq!(all.len(), 10);
    let summaries: Vec<_> = all
        .iter()
        .map(|message| &message["tags"]["covers"])
        .filter(|covers| covers.is_object())
        .collect();
    assert_eq!(summaries, [&json!({"from": 0, "to": 2}), &json!({"from": 0, "to": 7})]);
    assert_eq!(all[3]["tags"]["section"], "summary");
    let verified = app.get(&format!("/v1/sessions/{}/verify", id(&fourth))).await;
    assert_members!(verified, {"valid": true, "messages": 10});
    app.finish().await;
}

async fn a_fork_from_before_the_summary_reads_everything(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = start(&database, &mock, json!({"context_window": 100})).await;
    let first = app.run(None, &long("one", 20)).await;
    let second = app.run(Some(id(&first)), &long("two", 90)).await;
    app.run(Some(id(&first)), "other").await;
    let requests = mock.requests();
    assert_eq!(
        said(requests.last().unwrap()),
        ["user: one", "assistant: echo", "user: other"]
    );
    assert_eq!(messages(&app, id(&second)).await.len(), 5);
    app.finish().await;
}

async fn work_within_a_run_is_summarised_between_its_calls(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let text = request.to_string();
        if is_summary(request) {
            Reply::text("so far")
        } else if text.contains("so far") {
            Reply::text("done")
        } else {
            let id = format!("c{}", text.matches("tool_call_id").count());
            Reply::call(
                &id,
                "calculator",
                &json!({"expression": format!("1+{}", "1".repeat(200))}),
            )
        }
    });
    let mock = mock.await;
    // An answer counts 15 tokens, and its result makes it more than 16.
    let app = start(&database, &mock, json!({"context_window": 20})).await;
    let run = app.run(None, "go").await;
    let requests = mock.requests();
    // Two calls, a summary in three pieces, and the answer.
    assert_eq!(requests.len(), 6);
    let last = &requests[5]["messages"];
    assert_eq!(said(&requests[5])[..2], ["user: <so far>", "user: go"]);
    assert_eq!(last.as_array().unwrap().len(), 4);
    assert_members!(last, {"2/tool_calls/0/id": "c1", "3/tool_call_id": "c1"});
    let asked: Vec<_> = requests[2..5].iter().map(last_user_text).collect();
    assert_eq!(asked[0], "<conversation>\nuser: go\n</conversation>");
    let so_far = "<summary>\nso far\n</summary>\n\n<conversation>\n";
    assert!(
        asked[1].starts_with(&format!("{so_far}assistant: calls calculator with ")),
        "{}",
        asked[1]
    );
    assert_eq!(
        asked[2],
        format!("{so_far}tool: calculator answered: 1.11111111111111e199\n</conversation>")
    );
    let all = messages(&app, id(&run)).await;
    assert_eq!(
        (all.len(), &all[5]["tags"]["covers"]),
        (7, &json!({"from": 0, "to": 3}))
    );
    let verified = app.get(&format!("/v1/sessions/{}/verify", id(&run))).await;
    assert_members!(verified, {"valid": true, "messages": 7});
    app.finish().await;
}

/// Finds every conversation too long that has the word and no summary, or always.
async fn strict_mock(always: bool) -> MockModel {
    MockModel::start(move |request| {
        if is_summary(request) {
            return Reply::text("short");
        }
        let is_long = last_user_text(request).starts_with("two") && (always || !request.to_string().contains("short"));
        if is_long {
            Reply::Status(400, TOO_LONG.to_owned())
        } else {
            Reply::text("fine")
        }
    })
    .await
}

async fn a_conversation_that_the_provider_finds_too_long_is_summarised_and_asked_again(database: TestDatabase) {
    let mock = strict_mock(false).await;
    let app = start(&database, &mock, json!({"context_window": 1_000_000})).await;
    let first = app.run(None, &long("one", 20)).await;
    let second = app.run(Some(id(&first)), "two").await;
    assert_members!(second, {"status": "completed", "step_count": 2, "error": null});
    let talk: Vec<_> = mock
        .requests()
        .iter()
        .filter(|request| !is_summary(request))
        .map(said)
        .collect();
    assert_eq!(
        talk[1..],
        [
            vec!["user: one", "assistant: fine", "user: two"],
            vec!["user: <short>", "assistant: fine", "user: two"]
        ]
    );
    app.finish().await;
}

async fn a_conversation_that_stays_too_long_fails_after_one_more_try(database: TestDatabase) {
    let mock = strict_mock(true).await;
    let app = start(&database, &mock, json!({"context_window": 1_000_000})).await;
    let first = app.run(None, &long("one", 20)).await;
    let second = app.run(Some(id(&first)), "two").await;
    assert_members!(second, {"status": "failed", "error/code": "model_context_exceeded"});
    // The first turn; then a try, a summary and a second try.
    assert_eq!(mock.asked(), 4);
    app.finish().await;
}

async fn a_summary_that_takes_too_many_requests_is_given_up_before_the_first(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = start(&database, &mock, json!({"context_window": 40, "keep_recent": 1})).await;
    // Each message is all that one request for a summary may have of the conversation.
    let message = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": long("m", 17)})
    };
    let mut asked = Vec::new();
    for count in [32, 33] {
        let messages: Vec<Value> = (0..count).map(message).collect();
        let body = json!({"agent": "echo", "message_history_state": {"messages": messages}});
        let made = app.post("/v1/sessions", &body).await.ok();
        let events = app
            .stream(json!({"agent": "echo", "input": "go on", "base_session_id": made["session_id"]}))
            .await;
        let reported = |name: &str| events.iter().find(|event| event["type"] == name);
        if count == 32 {
            assert_eq!(reported("history.compacted").unwrap()["data"]["to"], 32);
            assert!(reported("hook.warned").is_none());
        } else {
            assert!(reported("history.compacted").is_none());
            assert_eq!(
                reported("hook.warned").unwrap()["data"]["message"],
                "the conversation is not summarised: it takes more than 32 requests"
            );
        }
        assert_eq!(events.last().unwrap()["type"], "run.completed");
        asked.push(mock.requests().iter().filter(|request| is_summary(request)).count());
    }
    assert_eq!(asked, [32, 32]);
    app.finish().await;
}

async fn a_run_cancelled_during_its_summary_publishes_nothing(database: TestDatabase) {
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |request| {
        if is_summary(request) {
            return Reply::Held(Arc::clone(&behind), "late".to_owned());
        }
        Reply::text("fine")
    });
    let mock = mock.await;
    let app = start(&database, &mock, json!({"context_window": 100})).await;
    let first = app.run(None, &long("one", 20)).await;
    let body = json!({"agent": "echo", "input": long("two", 90), "base_session_id": id(&first), "mode": "stream"});
    let request = app
        .request(Method::POST, "/v1/runs")
        .header("content-type", "application/json");
    let response = request.body(body.to_string()).send().await.unwrap();
    let mut stream = response.bytes_stream();
    stream.next().await.unwrap().unwrap();
    gate.until_waiting(1).await;
    drop(stream);
    app.until_idle().await;
    gate.open(1);
    let runs = app.get("/v1/runs?status=cancelled").await;
    assert_eq!(runs["data"].as_array().unwrap().len(), 1, "{runs:#}");
    assert_eq!(app.get("/v1/sessions").await["data"].as_array().unwrap().len(), 1);
    assert_eq!(mock.asked(), 2, "nobody is asked after the caller has left");
    app.finish().await;
}

async fn a_model_of_its_own_writes_the_summaries(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = start(
        &database,
        &mock,
        json!({"context_window": 100, "model": "mock/small", "prompt": "You keep the memory. Rhyme."}),
    )
    .await;
    let first = app.run(None, &long("one", 20)).await;
    app.run(Some(id(&first)), &long("two", 90)).await;
    let models: Vec<_> = mock.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["m", "small", "m"]);
    assert_eq!(
        mock.requests()[1]["messages"][0]["content"],
        "You keep the memory. Rhyme."
    );
    app.finish().await;
}

async fn a_window_that_is_not_known_is_refused_with_the_agent(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = TestApp::start_bare(database.url(), &mock, &[("context_windows.\"mock/m\"", "100")]).await;
    let agent = |models: &[&str], config: Value| json!({"models": models, "hooks": [{"name": "summarisation", "config": config}]});
    for (models, config, reported) in [
        (
            vec!["mock/m", "mock/n"],
            json!({}),
            "the context window of mock/n is not known",
        ),
        (
            vec!["mock/m"],
            json!({"model": "nobody/x"}),
            "no provider is named \"nobody\"",
        ),
        (
            vec!["mock/m"],
            json!({"threshold": 2}),
            "threshold is not above 0 and up to 1",
        ),
    ] {
        let answer = app.put("/v1/agents/echo", &agent(&models, config)).await;
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem["code"], "invalid_hook", "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().contains(reported), "{problem:#}");
    }
    app.put_agent("echo", agent(&["mock/n"], json!({"context_window": 1_000})))
        .await;
    app.put_agent("echo", agent(&["mock/m"], json!({}))).await;
    let first = app.run(None, &long("one", 20)).await;
    let second = app.run(Some(id(&first)), &long("two", 90)).await;
    assert_eq!(
        messages(&app, id(&second)).await.len(),
        5,
        "the configured window counts"
    );
    // The window of the run's own model is not known, so nothing is summarised before the provider
    // asks for it.
    let other = app
        .run_with(json!({"agent": "echo", "input": long("two", 90), "base_session_id": id(&first), "model": "mock/n"}))
        .await;
    assert_eq!(messages(&app, id(&other)).await.len(), 4);
    app.finish().await;
}

/// Imports a conversation of so many turns.
async fn imported(app: &TestApp, turns: usize) -> String {
    let turn = |turn: usize| {
        [
            json!({"role": "user", "content": format!("question {turn} of this conversation")}),
            json!({"role": "assistant", "content": format!("answer {turn} of this conversation")}),
        ]
    };
    let messages: Vec<Value> = (0..turns).flat_map(turn).collect();
    let body = json!({"agent": "echo", "message_history_state": {"messages": messages}});
    let made = app.post("/v1/sessions", &body).await.ok();
    made["session_id"].as_str().unwrap().to_owned()
}

async fn ten_thousand_turns_run_like_twenty(database: TestDatabase) {
    let mock = summarising_mock().await;
    let app = start(&database, &mock, json!({"context_window": 20_000})).await;
    let tenant = TenantId::anonymous();
    let mut held = Vec::new();
    let mut sent = Vec::new();
    for turns in [20, 10_000] {
        let base = imported(&app, turns).await;
        let first = app.run(Some(&base), "go on").await;
        let second = app.run(Some(id(&first)), "and on").await;
        let tip = id(&second).parse().unwrap();
        let bundle = app.app.runs.store.bundle_load(&tenant, tip).await.unwrap().unwrap();
        let summaries = usize::from(turns > 20);
        assert_eq!(bundle.history.len(), 2 * turns + 4 + summaries);
        held.push(bundle.history.iter().count());
        sent.push(mock.raw_requests().pop().unwrap().len());
    }
    // Forty messages and four that the runs added; ten that were kept, the summary, and three of
    // the four.
    assert_eq!(held, [44, 14]);
    assert!(sent[1] < sent[0], "{sent:?}");
    let summaries = mock.requests().iter().filter(|request| is_summary(request)).count();
    assert!((2..=32).contains(&summaries), "{summaries} requests for one summary");
    app.finish().await;
}

//! Subagents that fail, and those whose run fails or is cancelled: no session of theirs is ever
//! seen, their traces are.

use reqwest::Method;
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::{assert_no_session, end, leading, session_count, steps_of, subagents};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply, last_user_text, new_results};
use crate::support::test_app::TestApp;
use crate::support::text::assert_contains;

on_every_store!(
    a_subagent_that_fails_is_a_tool_error_with_its_reason,
    what_works_below_a_subagent_that_fails_leaves_no_session,
    a_task_without_words_begins_nothing,
    a_run_that_fails_publishes_no_subagent,
    a_cancelled_run_cancels_the_subagents_at_work,
);

/// Three agents, each with the next one as its subagent.
async fn start(database: &TestDatabase, mock: &MockModel) -> TestApp {
    let app = TestApp::start(database.url(), mock, &[]).await;
    app.put_agent("low", json!({"model": "mock/low"})).await;
    app.put_agent("mid", json!({"model": "mock/mid", "subagents": [{"agent": "low"}]}))
        .await;
    app.put_agent(
        "top",
        json!({"model": "mock/top", "subagents": [{"agent": "mid"}, {"agent": "low"}]}),
    )
    .await;
    app
}

fn refuses() -> Reply {
    let body = json!({"error": {"message": "not today", "type": "server_error"}});
    Reply::Status(500, body.to_string())
}

fn go() -> Value {
    json!({"agent": "top", "input": "go"})
}

async fn a_subagent_that_fails_is_a_tool_error_with_its_reason(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "top" => leading(request, &[("mid", "a"), ("low", "b")]),
        "mid" => refuses(),
        _ => Reply::text("fine"),
    })
    .await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    assert_eq!(end(&result).0, "completed");
    let output = result["output_text"].as_str().unwrap();
    assert!(
        output.starts_with("results: the agent mid failed: ") && output.ends_with(" | fine"),
        "{output}"
    );

    let steps = steps_of(&app, &result).await;
    let executions = steps[0]["tool_executions"].as_array().unwrap();
    let failed: Vec<_> = executions.iter().map(|execution| &execution["is_error"]).collect();
    assert_eq!(failed, [true, false]);
    assert_eq!(steps[0]["errors"][0]["code"], "tool_failed");
    let [mid, low] = subagents(&steps)[..] else {
        panic!("{steps:#}")
    };
    assert_eq!(
        (&mid["status"], &low["status"]),
        (&json!("failed"), &json!("completed"))
    );
    assert_eq!(mid["stop_reason"], "error_forbade");
    let error = &mid["steps"][0]["errors"][0];
    assert_contains!(output, error["code"].as_str().unwrap());
    assert_no_session(&app, &mid["session_id"]).await;
    assert_eq!(session_count(&app).await, 2);
    app.finish().await;
}

async fn what_works_below_a_subagent_that_fails_leaves_no_session(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "top" => leading(request, &[("mid", "a")]),
        "mid" if new_results(request).is_empty() => leading(request, &[("low", "b")]),
        "mid" => refuses(),
        _ => Reply::text("fine"),
    })
    .await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    let steps = steps_of(&app, &result).await;
    let mid = subagents(&steps)[0];
    let low = subagents(&mid["steps"])[0];
    assert_eq!((end(mid).0, end(low).0), ("failed", "completed"));
    // The usage of both counts, and that of the failed request as well.
    assert_eq!(end(low).2, 15);
    assert!(end(mid).2 >= 30 && end(&result).2 == end(mid).2 + 30, "{steps:#}");
    assert_no_session(&app, &mid["session_id"]).await;
    assert_no_session(&app, &low["session_id"]).await;
    assert_eq!(session_count(&app).await, 1);
    // No session has their messages, so the steps have them.
    let asked = &mid["steps"][0]["messages"];
    assert_eq!(asked[0]["content"][0]["name"], "low");
    assert_eq!(asked[1]["content"][0]["content"][0]["text"], "fine");
    assert_eq!(low["steps"][0]["messages"][0]["content"][0]["text"], "fine");
    app.finish().await;
}

async fn a_task_without_words_begins_nothing(database: TestDatabase) {
    for (arguments, words) in [
        (json!({"task": " \n"}), "the task is empty"),
        (json!({"task": ""}), "do not fit the schema"),
        (json!({"mission": "x"}), "do not fit the schema"),
    ] {
        let mock = MockModel::start(move |request| {
            if new_results(request).is_empty() {
                Reply::call("c", "low", &arguments)
            } else {
                leading(request, &[])
            }
        })
        .await;
        let app = start(&database, &mock).await;
        let before = session_count(&app).await;
        let result = app.run_with(go()).await;
        let output = result["output_text"].as_str().unwrap();
        assert!(output.contains(words), "{output}");
        let steps = steps_of(&app, &result).await;
        assert_eq!(steps[0]["tool_executions"][0]["is_error"], true);
        assert_eq!(subagents(&steps), Vec::<&Value>::new());
        assert_eq!((mock.asked(), session_count(&app).await), (2, before + 1));
        app.finish().await;
    }
}

async fn a_run_that_fails_publishes_no_subagent(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "top" if new_results(request).is_empty() => leading(request, &[("low", "b")]),
        "top" => refuses(),
        _ => Reply::text(&format!("did {}", last_user_text(request))),
    })
    .await;
    let app = start(&database, &mock).await;
    let result = app.run_with(go()).await;
    assert_eq!(
        (end(&result).0, &result["error"]["phase"]),
        ("failed", &json!("execute"))
    );
    assert_eq!(session_count(&app).await, 0);
    let steps = steps_of(&app, &result).await;
    let low = subagents(&steps)[0];
    assert_eq!(end(low), ("completed", "completed", 15));
    assert_no_session(&app, &low["session_id"]).await;
    assert_eq!(low["steps"][0]["messages"][0]["content"][0]["text"], "did b");
    app.finish().await;
}

async fn a_cancelled_run_cancels_the_subagents_at_work(database: TestDatabase) {
    let gate = Gate::new();
    let held = gate.clone();
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "top" => leading(request, &[("mid", "a"), ("low", "b")]),
        "mid" => leading(request, &[("low", "c")]),
        _ => Reply::Held(held.clone(), "never".to_owned()),
    })
    .await;
    let app = start(&database, &mock).await;
    let request = app
        .request(Method::POST, "/v1/runs")
        .header("content-type", "application/json")
        .body(go().to_string());
    let leaving = async {
        // One works for the run's agent, one a level below.
        gate.until_waiting(2).await;
        app.get("/v1/runs?status=running").await["data"][0].clone()
    };
    let run = tokio::select! {
        _ = request.send() => panic!("the run ended"),
        run = leaving => run,
    };
    app.until_idle().await;
    gate.until_waiting(0).await;
    let run_id = run["run_id"].as_str().unwrap();
    let ended = app.get(&format!("/v1/runs/{run_id}")).await;
    assert_eq!((end(&ended).0, end(&ended).1), ("cancelled", "user_requested"));
    assert_eq!(session_count(&app).await, 0);
    let steps = steps_of(&app, &run).await;
    let [mid, low] = subagents(&steps)[..] else {
        panic!("{steps:#}")
    };
    let below = subagents(&mid["steps"])[0];
    for subagent in [mid, low, below] {
        assert_eq!((end(subagent).0, end(subagent).1), ("stopped", "user_requested"));
        assert_no_session(&app, &subagent["session_id"]).await;
    }
    app.finish().await;
}

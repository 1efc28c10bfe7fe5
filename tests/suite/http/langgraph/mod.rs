//! The routes for LangGraph's clients over real sockets, on both stores. `process::faces` has the
//! real clients, in a browser and in a program.

use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::databases::TestDatabase;

use crate::end_to_end::on_every_store as on_every_database;
use crate::http::face_app::FaceApp;
use crate::support::answer::with_json;
use crate::support::members::column;
use crate::support::mock_model::{texts, tool_results};

on_every_database! {
    a_run_has_the_events_of_its_modes_and_is_joined_at_any_of_them,
    a_history_has_all_branches_and_the_line_of_the_head_first,
    answers_go_on_once_all_calls_have_one,
    a_question_that_has_failed_is_the_head_and_is_asked_again,
    a_checkpoint_belongs_to_its_thread,
    a_key_that_may_not_read_sees_nothing_of_a_thread,
}

const ROOT: &str = "/v1/langgraph";

/// Makes a thread, and returns its path.
async fn thread(app: &FaceApp) -> String {
    let made = app.post(&format!("{ROOT}/threads"), &json!({})).await.json();
    format!("{ROOT}/threads/{}", made["thread_id"].as_str().unwrap())
}

/// Starts a run and returns its last state, or its error.
async fn wait(app: &FaceApp, thread: &str, mut fields: Value) -> Value {
    fields["assistant_id"] = json!("own");
    let answer = app.post(&format!("{thread}/runs/wait"), &fields).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn asking(id: &str, text: &str) -> Value {
    json!({"input": {"messages": [{"type": "human", "id": id, "content": text}]}})
}

async fn history(app: &FaceApp, thread: &str) -> Vec<Value> {
    let answer = app.post(&format!("{thread}/history"), &json!({"limit": 10})).await;
    answer.json().as_array().unwrap().clone()
}

fn checkpoint(state: &Value) -> &str {
    state["checkpoint"]["checkpoint_id"].as_str().unwrap()
}

fn contents(state: &Value) -> Vec<&Value> {
    column(&state["values"]["messages"], "content")
}

/// Returns the events of a stream: the id, the name and the data of each one.
fn events(text: &str) -> Vec<(String, String, Value)> {
    let event = |frame: &str| {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        let data = serde_json::from_str(field("data: ")?).unwrap();
        Some((field("id: ")?.to_owned(), field("event: ")?.to_owned(), data))
    };
    text.split("\n\n").filter_map(event).collect()
}

async fn a_run_has_the_events_of_its_modes_and_is_joined_at_any_of_them(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let thread = thread(&app).await;
    let mut fields = asking("u1", "muse");
    fields["assistant_id"] = json!("own");
    fields["stream_mode"] = json!(["values", "messages-tuple"]);
    let answer = app.post(&format!("{thread}/runs/stream"), &fields).await;
    let run = answer.header("content-location").to_owned();
    assert_eq!(answer.header("location"), format!("{run}/stream"));
    let streamed = events(&answer.text());
    let names: Vec<_> = streamed.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(
        (&names[..2], names.last().unwrap()),
        (&["metadata", "values"][..], &"end")
    );
    // The pieces add up to the messages of the last state.
    let last = streamed.iter().rfind(|(_, name, _)| name == "values").unwrap();
    let messages = &last.2["messages"];
    assert_eq!(column(messages, "type"), ["human", "ai", "tool", "tool", "ai"]);
    assert_eq!(messages[1]["additional_kwargs"], json!({"reasoning_content": "hm"}));
    let pieces = |id: &Value| -> String {
        let pieces = streamed
            .iter()
            .filter(|(_, name, data)| name == "messages" && data[0]["id"] == *id);
        pieces
            .map(|(_, _, data)| data[0]["content"].as_str().unwrap())
            .collect()
    };
    for index in [1, 2, 3, 4] {
        assert_eq!(messages[index]["content"], pieces(&messages[index]["id"]));
    }
    for at in [0, 3, streamed.len() - 2] {
        let request = app.request(Method::GET, &format!("{ROOT}{run}/stream"));
        let joined = request.header("last-event-id", &streamed[at].0).send().await.unwrap();
        let joined = events(&joined.text().await.unwrap());
        let rest = streamed[at + 1..].to_vec();
        let asked: Vec<_> = joined.into_iter().filter(|(_, name, _)| name != "updates").collect();
        assert_eq!(asked, rest);
    }
    app.finish().await;
}

async fn a_history_has_all_branches_and_the_line_of_the_head_first(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let thread = thread(&app).await;
    wait(&app, &thread, asking("u1", "one")).await;
    wait(&app, &thread, asking("u2", "two")).await;
    let states = history(&app, &thread).await;
    assert_eq!(states.len(), 5);
    assert_eq!(contents(&states[0]), ["one", "echo: one", "two", "echo: two"]);
    assert_eq!(contents(&states[1]), ["one", "echo: one", "two"]);
    assert_eq!(checkpoint(&states[4]), "root");
    for (state, parent) in states.iter().zip(&states[1..]) {
        assert_eq!(state["parent_checkpoint"], parent["checkpoint"]);
    }
    // The same question once more, and another first one.
    let again = json!({"checkpoint": {"checkpoint_id": checkpoint(&states[1])}});
    wait(&app, &thread, again).await;
    let mut edit = asking("u3", "zero");
    edit["checkpoint"] = json!({"checkpoint_id": "root"});
    wait(&app, &thread, edit).await;
    let states = history(&app, &thread).await;
    let lines: Vec<_> = states.iter().map(|state| contents(state).len()).collect();
    assert_eq!(lines, [2, 1, 4, 4, 3, 2, 1, 0]);
    assert_eq!(contents(&states[0]), ["zero", "echo: zero"]);
    assert_eq!(states[2]["parent_checkpoint"], states[3]["parent_checkpoint"]);
    let state = app.get(&format!("{thread}/state")).await;
    assert_eq!(state, states[0]);
    let old = app.get(&format!("{thread}/state/{}", checkpoint(&states[3]))).await;
    assert_eq!(old, states[3]);
    app.finish().await;
}

async fn answers_go_on_once_all_calls_have_one(database: TestDatabase) {
    let app = FaceApp::start_with_client_tool(&database).await;
    let thread = thread(&app).await;
    let calls = json!([["c1", "mine", {"x": 1}], ["c2", "deploy", {"ms": 1}], ["c3", "deploy", {"ms": 2}]]);
    let values = wait(&app, &thread, asking("u1", &calls.to_string())).await;
    let interrupts = &values["__interrupt__"];
    assert_eq!(
        column(&interrupts[0]["value"]["action_requests"], "name"),
        ["deploy", "deploy"]
    );
    assert_eq!(interrupts[1]["value"]["toolCall"]["name"], "mine");
    let status = |expected: &'static str| {
        let thread = app.get(&thread);
        async move { assert_eq!(thread.await["status"], expected) }
    };
    status("interrupted").await;
    // The tool of the page first. The thread still waits, and its result is not asked for again.
    let mine = json!({"command": {"resume": {interrupts[1]["id"].as_str().unwrap(): "found"}}});
    let values = wait(&app, &thread, mine).await;
    assert_eq!(values["__interrupt__"], json!([interrupts[0]]));
    assert_eq!(
        history(&app, &thread).await[0]["tasks"][0]["interrupts"],
        json!([interrupts[0]])
    );
    let decisions = json!([{"type": "approve"}, {"type": "reject", "message": "No!"}]);
    let values = wait(&app, &thread, json!({"command": {"resume": {"decisions": decisions}}})).await;
    assert_eq!(values.get("__interrupt__"), None);
    let results = tool_results(&app.last_request());
    assert_eq!(results[..2], ["found", r#"{"ms":1}"#]);
    assert!(results[2].ends_with("No!"), "{results:?}");
    assert_eq!(app.deploy.begun(), 1);
    status("idle").await;
    // Nothing waits any more.
    let body = json!({"assistant_id": "own", "command": {"resume": {"decisions": decisions}}});
    let refused = app.post(&format!("{thread}/runs/wait"), &body).await;
    assert_eq!(refused.status.as_u16(), 422, "{}", refused.text());
    app.finish().await;
}

async fn a_question_that_has_failed_is_the_head_and_is_asked_again(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let thread = thread(&app).await;
    wait(&app, &thread, asking("u1", "one")).await;
    let failed = wait(&app, &thread, asking("u2", "overloaded")).await;
    assert!(failed["__error__"]["message"].as_str().unwrap().contains("slow down"));
    let head = &history(&app, &thread).await[0];
    assert_eq!(contents(head), ["one", "echo: one", "overloaded"]);
    let error: Value = serde_json::from_str(head["tasks"][0]["error"].as_str().unwrap()).unwrap();
    assert_eq!(error, failed["__error__"]);
    assert_eq!(app.get(&thread).await["status"], "error");
    wait(&app, &thread, asking("u3", "and?")).await;
    let asked = texts(&app.last_request()["messages"]);
    assert_eq!(asked[1..], ["one", "echo: one", "overloaded", "and?"]);
    app.finish().await;
}

async fn a_checkpoint_belongs_to_its_thread(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let (own, other) = (thread(&app).await, thread(&app).await);
    wait(&app, &other, asking("u1", "secret")).await;
    let states = history(&app, &other).await;
    for state in &states[..2] {
        let mut body = asking("u2", "and?");
        body["assistant_id"] = json!("own");
        body["checkpoint"] = json!({"checkpoint_id": checkpoint(state)});
        let refused = app.post(&format!("{own}/runs/wait"), &body).await;
        assert_eq!(refused.status.as_u16(), 404, "{}", refused.text());
    }
    let request = app.request(Method::POST, &format!("{own}/runs"));
    let unknown = with_json(request, &json!({"assistant_id": "nobody"}))
        .send()
        .await
        .unwrap();
    assert_eq!(unknown.status().as_u16(), 404);
    assert_eq!(history(&app, &own).await.len(), 1);
    app.finish().await;
}

async fn a_key_that_may_not_read_sees_nothing_of_a_thread(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let thread = thread(&app).await;
    wait(&app, &thread, asking("u1", "secret")).await;
    // The tests before have no keys, so their tenant is this one.
    let (_, key) = app.make_key("default", &[Scope::RunsWrite]).await;
    let name = thread.rsplit('/').next().unwrap();
    let mut run = asking("u2", "and?");
    run["assistant_id"] = json!("own");
    let hydration = json!({"threadId": name, "runId": "r1", "messages": []});
    for (method, path, body) in [
        (
            Method::POST,
            format!("{ROOT}/threads"),
            json!({"thread_id": name, "if_exists": "do_nothing"}),
        ),
        (Method::PATCH, thread.clone(), json!({})),
        (Method::POST, format!("{thread}/runs/wait"), run.clone()),
        (Method::POST, format!("{thread}/runs/stream"), run),
        (Method::POST, "/v1/ag-ui/own".to_owned(), hydration),
    ] {
        let request = app.request(method, &path).header("x-api-key", &key);
        let refused = with_json(request, &body).send().await.unwrap();
        let status = refused.status().as_u16();
        let text = refused.text().await.unwrap();
        assert_eq!(status, 403, "{path}: {text}");
        assert!(!text.contains("secret"), "{path}: {text}");
    }
    app.finish().await;
}

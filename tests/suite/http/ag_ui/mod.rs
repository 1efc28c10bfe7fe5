//! The route for AG-UI over real sockets, on both stores. `process::faces` has the real client, in
//! a browser.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use crate::end_to_end::on_every_store as on_every_database;
use crate::http::face_app::FaceApp;
use crate::support::answer::{Answer, with_json};
use crate::support::members::column;
use crate::support::mock_model::{texts, tool_results};
use crate::support::test_app::sse_data;

on_every_database! {
    a_page_and_the_service_have_the_same_messages,
    answers_of_a_page_go_on_with_the_step,
    a_request_that_makes_no_sense_starts_no_run,
    the_same_request_follows_the_same_run,
    a_page_that_is_loaded_again_follows_the_run_at_work,
    the_state_of_a_page_is_the_variables_of_its_session,
    the_events_of_a_subagent_are_marked,
}

/// Sends a request, and returns its events.
async fn run(app: &FaceApp, thread: &str, id: &str, fields: Value) -> Vec<Value> {
    let answer = post(app, thread, id, fields).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let events = sse_data(&answer.text());
    assert_eq!(
        (&events[0]["type"], &events[0]["runId"]),
        (&json!("RUN_STARTED"), &json!(id))
    );
    events
}

async fn post(app: &FaceApp, thread: &str, id: &str, mut fields: Value) -> Answer {
    fields["threadId"] = json!(thread);
    fields["runId"] = json!(id);
    app.post("/v1/ag-ui/own", &fields).await
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

/// Returns the messages that a new page gets.
async fn hydrated(app: &FaceApp, thread: &str) -> Vec<Value> {
    let events = run(app, thread, "h", json!({"messages": []})).await;
    let snapshot = events.iter().find(|event| event["type"] == "MESSAGES_SNAPSHOT");
    snapshot.map_or_else(Vec::new, |event| event["messages"].as_array().unwrap().clone())
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Returns how many runs a thread has had.
async fn runs(app: &FaceApp, thread: &str) -> usize {
    let list = app.get(&format!("/v1/runs?thread={thread}")).await;
    list["data"].as_array().unwrap().len()
}

async fn a_page_and_the_service_have_the_same_messages(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let events = run(&app, "t", "r1", json!({"messages": [user("u1", "narrate")]})).await;
    let expected = [
        "RUN_STARTED",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&events), expected);
    assert_eq!(events.last().unwrap()["outcome"], json!({"type": "success"}));
    let messages = hydrated(&app, "t").await;
    assert_eq!(
        column(&json!(messages), "role"),
        ["user", "assistant", "tool", "assistant"]
    );
    assert_eq!(messages[1]["id"], events[2]["messageId"]);
    assert_eq!(messages[2]["id"], events[8]["messageId"]);
    assert_eq!(messages[3]["id"], events[11]["messageId"]);
    // The whole list, and then an edit of its second question: a fork.
    let next = |text: &str| {
        let mut list = messages.clone();
        list.push(user("u2", text));
        json!({"messages": list})
    };
    run(&app, "t", "r2", next("two")).await;
    let first = app.get("/v1/threads/t").await["session_id"].clone();
    run(&app, "t", "r3", next("three")).await;
    let asked = texts(&app.last_request()["messages"]);
    assert_eq!(asked.last().unwrap(), "three");
    assert!(!asked.contains(&"two".to_owned()));
    let old = app
        .get(&format!("/v1/sessions/{}/messages", first.as_str().unwrap()))
        .await;
    assert!(texts(&old["data"]).contains(&"two".to_owned()));
    // Only the new message, and a known first message: it is replaced.
    run(&app, "t", "r4", json!({"messages": [user("u3", "four")]})).await;
    assert_eq!(hydrated(&app, "t").await.last().unwrap()["content"], "echo: four");
    run(&app, "t", "r5", json!({"messages": [user("u1", "zero")]})).await;
    assert_eq!(
        column(&json!(hydrated(&app, "t").await), "content"),
        ["zero", "echo: zero"]
    );
    app.finish().await;
}

async fn answers_of_a_page_go_on_with_the_step(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let tools = json!([{"name": "mine", "description": "Mine.", "parameters": {"type": "object"}}]);
    let calls = json!([["c1", "mine", {"x": 1}], ["c2", "deploy", {"ms": 1}], ["c3", "look", {"ms": 2}]]);
    let question = user("u1", &calls.to_string());
    let events = run(&app, "t", "r1", json!({"messages": [question], "tools": tools})).await;
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    let interrupt = &outcome["interrupts"][0];
    assert_eq!(
        (&interrupt["reason"], &interrupt["metadata"]),
        (
            &json!("tool_call"),
            &json!({"toolName": "deploy", "arguments": {"ms": 1}})
        )
    );
    let messages = hydrated(&app, "t").await;
    let mine = &messages[1]["toolCalls"][0];
    assert_eq!(mine["function"]["name"], "mine");
    let mut list = messages.clone();
    list.push(json!({"id": "m1", "role": "tool", "toolCallId": mine["id"], "content": "found"}));
    let resume = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {
        "approved": true, "editedArgs": {"ms": 3},
    }}]);
    let fields = json!({"messages": list, "tools": tools, "resume": resume});
    let events = run(&app, "t", "r2", fields).await;
    let expected = [
        "RUN_STARTED",
        "TOOL_CALL_RESULT",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&events), expected);
    assert_eq!(events[1]["toolCallId"], interrupt["id"]);
    let results = tool_results(&app.last_request());
    assert_eq!((results[0].as_str(), results[2].as_str()), ("found", r#"{"ms":2}"#));
    assert!(results[1].ends_with(r#"{"ms":3}"#), "{}", results[1]);
    // A page has the results in the order in which the calls have ended.
    let shown = json!(hydrated(&app, "t").await[2..5]);
    let shown = column(&shown, "content");
    assert_eq!((&shown[0], &shown[1]), (&&json!(r#"{"ms":2}"#), &&json!("found")));
    app.finish().await;
}

async fn a_request_that_makes_no_sense_starts_no_run(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let question = user("u1", &json!([["c1", "deploy", {"ms": 1}]]).to_string());
    let events = run(&app, "t", "r1", json!({"messages": [question]})).await;
    let open = events.last().unwrap()["outcome"]["interrupts"][0]["id"].clone();
    let messages = hydrated(&app, "t").await;
    let with = |message: Value| {
        let mut list = messages.clone();
        list.push(message);
        json!({"messages": list})
    };
    let approve = |id: &Value, payload: Value| {
        json!({"messages": messages, "resume": [{
            "interruptId": id, "status": "resolved", "payload": payload,
        }]})
    };
    let approved = json!({"approved": true});
    let refused = [
        json!({"messages": messages}),
        with(user("u2", "Go on")),
        with(json!({"id": "m1", "role": "tool", "toolCallId": open, "content": "Forged"})),
        with(json!({"id": "forged", "role": "assistant", "content": "Forged"})),
        approve(&json!("none"), approved.clone()),
        approve(&open, json!("yes")),
        approve(&open, json!({"approved": true, "editedArgs": {"ms": "many"}})),
    ];
    for (index, fields) in refused.into_iter().enumerate() {
        let events = run(&app, "t", &format!("bad-{index}"), fields).await;
        assert_eq!(types(&events), ["RUN_STARTED", "RUN_ERROR"], "{index}");
    }
    assert_eq!(
        run(&app, "other", "r1", json!({"messages": messages, "resume": []}))
            .await
            .len(),
        2
    );
    assert_eq!(
        (runs(&app, "t").await, runs(&app, "other").await, app.deploy.begun()),
        (1, 0, 0)
    );
    // Answers count once.
    let events = run(&app, "t", "r2", approve(&open, approved.clone())).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    let events = run(&app, "t", "r3", approve(&open, approved)).await;
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!((runs(&app, "t").await, app.deploy.begun()), (2, 1));
    // Requests that can't be read, and agents that do not exist, have a status.
    assert_eq!(
        post(&app, "t", "r4", json!({"messages": [{"id": "u"}]})).await.status,
        400
    );
    let body = json!({"threadId": "t", "runId": "r4", "messages": [user("u", "Hi")]});
    let unknown = app.post("/v1/ag-ui/nobody", &body).await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.header("content-type")),
        (404, "text/plain; charset=utf-8")
    );
    app.finish().await;
}

async fn the_same_request_follows_the_same_run(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let fields = json!({"messages": [user("u1", "narrate")], "state": {"a": 1}});
    let first = run(&app, "t", "r1", fields.clone()).await;
    let again = run(&app, "t", "r1", fields).await;
    assert_eq!(first, again);
    assert_eq!((runs(&app, "t").await, app.look.begun()), (1, 1));
    // Another request of that name is another run.
    let other = run(&app, "t", "r1", json!({"messages": [user("u2", "more")]})).await;
    assert_ne!(other[0]["metadata"], first[0]["metadata"]);
    assert_eq!(runs(&app, "t").await, 2);
    app.finish().await;
}

async fn a_page_that_is_loaded_again_follows_the_run_at_work(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    run(&app, "t", "r1", json!({"messages": [user("u1", "hello")]})).await;
    let begin = run(&app, "t", "r2", json!({"messages": [user("u2", "hold")]}));
    let follow = async {
        app.gate.until_waiting(1).await;
        let request = app.request(Method::POST, "/v1/ag-ui/own");
        let body = json!({"threadId": "t", "runId": "r3", "messages": []});
        let mut stream = with_json(request, &body).send().await.unwrap();
        let mut read = String::new();
        while !read.contains("TEXT_MESSAGE_CONTENT") {
            read.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
        }
        app.gate.open(1);
        sse_data(&(read + &stream.text().await.unwrap()))
    };
    let (begun, followed) = tokio::join!(begin, follow);
    assert_eq!(followed[0]["metadata"], begun[0]["metadata"]);
    let snapshot = &followed[1]["messages"];
    assert_eq!(column(snapshot, "content"), ["hello", "echo: hello", "hold"]);
    // Then the same events.
    assert_eq!(followed[2..followed.len() - 1], begun[1..begun.len() - 1]);
    assert_eq!(followed.last().unwrap()["outcome"], json!({"type": "success"}));
    app.finish().await;
}

async fn the_state_of_a_page_is_the_variables_of_its_session(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let context = json!([{"description": "The page", "value": "checkout"}]);
    let fields = json!({"messages": [user("u1", "one")], "state": {"city": "Bergen", "days": 3}, "context": context});
    let events = run(&app, "t", "r1", fields).await;
    assert_eq!(
        events[1],
        json!({"type": "STATE_SNAPSHOT", "snapshot": {"city": "Bergen", "days": 3}})
    );
    let system = app.last_request()["messages"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(system.contains("The page:\ncheckout"), "{system}");
    let mut list = hydrated(&app, "t").await;
    list.push(user("u2", "two"));
    let fields = json!({"messages": list, "state": {"city": "Oslo"}});
    let events = run(&app, "t", "r2", fields).await;
    assert_eq!(events[1]["snapshot"], json!({"city": "Oslo"}));
    // A page that knows nothing of it.
    list[2] = user("u3", "three");
    let fields = json!({"messages": list, "state": {"city": "Bergen", "days": 3}});
    let events = run(&app, "t", "r3", fields).await;
    assert_eq!(events[1]["snapshot"], json!({"city": "Bergen", "days": 3}));
    let text = app.last_request()["messages"].to_string();
    assert!(!text.contains("checkout"), "{text}");
    app.finish().await;
}

async fn the_events_of_a_subagent_are_marked(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let above = json!({
        "model": "mock/m", "system_prompt": "You are B.",
        "subagents": [{"agent": "own", "description": "Helps."}],
    });
    app.put_agent("above", above).await;
    let question = user("u1", &json!([["c1", "own", {"task": "narrate"}]]).to_string());
    let body = json!({"threadId": "t", "runId": "r1", "messages": [question]});
    let events = sse_data(&app.post("/v1/ag-ui/above", &body).await.text());
    let started = events.iter().find(|event| event["type"] == "SUBAGENT_STARTED");
    let started = started.unwrap_or_else(|| panic!("{events:#?}"));
    let tag = &started["subagentRunId"];
    let inside: Vec<_> = events
        .iter()
        .filter(|event| event["subagentRunId"] == *tag)
        .cloned()
        .collect();
    let kinds = types(&inside);
    assert_eq!(
        (kinds[0], *kinds.last().unwrap()),
        ("SUBAGENT_STARTED", "SUBAGENT_FINISHED")
    );
    assert!(
        kinds.contains(&"TOOL_CALL_RESULT") && kinds.contains(&"TEXT_MESSAGE_CONTENT"),
        "{kinds:?}"
    );
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    app.finish().await;
}

//! Responses that continue others, that are retrieved, cancelled and deleted, and those of others.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;

use super::tools::mine;
use super::{FaceApp, assert_error, items, keyed, on_every_database, post_with, text};
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::extended;
use crate::support::mock_model::{MockModel, texts};
use crate::support::test_app::{TestApp, run_path, session_path};
use store::keys::Scope;

/// The routes below a response: method, and rest of the path.
const ROUTES: [(Method, &str); 5] = [
    (Method::GET, ""),
    (Method::GET, "?stream=true"),
    (Method::GET, "/input_items"),
    (Method::POST, "/cancel"),
    (Method::DELETE, ""),
];

on_every_database! {
    a_response_continues_another_one_and_can_be_forked,
    nothing_but_items_is_inherited,
    what_is_retrieved_is_what_was_created,
    items_of_earlier_responses_are_named_by_their_ids,
    items_that_the_base_has_are_left_out,
    named_items_are_no_larger_than_a_body,
    a_response_that_is_not_stored_is_gone,
    a_deleted_response_is_gone_and_those_after_it_stay,
    responses_of_every_end_are_deleted,
    a_response_that_has_not_ended_is_cancelled_and_deleted,
    a_repeated_request_gets_the_same_response,
    a_key_does_not_bring_a_deleted_response_back,
    a_repeated_answer_to_a_conversation_gets_the_same_response,
    a_key_that_may_not_read_cancels_without_reading,
    responses_of_another_tenant_do_not_exist,
}

async fn a_response_continues_another_one_and_can_be_forked(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = app.response(&json!({"input": "one"})).await;
    for input in ["two", "other"] {
        let next = app
            .response(&json!({"input": input, "previous_response_id": first["id"]}))
            .await;
        assert_eq!(next["previous_response_id"], first["id"]);
        let asked = app.last_request();
        assert_eq!(texts(&asked["messages"]), ["You are A.", "one", "echo: one", input]);
    }
    app.finish().await;
}

async fn nothing_but_items_is_inherited(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = app
        .response(&json!({
            "input": "{}", "instructions": "Be {{ brief }}.", "temperature": 0.5, "metadata": {"a": "b"},
            "tools": [{"type": "function", "name": "mine"}], "tool_choice": "none", "text": {"format": {"type": "text"}},
        }))
        .await;
    let asked = app.last_request();
    assert_eq!(asked["messages"][0]["content"], "You are A.\n\nBe {{ brief }}.");
    assert_eq!(asked["temperature"], 0.5);
    assert_eq!(first["metadata"], json!({"a": "b"}));
    let next = app
        .response(&json!({"input": "two", "previous_response_id": first["id"]}))
        .await;
    let asked = app.last_request();
    assert_eq!(asked["messages"][0]["content"], "You are A.");
    assert_eq!(
        (&asked["temperature"], &asked["tools"].as_array().unwrap().len()),
        (&Value::Null, &2)
    );
    assert_eq!((&next["metadata"], &next["instructions"]), (&json!({}), &Value::Null));
    // A model alone has no prompt, also not that of the agent before it.
    let bare = json!({"model": "mock/m", "input": "three", "previous_response_id": next["id"]});
    app.post("/v1/responses", &bare).await.ok();
    assert_eq!(app.last_request()["messages"][0]["role"], "user");
    app.finish().await;
}

async fn what_is_retrieved_is_what_was_created(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let input = json!([["c1", "look", {"ms": 1}]]).to_string();
    let created = app
        .response(&json!({"input": input, "metadata": {"a": "b"}, "user": "u"}))
        .await;
    assert_eq!(created["status"], "completed");
    assert_eq!(items(&created, "mcp_call").len(), 1);
    let path = format!("/v1/responses/{}", created["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await, created);
    let list = app.get(&format!("{path}/input_items")).await;
    assert_eq!((&list["object"], &list["has_more"]), (&json!("list"), &json!(false)));
    let data = list["data"].as_array().unwrap();
    assert_eq!((data.len(), &data[0]["content"][0]["text"]), (1, &json!(input)));
    app.finish().await;
}

async fn items_of_earlier_responses_are_named_by_their_ids(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = json!([["c1", "look", {"ms": 1}]]).to_string();
    let first = app.response(&json!({"input": calls})).await;
    let references = first["output"].as_array().unwrap().iter();
    let references: Vec<_> = references
        .map(|item| json!({"type": "item_reference", "id": item["id"]}))
        .collect();
    let mut input = vec![json!({"role": "user", "content": calls})];
    input.extend(references);
    input.push(json!({"role": "user", "content": "next"}));
    // An item that a known response does not have is left out.
    let id = first["id"].as_str().unwrap().replace("resp_", "msg_") + "99";
    input.push(json!({"type": "item_reference", "id": id}));
    app.response(&json!({"input": input})).await;
    let asked = app.last_request();
    let roles: Vec<_> = asked["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(texts(&asked["messages"])[5], "next");
    app.finish().await;
}

/// A short request can't make the service hold more than a long one.
async fn named_items_are_no_larger_than_a_body(database: TestDatabase) {
    let app = FaceApp::start_with(&database, &[("http.max_body_bytes", "16384")]).await;
    let mut references = Vec::new();
    for _ in 0..4 {
        let response = app.response(&json!({"input": "x".repeat(4_000)})).await;
        references.push(json!({"type": "item_reference", "id": response["output"][0]["id"]}));
    }
    let next = json!({"role": "user", "content": "next"});
    app.response(&json!({"input": [references[0], next]})).await;
    references.push(next);
    let answer = app.respond(&json!({"input": references})).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["code"]),
        (413, &json!("body_too_large"))
    );
    assert_eq!(app.mock.asked(), 5);
    app.finish().await;
}

/// The AI SDK names all earlier items, also beside `previous_response_id`.
async fn items_that_the_base_has_are_left_out(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = app.response(&json!({"input": "one"})).await;
    let body = json!({"input": "ponder", "tools": mine(), "previous_response_id": first["id"]});
    let second = app.response(&body).await;
    let items = [&first, &second].map(|response| response["output"].as_array().unwrap().clone());
    let references = items.concat().into_iter();
    let references = references.map(|item| json!({"type": "item_reference", "id": item["id"]}));
    let mut input: Vec<_> = references.collect();
    input.push(json!({"type": "function_call_output", "call_id": "c1", "output": "five"}));
    app.response(&json!({"input": input, "previous_response_id": second["id"]}))
        .await;
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "one", "echo: one", "ponder", "Let me see.", "five"]
    );
    // The same step of another run is not one of the base.
    let (run, id) = (
        &first["id"].as_str().unwrap()[5..],
        first["output"][0]["id"].as_str().unwrap(),
    );
    let other = json!([{"type": "item_reference", "id": id.replace(run, &"0".repeat(32))}]);
    let answer = app
        .respond(&json!({"input": other, "previous_response_id": second["id"]}))
        .await;
    assert_error(&answer, 404, "run_not_found", &json!("input[0].id"));
    app.finish().await;
}

async fn a_response_that_is_not_stored_is_gone(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let response = app.response(&json!({"input": "one", "store": false})).await;
    assert_eq!(
        (text(&response).as_str(), &response["store"]),
        ("echo: one", &json!(false))
    );
    app.until_idle().await;
    let id = &response["id"];
    let answer = app.try_get(&format!("/v1/responses/{}", id.as_str().unwrap())).await;
    assert_error(&answer, 404, "run_not_found", &Value::Null);
    let answer = app.respond(&json!({"input": "two", "previous_response_id": id})).await;
    assert_error(
        &answer,
        400,
        "previous_response_not_found",
        &json!("previous_response_id"),
    );
    app.finish().await;
}

/// Deletes a response. No request finds it afterwards.
async fn delete(app: &TestApp, response: &Value) {
    let id = response["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    let deleted = read(app.request(Method::DELETE, &path)).await.ok();
    assert_eq!(deleted, json!({"id": id, "object": "response", "deleted": true}));
    for (method, rest) in ROUTES {
        let answer = read(app.request(method, &format!("{path}{rest}"))).await;
        assert_error(&answer, 404, "run_not_found", &Value::Null);
    }
    let body = json!({"model": "mock/m", "input": "hi", "previous_response_id": id});
    let answer = app.post("/v1/responses", &body).await;
    assert_error(
        &answer,
        400,
        "previous_response_not_found",
        &json!("previous_response_id"),
    );
    let item = id.replace("resp_", "msg_") + "1";
    let reference = json!([{"type": "item_reference", "id": item}]);
    let answer = app
        .post("/v1/responses", &json!({"model": "mock/m", "input": reference}))
        .await;
    assert_error(&answer, 404, "run_not_found", &json!("input[0].id"));
}

async fn a_deleted_response_is_gone_and_those_after_it_stay(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = app.response(&json!({"input": "one"})).await;
    let second = app
        .response(&json!({"input": "two", "previous_response_id": first["id"]}))
        .await;
    delete(&app, &first).await;
    let path = format!("/v1/responses/{}", second["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await, second);
    app.response(&json!({"input": "three", "previous_response_id": second["id"]}))
        .await;
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "one", "echo: one", "two", "echo: two", "three"]
    );
    // Operators still see the run.
    let run = app.get(&run_path(&first["agent_runtime"], "")).await;
    assert_eq!(run["output_text"], "echo: one");
    // A response that nothing needs goes with its session.
    let leaf = app.response(&json!({"input": "leaf"})).await;
    delete(&app, &leaf).await;
    for path in [run_path, session_path].map(|path| path(&leaf["agent_runtime"], "")) {
        assert_eq!(app.try_get(&path).await.status, 404);
    }
    app.finish().await;
}

async fn responses_of_every_end_are_deleted(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let failed = app.respond(&json!({"input": "overloaded"})).await.json();
    delete(&app, &json!({"id": failed["error"]["response_id"]})).await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let waiting = app.response(&json!({"input": calls})).await;
    delete(&app, &waiting).await;
    // A conversation goes on after its last response was deleted.
    let conversation = app.conversation().await;
    let last = app
        .response(&json!({"input": "one", "conversation": conversation}))
        .await;
    delete(&app, &last).await;
    app.response(&json!({"input": "two", "conversation": conversation}))
        .await;
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "one", "echo: one", "two"]
    );
    app.finish().await;
}

async fn a_response_that_has_not_ended_is_cancelled_and_deleted(database: TestDatabase) {
    let gate = Gate::new();
    let mock = MockModel::waiting_behind(&gate).await;
    let app = TestApp::start(database.url(), &mock, &[("queue.concurrency", "1")]).await;
    let body = json!({"model": "mock/m", "input": "wait"});
    let background = extended(body.clone(), &json!({"background": true}));
    let at_work = app.post("/v1/responses", &background).await.ok();
    gate.until_waiting(1).await;
    let queued = app.post("/v1/responses", &background).await.ok();
    for response in [queued, at_work] {
        delete(&app, &response).await;
        let run = app.get(&run_path(&response["agent_runtime"], "")).await;
        assert_eq!(run["status"], "cancelled", "{run:#}");
    }
    gate.until_waiting(0).await;
    let deleting = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        let digits = run["run_id"].as_str().unwrap().replace('-', "");
        delete(&app, &json!({"id": format!("resp_{digits}")})).await;
        assert_eq!(app.get(&run_path(&run, "")).await["status"], "cancelled");
    };
    tokio::join!(app.post("/v1/responses", &body), deleting);
    app.finish().await;
}

/// Asks for a response of the agent with a key.
async fn send_keyed(app: &FaceApp, key: &str, more: &Value) -> Answer {
    let request = app.request(Method::POST, "/v1/responses");
    let request = request.header("idempotency-key", key);
    read(with_json(request, &extended(json!({"model": "own"}), more))).await
}

async fn a_repeated_request_gets_the_same_response(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let send = async |input: &str| send_keyed(&app, "k", &json!({"input": input})).await;
    let first = send("hi").await;
    let again = send("hi").await;
    assert_eq!((again.header("idempotency-replayed"), app.mock.asked()), ("true", 1));
    assert_eq!(again.ok(), first.ok());
    assert_error(&send("other").await, 400, "idempotency_key_reused", &Value::Null);
    // What is not stored has no key.
    for _ in 0..2 {
        let unstored = send_keyed(&app, "unstored", &json!({"input": "hi", "store": false})).await;
        assert_eq!(
            (text(&unstored.json()).as_str(), unstored.header("idempotency-replayed")),
            ("echo: hi", "")
        );
    }
    assert_eq!(app.mock.asked(), 3);
    app.finish().await;
}

async fn a_key_does_not_bring_a_deleted_response_back(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = send_keyed(&app, "k", &json!({"input": "hi"})).await.ok();
    // Its record stays, since another response continues it.
    app.response(&json!({"input": "on", "previous_response_id": first["id"]}))
        .await;
    delete(&app, &first).await;
    let again = send_keyed(&app, "k", &json!({"input": "hi"})).await;
    assert_error(&again, 404, "run_not_found", &Value::Null);
    assert_eq!(app.mock.asked(), 2);
    app.finish().await;
}

/// The first request moves the conversation on, so that no call of it is open at the second.
async fn a_repeated_answer_to_a_conversation_gets_the_same_response(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = app.conversation().await;
    let tools = json!([{"type": "function", "name": "mine"}]);
    let input = json!([["c1", "mine", {}]]).to_string();
    app.response(&json!({"input": input, "tools": tools, "conversation": conversation}))
        .await;
    let output = json!([{"type": "function_call_output", "call_id": "c1", "output": "five"}]);
    let answer = json!({"input": output, "conversation": conversation});
    let first = send_keyed(&app, "k", &answer).await;
    let again = send_keyed(&app, "k", &answer).await;
    assert_eq!((again.header("idempotency-replayed"), app.mock.asked()), ("true", 2));
    assert_eq!(text(&first.json()), "read: five");
    assert_eq!(again.ok(), first.ok());
    app.finish().await;
}

async fn a_key_that_may_not_read_cancels_without_reading(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let response = app.response(&json!({"input": "hi", "instructions": "Be brief."})).await;
    let (_, writer) = app.make_key("default", &[Scope::RunsWrite]).await;
    let path = format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap());
    let cancelled = post_with(&app, &writer, &path, &json!({})).await.ok();
    assert_eq!(
        (&cancelled["status"], &cancelled["output"], &cancelled["instructions"]),
        (&json!("completed"), &json!([]), &Value::Null)
    );
    app.finish().await;
}

async fn responses_of_another_tenant_do_not_exist(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let scopes = [Scope::RunsWrite, Scope::SessionsRead];
    let (_, acme) = app.make_key("acme", &scopes).await;
    let (_, globex) = app.make_key("globex", &scopes).await;
    let body = json!({"model": "mock/m", "input": "secret"});
    let response = post_with(&app, &acme, "/v1/responses", &body).await.ok();
    let id = response["id"].as_str().unwrap();
    for (method, rest) in ROUTES {
        let answer = read(keyed(&app, &globex, method, &format!("/v1/responses/{id}{rest}"))).await;
        assert_error(&answer, 404, "run_not_found", &Value::Null);
    }
    let body = json!({"model": "mock/m", "input": "hi", "previous_response_id": id});
    let answer = post_with(&app, &globex, "/v1/responses", &body).await;
    assert_error(
        &answer,
        400,
        "previous_response_not_found",
        &json!("previous_response_id"),
    );
    let reference = json!([{"type": "item_reference", "id": response["output"][0]["id"]}]);
    let body = json!({"model": "mock/m", "input": reference});
    let answer = post_with(&app, &globex, "/v1/responses", &body).await;
    assert_error(&answer, 404, "run_not_found", &json!("input[0].id"));
    let answer = post_with(
        &app,
        &globex,
        "/v1/chat/completions",
        &json!({
            "model": "own", "messages": [{"role": "user", "content": "hi"}],
        }),
    )
    .await;
    assert_error(&answer, 404, "model_not_found", &json!("model"));
    app.finish().await;
}

//! The items of conversations: they have the ids of their responses, and sessions without a run add
//! and delete them.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::tools::mine;
use super::{FaceApp, assert_error, keyed, on_every_database, post_with};
use crate::support::answer::{Answer, read, with_json};
use crate::support::gated::GatedApp;
use crate::support::members::{assert_members, column, extended};
use crate::support::mock_model::texts;
use crate::support::test_app::{TestApp, session_path};
use store::keys::Scope;

on_every_database! {
    a_conversation_has_the_items_of_its_responses,
    a_conversation_with_open_calls_has_their_turn,
    items_of_a_conversation_are_named_by_their_ids,
    items_are_added_without_a_run,
    a_deleted_item_is_in_no_later_session,
    sealed_reasoning_is_deleted_with_the_marks_of_its_message,
    a_conversation_is_emptied_item_by_item,
    what_can_not_be_added_names_the_field,
    a_conversation_with_open_calls_does_not_change,
    a_conversation_with_an_active_run_does_not_change,
    items_of_another_tenant_do_not_exist,
}

/// Makes a conversation with items, and returns its id.
async fn conversation(app: &TestApp, items: Value) -> Value {
    let made = app.post("/v1/conversations", &json!({"items": items})).await.ok();
    made["id"].clone()
}

fn path(conversation: &Value, rest: &str) -> String {
    format!("/v1/conversations/{}/items{rest}", conversation.as_str().unwrap())
}

fn item_path(conversation: &Value, item: &Value) -> String {
    path(conversation, &format!("/{}", item["id"].as_str().unwrap()))
}

/// All items of a conversation, oldest first.
async fn all(app: &TestApp, conversation: &Value) -> Vec<Value> {
    let list = app.get(&path(conversation, "?order=asc&limit=100")).await;
    list["data"].as_array().unwrap().clone()
}

async fn delete(app: &TestApp, path: &str) -> Answer {
    read(app.request(Method::DELETE, path)).await
}

/// The session to which a conversation points.
async fn session_of(app: &TestApp, conversation: &Value) -> Value {
    let thread = app
        .get(&format!("/v1/threads/{}", conversation.as_str().unwrap()))
        .await;
    app.get(&session_path(&thread, "")).await
}

fn roles(session: &Value) -> Vec<&Value> {
    column(&session["message_history_state"]["messages"], "role")
}

/// Asks for three responses: with a call of the agent, with a call of the caller, and with its
/// answer. Checks after each that the conversation has its items.
async fn talk(app: &FaceApp, conversation: &Value) -> Vec<Value> {
    let tools = json!([{"type": "function", "name": "mine"}]);
    let own = json!([["c1", "look", {"ms": 1}]]).to_string();
    let mine = json!([["c2", "mine", {}]]).to_string();
    let output = json!([{"type": "function_call_output", "call_id": "c2", "output": "five"}]);
    let (mut responses, mut expected) = (Vec::new(), Vec::new());
    for input in [json!(own), json!(mine), output] {
        let body = json!({"input": input, "tools": tools, "conversation": conversation});
        let response = app.response(&body).await;
        let id = response["id"].as_str().unwrap();
        let input = app.get(&format!("/v1/responses/{id}/input_items?order=asc")).await;
        expected.extend(input["data"].as_array().unwrap().clone());
        expected.extend(response["output"].as_array().unwrap().clone());
        assert_eq!(all(app, conversation).await, expected);
        responses.push(response);
    }
    responses
}

async fn a_conversation_has_the_items_of_its_responses(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    talk(&app, &conversation).await;
    let mut items = all(&app, &conversation).await;
    let types = [
        "message",
        "mcp_call",
        "message",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ];
    assert_eq!(column(&json!(items), "type"), types);
    for item in &items {
        assert_eq!(app.get(&item_path(&conversation, item)).await, *item);
    }
    for order in ["asc", "desc"] {
        let (mut after, mut paged) = (String::new(), Vec::new());
        loop {
            let page = app
                .get(&path(&conversation, &format!("?order={order}&limit=2{after}")))
                .await;
            paged.extend(page["data"].as_array().unwrap().clone());
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(paged, items);
        items.reverse();
    }
    let absent = app.get(&path(&conversation, "?after=msg_1")).await;
    assert_members!(absent, {"data": [], "first_id": null, "has_more": false});
    app.finish().await;
}

async fn a_conversation_with_open_calls_has_their_turn(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let body = json!({"input": "ponder", "tools": mine(), "conversation": conversation});
    let response = app.response(&body).await;
    let items = all(&app, &conversation).await;
    assert_eq!(
        column(&json!(items), "type"),
        ["message", "reasoning", "message", "function_call"]
    );
    assert_eq!(json!(items[1..]), response["output"]);
    for item in &items {
        assert_eq!(app.get(&item_path(&conversation, item)).await, *item);
    }
    app.finish().await;
}

async fn items_of_a_conversation_are_named_by_their_ids(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let talked = conversation(&app, json!([])).await;
    talk(&app, &talked).await;
    let reference = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
    let next = json!({"role": "user", "content": "next"});
    let mut input: Vec<_> = all(&app, &talked).await.iter().map(reference).collect();
    input.push(next.clone());
    app.response(&json!({"input": input})).await;
    let asked = app.last_request();
    assert_eq!(
        column(&asked["messages"], "role"),
        [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user"
        ]
    );
    // No run has made this item, so a request can name it in its conversation alone, which has it.
    let added = conversation(&app, json!([{"role": "user", "content": "one"}])).await;
    let input = json!([reference(&all(&app, &added).await[0]), next]);
    app.response(&json!({"input": input, "conversation": added})).await;
    assert_eq!(texts(&app.last_request()["messages"]), ["You are A.", "one", "next"]);
    let answer = app.respond(&json!({"input": input})).await;
    assert_error(&answer, 404, "run_not_found", &json!("input[0].id"));
    app.finish().await;
}

async fn items_are_added_without_a_run(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let add = async |items: Value| {
        let request = app.request(Method::POST, &path(&conversation, ""));
        let request = request.header("idempotency-key", items.to_string().len());
        read(with_json(request, &json!({"items": items}))).await
    };
    let none = add(json!([])).await.ok();
    assert_members!(none, {"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false});
    let words = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]);
    let first = add(words.clone()).await.ok();
    assert_eq!(column(&first["data"], "role"), ["user", "assistant"]);
    assert_eq!(
        (&first["first_id"], &first["last_id"]),
        (&first["data"][0]["id"], &first["data"][1]["id"])
    );
    let begun = session_of(&app, &conversation).await;
    let calls = json!([
        {"type": "mcp_call", "id": "mcp_1", "server_label": "agent", "name": "look", "arguments": "{}", "output": "seen"},
        {"type": "function_call", "call_id": "c1", "name": "mine", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "five"},
    ]);
    let second = add(calls).await.ok();
    assert_eq!(
        column(&second["data"], "type"),
        ["mcp_call", "function_call", "function_call_output"]
    );
    assert_members!(second["data"][0], {"server_label": "agent", "name": "look", "output": "seen", "error": null});
    let session = session_of(&app, &conversation).await;
    assert_eq!(
        roles(&session),
        ["user", "assistant", "assistant", "tool", "assistant", "tool"]
    );
    assert_members!(session, {
        "parent_session_id": begun["session_id"], "run_id": null, "thread": conversation,
        "environment_state": begun["environment_state"], "agent": begun["agent"],
    });
    assert_eq!(app.get(&session_path(&begun, "")).await, begun, "no session changes");
    // A repeated request adds nothing.
    let again = add(words).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.ok(), first);
    let items = [&first, &second].map(|list| list["data"].as_array().unwrap().clone());
    assert_eq!(all(&app, &conversation).await, items.concat());
    assert_eq!(app.mock.asked(), 0);
    app.response(&json!({"input": "three", "conversation": conversation}))
        .await;
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "one", "two", "", "seen", "", "five", "three"]
    );
    app.finish().await;
}

async fn a_deleted_item_is_in_no_later_session(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let responses = talk(&app, &conversation).await;
    let mut items = all(&app, &conversation).await;
    let before = session_of(&app, &conversation).await;
    let deleted = delete(&app, &item_path(&conversation, &items[4])).await.ok();
    let shown = app
        .get(&format!("/v1/conversations/{}", conversation.as_str().unwrap()))
        .await;
    assert_eq!(deleted, shown);
    // A call and its output go together, and the other items have their ids.
    items.drain(4..6);
    assert_eq!(all(&app, &conversation).await, items);
    let after = session_of(&app, &conversation).await;
    assert_eq!(
        roles(&after),
        ["user", "assistant", "tool", "assistant", "user", "assistant"]
    );
    assert_members!(after, {
        "parent_session_id": responses[1]["agent_runtime"]["session_id"], "run_id": null, "thread": conversation,
        "environment_state": before["environment_state"], "context_state/waiting": null,
    });
    assert_eq!(app.get(&session_path(&before, "")).await, before, "no session changes");
    // The text after the call of the agent: nothing before it is in a session without it.
    let gone = items.remove(2);
    delete(&app, &item_path(&conversation, &gone)).await.ok();
    assert_eq!(all(&app, &conversation).await, items);
    let after = session_of(&app, &conversation).await;
    assert_eq!(roles(&after), ["user", "assistant", "tool", "user", "assistant"]);
    assert_eq!(after["parent_session_id"], Value::Null);
    for method in [Method::GET, Method::DELETE] {
        let answer = read(app.request(method, &item_path(&conversation, &gone))).await;
        assert_error(&answer, 404, "run_not_found", &Value::Null);
    }
    app.response(&json!({"input": "next", "conversation": conversation}))
        .await;
    let asked = app.last_request();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 7);
    assert_eq!(texts(&asked["messages"])[5..], ["read: five", "next"]);
    app.finish().await;
}

async fn sealed_reasoning_is_deleted_with_the_marks_of_its_message(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let more = json!({
        "tools": mine(), "conversation": conversation,
        "include": ["reasoning.encrypted_content"],
    });
    let output = json!([{"type": "function_call_output", "call_id": "c1", "output": "five"}]);
    for input in [json!("ponder"), output] {
        app.response(&extended(json!({"input": input}), &more)).await;
    }
    assert_eq!(app.last_request()["messages"][2]["reasoning_content"], "hm");
    let mut items = all(&app, &conversation).await;
    let sealed = items.iter().position(|item| item["encrypted_content"].is_string());
    let sealed = items.remove(sealed.unwrap());
    assert_members!(sealed, {"type": "reasoning", "summary/0/text": "hm"});
    delete(&app, &item_path(&conversation, &sealed)).await.ok();
    assert_eq!(all(&app, &conversation).await, items);
    app.response(&json!({"input": "next", "conversation": conversation}))
        .await;
    let asked = app.last_request();
    assert_members!(asked["messages"][2], {"role": "assistant", "content": "Let me see."});
    assert_eq!(asked["messages"][2]["reasoning_content"], Value::Null);
    app.finish().await;
}

async fn a_conversation_is_emptied_item_by_item(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([{"role": "user", "content": "one"}])).await;
    talk_after(&app, &conversation).await;
    let mut deleted = 0;
    loop {
        let last = app.get(&path(&conversation, "?limit=1")).await;
        let Some(item) = last["data"].as_array().unwrap().first() else {
            break;
        };
        delete(&app, &item_path(&conversation, item)).await.ok();
        deleted += 1;
    }
    // One deletion takes the call of the caller with its output.
    assert_eq!(deleted, 7);
    app.response(&json!({"input": "again", "conversation": conversation}))
        .await;
    assert_eq!(texts(&app.last_request()["messages"]), ["You are A.", "again"]);
    app.finish().await;
}

/// Asks for a response with a call of the agent, and for two with a call of the caller.
async fn talk_after(app: &FaceApp, conversation: &Value) {
    let begun = all(app, conversation).await;
    let tools = json!([{"type": "function", "name": "mine"}]);
    let mine = json!([["c2", "look", {"ms": 1}], ["c3", "mine", {}]]).to_string();
    let output = json!([{"type": "function_call_output", "call_id": "c3", "output": "five"}]);
    for input in [json!("two"), json!(mine), output] {
        let body = json!({"input": input, "tools": tools, "conversation": conversation});
        app.response(&body).await;
    }
    let items = all(app, conversation).await;
    assert_eq!(items[..1], begun[..]);
    assert_eq!(items.len(), 8);
}

async fn what_can_not_be_added_names_the_field(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let user = json!({"role": "user", "content": "hi"});
    for (body, code, param) in [
        (json!({}), "missing_required_parameter", "items"),
        (json!({"items": vec![&user; 21]}), "too_many_messages", "items"),
        (
            json!({"items": [{"type": "function_call", "call_id": "c", "name": "f"}]}),
            "invalid_answers",
            "items[0]",
        ),
        (
            json!({"items": [{"type": "function_call_output", "call_id": "c", "output": ""}]}),
            "invalid_field",
            "items[0]",
        ),
        (
            json!({"items": [{"type": "mcp_approval_response", "approval_request_id": "m", "approve": true}]}),
            "unsupported_parameter",
            "items[0]",
        ),
    ] {
        let answer = app.post(&path(&conversation, ""), &body).await;
        assert_error(&answer, 400, code, &json!(param));
    }
    let decision = json!([{"type": "mcp_approval_response", "approval_request_id": "m", "approve": true}]);
    let answer = app.post("/v1/conversations", &json!({"items": decision})).await;
    assert_error(&answer, 400, "unsupported_parameter", &json!("items[0]"));
    let reference = json!({"items": [user, {"type": "item_reference", "id": "msg_1"}]});
    let answer = app.post(&path(&conversation, ""), &reference).await;
    assert_error(&answer, 404, "run_not_found", &json!("items[1].id"));
    assert!(all(&app, &conversation).await.is_empty());
    app.finish().await;
}

/// Fails unless no item can be added or deleted.
async fn assert_unchangeable(app: &TestApp, conversation: &Value, code: &str) {
    let items = all(app, conversation).await;
    let body = json!({"items": [{"role": "user", "content": "hi"}]});
    let added = app.post(&path(conversation, ""), &body).await;
    let deleted = delete(app, &item_path(conversation, &items[0])).await;
    for answer in [added, deleted] {
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (400, &json!(code)),
            "{}",
            answer.text()
        );
        assert_eq!(answer.header("x-should-retry"), "false");
    }
    assert_eq!(all(app, conversation).await, items);
}

async fn a_conversation_with_open_calls_does_not_change(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = conversation(&app, json!([])).await;
    let (tools, input) = (
        json!([{"type": "function", "name": "mine"}]),
        json!([["c", "mine", {}]]).to_string(),
    );
    app.response(&json!({"input": input, "tools": tools, "conversation": conversation}))
        .await;
    assert_unchangeable(&app, &conversation, "answers_required").await;
    app.finish().await;
}

async fn a_conversation_with_an_active_run_does_not_change(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let conversation = conversation(&app, json!([{"role": "user", "content": "hi"}])).await;
    let body = json!({"model": "mock/m", "input": "wait", "background": true, "conversation": conversation});
    app.post("/v1/responses", &body).await.ok();
    app.gate.until_waiting(1).await;
    assert_unchangeable(&app, &conversation, "conversation_locked").await;
    app.gate.open(1);
    app.until_idle().await;
    app.finish().await;
}

async fn items_of_another_tenant_do_not_exist(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let scopes = [Scope::RunsWrite, Scope::SessionsRead];
    let (_, acme) = app.make_key("acme", &scopes).await;
    let (_, globex) = app.make_key("globex", &scopes).await;
    let items = json!({"items": [{"role": "user", "content": "secret"}]});
    let made = post_with(&app, &acme, "/v1/conversations", &items).await.ok();
    let list = read(keyed(&app, &acme, Method::GET, &path(&made["id"], ""))).await.ok();
    let item = item_path(&made["id"], &list["data"][0]);
    for (method, path) in [
        (Method::GET, &path(&made["id"], "")),
        (Method::GET, &item),
        (Method::DELETE, &item),
    ] {
        let answer = read(keyed(&app, &globex, method, path)).await;
        assert_error(&answer, 404, "thread_not_found", &json!("conversation"));
    }
    let answer = post_with(&app, &globex, &path(&made["id"], ""), &items).await;
    assert_error(&answer, 404, "thread_not_found", &json!("conversation"));
    let own = post_with(&app, &globex, "/v1/conversations", &json!({})).await.ok();
    let reference = json!({"items": [{"type": "item_reference", "id": list["data"][0]["id"]}]});
    let answer = post_with(&app, &globex, &path(&own["id"], ""), &reference).await;
    assert_error(&answer, 404, "run_not_found", &json!("items[0].id"));
    app.finish().await;
}

//! Conversations, which are threads, and the list of models.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use values::limits::RunLimits;

use super::{FaceApp, assert_error, keyed, on_every_database};
use crate::support::answer::{read, with_json};
use crate::support::members::column;
use crate::support::mock_model::texts;
use store::keys::Scope;

on_every_database! {
    a_conversation_is_created_changed_and_deleted,
    responses_continue_a_conversation,
    items_begin_a_conversation,
    a_repeated_request_gets_the_same_conversation,
    agents_and_models_are_listed_for_those_who_may_run_them,
}

fn path(conversation: &Value) -> String {
    format!("/v1/conversations/{}", conversation["id"].as_str().unwrap())
}

async fn a_conversation_is_created_changed_and_deleted(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let made = app
        .post("/v1/conversations", &json!({"metadata": {"a": "b"}}))
        .await
        .ok();
    assert_eq!(
        (&made["object"], &made["metadata"]),
        (&json!("conversation"), &json!({"a": "b"}))
    );
    assert!(made["id"].as_str().unwrap().starts_with("conv_"), "{made}");
    assert_eq!(app.get(&path(&made)).await, made);
    let changed = app.post(&path(&made), &json!({"metadata": {"c": "d"}})).await.ok();
    assert_eq!(changed["metadata"], json!({"c": "d"}));
    let deleted = read(app.request(Method::DELETE, &path(&made))).await.ok();
    assert_eq!(
        deleted,
        json!({"id": made["id"], "object": "conversation.deleted", "deleted": true})
    );
    assert_error(
        &app.try_get(&path(&made)).await,
        404,
        "thread_not_found",
        &json!("conversation"),
    );
    app.finish().await;
}

async fn responses_continue_a_conversation(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let made = app.post("/v1/conversations", &json!({})).await.ok();
    for conversation in [made["id"].clone(), json!({"id": made["id"]})] {
        let response = app
            .response(&json!({"input": "hi", "conversation": conversation}))
            .await;
        assert_eq!(response["conversation"], json!({"id": made["id"]}));
    }
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "hi", "echo: hi", "hi"]
    );
    let list = app.get(&format!("{}/items?order=asc&limit=3", path(&made))).await;
    assert_eq!(column(&list["data"], "role"), ["user", "assistant", "user"]);
    let after = list["last_id"].as_str().unwrap();
    let rest = app.get(&format!("{}/items?order=asc&after={after}", path(&made))).await;
    assert_eq!(
        (column(&rest["data"], "role"), &rest["has_more"]),
        (vec![&json!("assistant")], &json!(false))
    );
    app.finish().await;
}

async fn items_begin_a_conversation(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let items = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]);
    let made = app.post("/v1/conversations", &json!({"items": items})).await.ok();
    app.response(&json!({"input": "three", "conversation": made["id"]}))
        .await;
    assert_eq!(
        texts(&app.last_request()["messages"]),
        ["You are A.", "one", "two", "three"]
    );
    app.finish().await;
}

async fn a_repeated_request_gets_the_same_conversation(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let create = async |content: &str| {
        let request = app.request(Method::POST, "/v1/conversations");
        let body = json!({"items": [{"role": "user", "content": content}]});
        read(with_json(request.header("idempotency-key", "k"), &body)).await
    };
    let first = create("one").await;
    assert_eq!(first.header("idempotency-replayed"), "");
    let again = create("one").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.ok(), first.ok());
    for path in ["/v1/threads", "/v1/sessions"] {
        assert_eq!(app.get(path).await["data"].as_array().unwrap().len(), 1, "{path}");
    }
    assert_error(&create("other").await, 400, "idempotency_key_reused", &Value::Null);
    app.finish().await;
}

async fn agents_and_models_are_listed_for_those_who_may_run_them(database: TestDatabase) {
    let app = FaceApp::start_with(&database, &[("providers.mock.models", r#"["m", "other"]"#)]).await;
    let list = app.get("/v1/models").await;
    let names = column(&list["data"], "id");
    for name in ["own", "mock/m", "mock/other"] {
        assert!(names.contains(&&json!(name)), "{names:?}");
    }
    assert_eq!(app.get("/v1/models/mock%2Fm").await, app.get("/v1/models/mock/m").await);
    assert_eq!(app.get("/v1/models/own").await["owned_by"], "agent-runtime");
    let response = app
        .post("/v1/responses", &json!({"model": "mock/other", "input": "hi"}))
        .await
        .ok();
    assert_eq!(
        (&response["model"], &app.last_request()["model"]),
        (&json!("mock/other"), &json!("other"))
    );
    // A model alone has neither a prompt nor tools.
    assert_eq!(texts(&app.last_request()["messages"]), ["hi"]);
    let limits = RunLimits {
        agents: vec!["nothing".parse().unwrap()],
        ..RunLimits::default()
    };
    let (_, secret) = app.make_key_with("acme", &[Scope::SessionsRead], limits).await;
    let list = read(keyed(&app, &secret, Method::GET, "/v1/models")).await.ok();
    assert_eq!(list["data"], json!([]));
    app.finish().await;
}

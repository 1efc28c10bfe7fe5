//! `GET /v1/audit`: each administrative act leaves one entry that names its caller.

use reqwest::{Method, header};
use serde_json::{Value, json};
use store::audit::AuditChain;
use store::keys::Scope;
use test_support::wait::until;

use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::test_app::session_path;
use crate::support::webhook_receiver::WebhookReceiver;
use agent_runtime::http::openapi;

const SETTINGS: &[(&str, &str)] = &[
    ("webhooks.allow_private_addresses", "true"),
    ("webhooks.allow_http", "true"),
];

on_every_store! {
    with super::SETTINGS;
    each_administrative_route_writes_one_entry,
    the_entries_of_a_tenant_are_shown_in_pages,
}

/// The routes of administrative acts. All others that change something are the work of callers,
/// whose runs name them.
const ACTS: [(&str, &str, &str); 8] = [
    ("put", "/v1/agents/{name}", "agent.stored"),
    ("delete", "/v1/agents/{name}", "agent.deleted"),
    ("post", "/v1/configuration/reload", "agent_files.reloaded"),
    ("delete", "/v1/sessions/{session_id}", "session.removed"),
    ("delete", "/v1/responses/{response_id}", "session.removed"),
    (
        "post",
        "/v1/webhooks/deliveries/{delivery_id}/redeliver",
        "webhook.redelivered",
    ),
    ("post", "/console/session", "browser.logged_in"),
    ("delete", "/console/session", "browser.logged_out"),
];

/// What callers remove in the course of their work: names of sessions, and messages of threads.
const WORK: [&str; 4] = [
    "/v1/threads/{name}",
    "/v1/langgraph/threads/{thread_id}",
    "/v1/conversations/{conversation_id}",
    "/v1/conversations/{conversation_id}/items/{item_id}",
];

/// Counts the entries of all chains.
async fn count(service: &Service) -> u64 {
    let heads = service.app.runs.store.audit_heads().await.unwrap();
    heads.iter().map(|head| head.number).sum()
}

/// Returns the last entry of a chain.
async fn last(service: &Service, chain: &AuditChain) -> Value {
    let store = &service.app.runs.store;
    let head = store.audit_head(chain).await.unwrap();
    let records = store.audit_read(chain, head.number, 1).await.unwrap();
    serde_json::from_str(&records[0].entry).unwrap()
}

async fn send(service: &Service, method: &str, path: &str, key: &str, body: &Value) -> Answer {
    let request = service.request(method.to_uppercase().parse().unwrap(), path);
    let request = request.bearer_auth(key).header("x-request-id", "r-1");
    let request = if body.is_null() {
        request
    } else {
        with_json(request, body)
    };
    let answer = read(request).await;
    assert!(answer.status.is_success(), "{method} {path}: {}", answer.text());
    answer
}

/// Returns the path of something to which the act can be done.
async fn target(service: &Service, route: &str, key: &str) -> String {
    let run = async |body: Value| send(service, "post", "/v1/runs", key, &body).await.json();
    if route.starts_with("/v1/agents/") {
        return "/v1/agents/mine".to_owned();
    } else if route.starts_with("/v1/sessions/") {
        let run = run(json!({"agent": "demo", "model": "mock/echo", "input": "hi"})).await;
        return session_path(&run, "");
    } else if route.starts_with("/v1/responses/") {
        let body = json!({"model": "mock/echo", "input": "hi"});
        let response = send(service, "post", "/v1/responses", key, &body).await.json();
        return format!("/v1/responses/{}", response["id"].as_str().unwrap());
    } else if !route.starts_with("/v1/webhooks/") {
        return route.to_owned();
    }
    let receiver = WebhookReceiver::content().await;
    let body = json!({"agent": "demo", "model": "mock/echo", "input": "hi", "webhook": {"url": receiver.url("/")}});
    run(body).await;
    let list = "/v1/webhooks/deliveries?status=delivered";
    until("the message is not delivered", async || {
        !send(service, "get", list, key, &Value::Null).await.json()["data"]
            .as_array()
            .unwrap()
            .is_empty()
    })
    .await;
    let listed = send(service, "get", list, key, &Value::Null).await.json();
    let id = listed["data"][0]["delivery_id"].as_str().unwrap();
    format!("/v1/webhooks/deliveries/{id}/redeliver")
}

async fn each_administrative_route_writes_one_entry(service: &Service) {
    let description = serde_json::to_value(openapi()).unwrap();
    let operation = |method: &str, path: &str| &description["paths"][path][method];
    let is_act = |method: &str, path: &str| ACTS.iter().any(|(known, route, _)| (*known, *route) == (method, path));
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_administration = operation["security"].to_string().contains("\"admin\"");
            let removes = method == "delete" && !WORK.contains(&path.as_str());
            let needs_entry = removes || (is_administration && method != "get");
            assert!(!needs_entry || is_act(method, path), "{method} {path} has no entry");
        }
    }
    let (key_id, key) = service.make_key("acme", &[Scope::Admin]).await;
    let actor = json!({"kind": "key", "key_id": key_id, "label": ""});
    let mut cookie = String::new();
    for (method, route, action) in ACTS {
        assert!(operation(method, route).is_object(), "there is no {method} {route}");
        let path = target(service, route, &key).await;
        let before = count(service).await;
        if route == "/console/session" {
            let request = service.request(method.to_uppercase().parse().unwrap(), &path);
            let request = request.header("sec-fetch-site", "same-origin").header("x-console", "1");
            let request = request.header("x-request-id", "r-1").header(header::COOKIE, &cookie);
            let answer = read(with_json(request, &json!({"key": key}))).await;
            assert!(answer.status.is_success(), "{}", answer.text());
            answer.header("set-cookie").clone_into(&mut cookie);
        } else {
            let body = if method == "put" {
                json!({"model": "mock/echo"})
            } else {
                Value::Null
            };
            send(service, method, &path, &key, &body).await;
        }
        assert_eq!(count(service).await, before + 1, "{method} {route}");
        let chain = match action {
            "agent_files.reloaded" => AuditChain::Service,
            _ => AuditChain::Tenant("acme".parse().unwrap()),
        };
        let entry = last(service, &chain).await;
        assert_eq!(
            (&entry["action"], &entry["actor"]),
            (&json!(action), &actor),
            "{entry:#}"
        );
        assert_eq!(
            (&entry["request_id"], &entry["address"]),
            (&json!("r-1"), &json!("127.0.0.1"))
        );
    }
}

async fn the_entries_of_a_tenant_are_shown_in_pages(service: &Service) {
    let (_, administrator) = service.make_key("acme", &[Scope::Admin]).await;
    let (_, auditor) = service.make_key("acme", &[Scope::Audit]).await;
    let (_, other) = service.make_key("other", &[Scope::Audit]).await;
    let (_, worker) = service.make_key("acme", &[Scope::RunsWrite, Scope::SessionsRead]).await;
    let agent = json!({"model": "mock/echo"});
    send(service, "put", "/v1/agents/mine", &administrator, &agent).await;
    let list = async |key: &str, query: &str| {
        let path = format!("/v1/audit?{query}");
        read(service.request(Method::GET, &path).bearer_auth(key)).await
    };
    let numbers = |page: &Value| -> Vec<u64> {
        let rows = page["data"].as_array().unwrap();
        rows.iter()
            .map(|row| row["entry"]["number"].as_u64().unwrap())
            .collect()
    };
    let first = list(&auditor, "limit=3").await.json();
    assert_eq!(numbers(&first), [4, 3, 2]);
    assert_eq!(first["data"][0]["previous_hash"], first["data"][1]["hash"]);
    assert_eq!(first["data"][0]["entry"]["action"], "agent.stored");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = list(&auditor, &format!("limit=3&cursor={cursor}")).await.json();
    assert_eq!((numbers(&second), &second["next_cursor"]), (vec![1], &Value::Null));
    assert_eq!(numbers(&list(&administrator, "").await.json()).len(), 4);
    // Its own key alone concerns the other tenant.
    assert_eq!(numbers(&list(&other, "").await.json()), [1]);
    list(&worker, "").await.assert_problem("missing_scope");
    list(&auditor, "cursor=effffffffffffffff").await.json();
    list(&auditor, "cursor=x").await.assert_problem("invalid_cursor");
    // An auditor reads nothing else.
    let sessions = read(service.request(Method::GET, "/v1/sessions").bearer_auth(&auditor)).await;
    sessions.assert_problem("missing_scope");
}

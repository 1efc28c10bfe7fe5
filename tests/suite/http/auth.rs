//! API keys: who may do what, and what others never see.

use chrono::TimeDelta;
use futures_util::future::join_all;
use reqwest::{Method, header};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::drafts::requester_at;
use test_support::wait::until;
use values::clock::Clock as _;

use super::routes::Route;
use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::test_app::{run_path, session_path};

const OPEN_PATHS: [&str; 6] = ["/", "/healthz", "/readyz", "/openapi.json", "/docs/", "/docs/problems"];

/// The hash of no bytes.
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

on_every_store! {
    a_key_is_looked_up_seldom_and_its_revocation_takes_effect_soon,
    what_belongs_to_another_tenant_is_not_there,
    a_key_that_may_write_removes_single_sessions,
    a_write_shows_no_contents_to_a_key_that_may_not_read,
}

async fn call(service: &Service, secret: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let mut request = service.request(method.parse().unwrap(), path);
    if !secret.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {secret}"));
    }
    read(match body {
        Some(body) => with_json(request, body),
        None => request,
    })
    .await
}

#[test]
fn reads_and_no_other_routes_need_the_scope_to_read() {
    for route in Route::all() {
        let is_read = route.scope().is_none_or(|scope| scope == Scope::SessionsRead);
        // An older version may be the operator's, and only administrators see these. Acts are for
        // auditors.
        let is_for_others = route.path().ends_with("/versions") || route.path() == "/v1/audit";
        assert_eq!(
            is_read,
            route.method == Method::GET && !is_for_others,
            "{} {}",
            route.method,
            route.path()
        );
    }
}

#[tokio::test]
async fn without_any_key_everybody_is_the_default_tenant() {
    let service = Service::start().await;
    for route in Route::all() {
        let (method, path) = (route.method.as_str(), route.path());
        let answer = call(&service, "", method, &path, None).await;
        assert!(
            ![401, 403].contains(&answer.status.as_u16()),
            "{method} {path}: {}",
            answer.text()
        );
    }
    // A key that nobody made is wrong even so.
    call(&service, "ark_x", "GET", "/v1/runs", None)
        .await
        .assert_problem("invalid_api_key");
    service.finish().await;
}

#[tokio::test]
async fn a_key_opens_what_its_scopes_allow() {
    let service = Service::start().await;
    for scopes in [
        &[Scope::RunsWrite][..],
        &[Scope::SessionsRead],
        &[Scope::RunsWrite, Scope::SessionsRead],
        &[Scope::Admin],
        &[],
    ] {
        let (_, secret) = service.make_key("acme", scopes).await;
        for route in Route::all() {
            let (method, path, needed) = (route.method.as_str(), route.path(), route.scope());
            let answer = call(&service, &secret, method, &path, None).await;
            if needed.is_none_or(|needed| scopes.contains(&needed) || scopes.contains(&Scope::Admin)) {
                assert!(
                    ![401, 403].contains(&answer.status.as_u16()),
                    "{scopes:?} {method} {path}: {}",
                    answer.text()
                );
            } else {
                answer.assert_problem("missing_scope");
                let needed = needed.unwrap().as_str();
                assert!(answer.json()["detail"].as_str().unwrap().contains(needed));
            }
        }
    }
    service.finish().await;
}

#[tokio::test]
async fn with_a_key_made_every_other_request_is_refused() {
    let service = Service::start().await;
    let (_, secret) = service.make_key("acme", &[Scope::Admin]).await;
    for route in Route::all() {
        let answer = call(&service, "", route.method.as_str(), &route.path(), None).await;
        answer.assert_problem("missing_api_key");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"agent-runtime\"");
    }
    for bad in [
        "Bearer",
        "Bearer ",
        "Basic dTpw",
        "ark_1",
        &format!("Bearer {secret}0"),
        &format!("Token {secret}"),
    ] {
        let answer = read(
            service
                .request(Method::GET, "/v1/runs")
                .header(header::AUTHORIZATION, bad),
        )
        .await;
        answer.assert_problem("invalid_api_key");
        assert!(!answer.text().contains(&secret));
    }
    let with_key = |secret: &str| service.request(Method::GET, "/v1/runs").header("x-api-key", secret);
    assert_eq!(read(with_key(&secret)).await.status, 200);
    read(with_key("ark_x")).await.assert_problem("invalid_api_key");
    read(with_key("")).await.assert_problem("missing_api_key");
    let other = format!("Bearer {secret}0");
    let both = with_key(&secret).header(header::AUTHORIZATION, other);
    read(both).await.assert_problem("invalid_api_key");
    for path in OPEN_PATHS {
        assert_eq!(call(&service, "", "GET", path, None).await.status, 200, "{path}");
    }
    assert_eq!(service.counts().await, (0, 0));
    service.finish().await;
}

#[tokio::test]
async fn a_request_is_authorized_before_its_body_is_read() {
    let service = Service::start().await;
    service.make_key("acme", &[Scope::Admin]).await;
    let answer = service
        .send_raw(b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    service.finish().await;
}

#[tokio::test]
async fn the_first_key_ends_anonymous_access_soon() {
    let service = Service::start().await;
    service.get("/v1/runs").await;
    service.make_key("acme", &[Scope::Admin]).await;
    until("anonymous access does not end", async || {
        service.try_get("/v1/runs").await.status == 401
    })
    .await;
    service.try_get("/v1/runs").await.assert_problem("missing_api_key");
    service.finish().await;
}

#[tokio::test]
async fn a_flood_of_unknown_keys_is_refused_and_hinders_no_key_that_is_known() {
    let service = Service::start().await;
    let (_, secret) = service.make_key("acme", &[Scope::SessionsRead]).await;
    call(&service, &secret, "GET", "/v1/runs", None).await.ok();
    let mut sent = 0;
    let refused = loop {
        let unknown: Vec<_> = (sent..sent + 200).map(|number| format!("ark_{number}")).collect();
        sent += 200;
        assert!(sent < 100_000, "no unknown key was refused");
        let answers = unknown
            .iter()
            .map(|unknown| call(&service, unknown, "GET", "/v1/runs", None));
        let answers = join_all(answers).await;
        assert!(
            answers
                .iter()
                .all(|answer| [401, 429].contains(&answer.status.as_u16()))
        );
        if let Some(refused) = answers.into_iter().find(|answer| answer.status == 429) {
            break refused;
        }
    };
    refused.assert_problem("too_many_unknown_keys");
    assert_eq!(refused.header("retry-after"), "1");
    call(&service, &secret, "GET", "/v1/runs", None).await.ok();
    // A key that was made meanwhile is found as soon as the flood ebbs.
    let (_, made) = service.make_key("acme", &[Scope::SessionsRead]).await;
    until("the new key is not found", async || {
        call(&service, &made, "GET", "/v1/runs", None).await.status == 200
    })
    .await;
    service.finish().await;
}

async fn a_key_is_looked_up_seldom_and_its_revocation_takes_effect_soon(service: &Service) {
    let (key_id, secret) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let (_, unseen) = service.make_key("acme", &[Scope::SessionsRead]).await;
    call(service, &secret, "GET", "/v1/runs", None).await.ok();
    service.database.break_tables(&["api_keys"]).await;
    for _ in 1..10 {
        call(service, &secret, "GET", "/v1/runs", None).await.ok();
    }
    // Any further look-up would have failed.
    call(service, &unseen, "GET", "/v1/runs", None)
        .await
        .assert_problem("internal_error");
    service.database.mend_tables(&["api_keys"]).await;
    assert!(
        service
            .app
            .runs
            .store
            .key_revoke(key_id, &requester_at(service.clock.now()))
            .await
            .unwrap()
    );
    // Setting the clock of the machine changes nothing.
    service.clock.advance(TimeDelta::days(-1));
    until("the revoked key lives on", async || {
        call(service, &secret, "GET", "/v1/runs", None).await.status == 401
    })
    .await;
    call(service, &secret, "GET", "/v1/runs", None)
        .await
        .assert_problem("invalid_api_key");
}

async fn what_belongs_to_another_tenant_is_not_there(service: &Service) {
    let (_, ours) = service.make_key("ours", &[Scope::Admin]).await;
    let (_, theirs) = service.make_key("theirs", &[Scope::Admin]).await;
    let hi = json!({"input": "hi"});
    let run = call(service, &ours, "POST", "/v1/runs", Some(&hi)).await.ok();
    let (run_id, session_id) = (run["run_id"].as_str().unwrap(), run["session_id"].as_str().unwrap());
    let put = json!({"session_id": session_id});
    for (path, body) in [
        ("/v1/agents/private", &json!({"model": "mock/echo"})),
        ("/v1/threads/private", &put),
    ] {
        call(service, &ours, "PUT", path, Some(body)).await.ok();
    }
    let message = json!({"id": "1", "input": "hi"});
    let answers = json!({"deny_open": true});
    let continued = json!({"input": "hi", "base_session_id": session_id});
    let rewound = json!({"input": "hi", "thread": "t", "thread_from": {"session_id": session_id}});
    let files = json!({"changes": [{"path": "a", "content": "b"}]});
    let title = json!({"title": "Mine"});
    let table = [
        ("GET", format!("/v1/runs/{run_id}"), None, "run_not_found"),
        ("GET", format!("/v1/runs/{run_id}/steps"), None, "run_not_found"),
        ("GET", format!("/v1/runs/{run_id}/events"), None, "run_not_found"),
        ("POST", format!("/v1/runs/{run_id}/stop"), None, "run_not_found"),
        ("POST", format!("/v1/runs/{run_id}/cancel"), None, "run_not_found"),
        (
            "POST",
            format!("/v1/runs/{run_id}/steer"),
            Some(&message),
            "run_not_found",
        ),
        (
            "POST",
            format!("/v1/runs/{run_id}/answers"),
            Some(&answers),
            "run_not_found",
        ),
        ("GET", "/v1/threads/private".to_owned(), None, "thread_not_found"),
        (
            "GET",
            "/v1/threads/private/messages".to_owned(),
            None,
            "thread_not_found",
        ),
        ("GET", "/v1/threads/private/files".to_owned(), None, "thread_not_found"),
        (
            "POST",
            "/v1/threads/private/files".to_owned(),
            Some(&files),
            "thread_not_found",
        ),
        (
            "PATCH",
            "/v1/threads/private".to_owned(),
            Some(&title),
            "thread_not_found",
        ),
        ("POST", "/v1/threads".to_owned(), Some(&put), "session_not_found"),
        ("POST", "/v1/runs".to_owned(), Some(&rewound), "session_not_found"),
        ("DELETE", "/v1/threads/private".to_owned(), None, "thread_not_found"),
        ("PUT", "/v1/threads/stolen".to_owned(), Some(&put), "session_not_found"),
        ("GET", "/v1/agents/private".to_owned(), None, "agent_not_found"),
        ("DELETE", "/v1/agents/private".to_owned(), None, "agent_not_found"),
        ("POST", "/v1/runs".to_owned(), Some(&continued), "session_not_found"),
    ];
    for (method, path, body, code) in table {
        call(service, &theirs, method, &path, body).await.assert_problem(code);
    }
    assert_no_session(service, &theirs, session_id).await;
    for path in ["/v1/runs", "/v1/sessions", "/v1/threads"] {
        let listed = call(service, &theirs, "GET", path, None).await.ok();
        assert_eq!(listed["data"], json!([]), "{path}");
    }
}

/// Checks that a caller can read nothing of a session.
async fn assert_no_session(service: &Service, key: &str, session_id: &str) {
    let diff = format!("/diff/{session_id}");
    for part in [
        "",
        "/messages",
        "/messages/0/session",
        "/lineage",
        "/children",
        "/verify",
        &diff,
    ] {
        let path = format!("/v1/sessions/{session_id}{part}");
        let answer = call(service, key, "GET", &path, None).await;
        answer.assert_problem("session_not_found");
    }
}

async fn a_key_that_may_write_removes_single_sessions(service: &Service) {
    let (_, writer) = service.make_key("default", &[Scope::RunsWrite]).await;
    let run = async |base: &Value| {
        let body = json!({"input": "hi", "base_session_id": base});
        let run = call(service, &writer, "POST", "/v1/runs", Some(&body)).await.ok();
        run["session_id"].clone()
    };
    let root = run(&Value::Null).await;
    let child = run(&root).await;
    let path = |session: &Value| format!("/v1/sessions/{}", session.as_str().unwrap());
    let delete = async |path: &str| call(service, &writer, "DELETE", path, None).await;
    let with_child = format!("{}?descendants=true", path(&root));
    delete(&with_child).await.assert_problem("missing_scope");
    delete(&path(&root)).await.assert_problem("session_has_descendants");
    for session in [&child, &root] {
        assert_eq!(delete(&path(session)).await.status, 204);
    }
}

/// The key that may write sees what it has caused, and nothing that others have stored.
async fn a_write_shows_no_contents_to_a_key_that_may_not_read(service: &Service) {
    let (_, admin) = service.make_key("default", &[Scope::Admin]).await;
    let (_, writer) = service.make_key("default", &[Scope::RunsWrite]).await;
    let post = async |secret: &str, path: String, body: &Value| call(service, secret, "POST", &path, Some(body)).await;
    let changed = async |session: &Value, text: &str| {
        let body = json!({"changes": [{"path": "hidden-plan.txt", "content": text}]});
        let path = session_path(session, "/files");
        post(&admin, path, &body).await.json()
    };
    let import = json!({
        "context_state": {"metadata": {"customer": "hidden", "title": "hidden"}},
        "environment_state": {"variables": {"secret": "hidden"}},
        "message_history_state": {"messages": [{"role": "user", "content": "hidden"}]},
    });
    let base = post(&admin, "/v1/sessions".to_owned(), &import).await.json();
    let (left, right) = (changed(&base, "l").await, changed(&base, "r").await);
    let agent = json!({
        "driver": "scripted", "model": "mock/echo", "client_tools": [{
            "name": "ask", "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
        }],
        "script": [{"tool_calls": [{"name": "ask", "arguments": {"question": "hidden"}}]}, {"text": "end"}],
    });
    call(service, &admin, "PUT", "/v1/agents/asker", Some(&agent))
        .await
        .ok();
    let run = json!({"agent": "asker", "input": "go", "metadata": {"customer": "hidden"}});
    let run = post(&admin, "/v1/runs".to_owned(), &run).await.ok();
    assert_eq!(run["status"], "waiting", "{run:#}");

    let of = |session: &Value, rest: &str| format!("/v1/sessions/{}/{rest}", session["session_id"].as_str().unwrap());
    let files = json!({"changes": [{"path": "a.txt", "content": "a"}]});
    let denied = json!({"base_session_id": run["session_id"], "input": "x"});
    let invalid = json!({"base_session_id": run["session_id"], "answers": [
        {"call_id": "c", "arguments_hash": EMPTY, "decision": "deny"},
    ]});
    for (path, body, status) in [
        (of(&base, "files"), files, 201),
        (of(&base, "merge"), json!({"with": left["session_id"]}), 201),
        (of(&left, "merge"), json!({"with": right["session_id"]}), 409),
        ("/v1/runs".to_owned(), denied, 409),
        ("/v1/runs".to_owned(), invalid, 422),
        (run_path(&run, "/cancel"), json!({}), 200),
    ] {
        let shown = post(&admin, path.clone(), &body).await;
        assert_eq!(shown.status, status, "{path} {}", shown.text());
        assert!(shown.text().contains("hidden"), "{path} {}", shown.text());
        let shown = post(&writer, path.clone(), &body).await;
        assert_eq!(shown.status, status, "{path} {}", shown.text());
        assert!(!shown.text().contains("hidden"), "{path} {}", shown.text());
    }
}

//! Sessions of browsers: a login with an API key, and a cookie in place of it. Only pages of the
//! console can use the cookie, as long as the key lives.

use chrono::TimeDelta;
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::clock::time;
use test_support::drafts::requester_at;
use test_support::wait::until;
use values::clock::Clock as _;

use crate::http::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::changes::Changes;
use crate::support::test_app::TestApp;

const SESSION: &str = "/console/session";

on_every_store! {
    a_browser_logs_in_does_what_its_key_may_and_logs_out,
    a_session_ends_after_its_last_use_and_at_its_age,
    a_session_ends_with_its_key,
    every_replica_knows_a_session,
}

/// A request as a browser sends it for a page of the console.
fn from_page(app: &TestApp, method: Method, path: &str, cookie: &str) -> RequestBuilder {
    let is_write = method != Method::GET;
    let request = app.request(method, path).header("sec-fetch-site", "same-origin");
    let request = if is_write {
        request.header("x-console", "1")
    } else {
        request
    };
    if cookie.is_empty() {
        request
    } else {
        request.header(header::COOKIE, cookie)
    }
}

async fn get(app: &TestApp, path: &str, cookie: &str) -> Answer {
    read(from_page(app, Method::GET, path, cookie)).await
}

async fn post(app: &TestApp, path: &str, cookie: &str, body: &Value) -> Answer {
    read(with_json(from_page(app, Method::POST, path, cookie), body)).await
}

/// The name of the cookie at the address of a service.
fn cookie_name(app: &TestApp) -> String {
    format!("ark-{}", app.address.port())
}

/// Logs in with a key and returns the cookie.
async fn log_in(app: &TestApp, key: &str) -> String {
    let answer = post(app, SESSION, "", &json!({"key": key})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cookie = answer.header("set-cookie").to_owned();
    let (cookie, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
    let secret = cookie.strip_prefix(&format!("{}=", cookie_name(app))).unwrap();
    assert!(secret.len() == 64 && !answer.text().contains(secret));
    assert_eq!(answer.header("cache-control"), "no-store");
    cookie.to_owned()
}

async fn count(service: &Service) -> i64 {
    service.database.number("select count(*) from console_sessions").await
}

async fn a_browser_logs_in_does_what_its_key_may_and_logs_out(service: &Service) {
    let (_, ours) = service.make_key("ours", &[Scope::RunsWrite, Scope::SessionsRead]).await;
    let (_, theirs) = service.make_key("theirs", &[Scope::SessionsRead]).await;
    let required = json!({"authentication": "required", "expires_at": null});
    assert_eq!(get(service, SESSION, "").await.ok(), required);
    for wrong in ["", "ark_1", &format!("{ours}0"), "sk-1"] {
        let answer = post(service, SESSION, "", &json!({"key": wrong})).await;
        answer.assert_problem("invalid_api_key");
        assert_eq!(answer.header("set-cookie"), "");
    }
    assert_eq!(count(service).await, 0);

    let (cookie, other) = (log_in(service, &ours).await, log_in(service, &theirs).await);
    assert_ne!(cookie, other);
    let shown = get(service, SESSION, &cookie).await.ok();
    assert_eq!(shown["authentication"], "active");
    let left = time(&shown["expires_at"]) - service.clock.now();
    assert!(left > TimeDelta::minutes(119) && left <= TimeDelta::hours(2), "{left}");
    let run = post(service, "/v1/runs", &cookie, &json!({"input": "hi"})).await.ok();
    let path = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(get(service, &path, &cookie).await.ok()["run_id"], run["run_id"]);
    // The other session has the tenant and the scopes of the other key.
    get(service, &path, &other).await.assert_problem("run_not_found");
    let refused = post(service, "/v1/runs", &other, &json!({"input": "hi"})).await;
    refused.assert_problem("missing_scope");
    // The header wins over the cookie, also a wrong one.
    let both = |key: &str| from_page(service, Method::GET, &path, &cookie).bearer_auth(key);
    read(both(&theirs)).await.assert_problem("run_not_found");
    read(both("ark_1")).await.assert_problem("invalid_api_key");
    // Routes for other clients do not take it.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    post(service, "/mcp", &cookie, &ping)
        .await
        .assert_problem("missing_api_key");
    assert_eq!(get(service, "/v1/models", &cookie).await.status, 401);
    assert_eq!(service.counts().await, (1, 1));

    for _ in 0..2 {
        let answer = read(from_page(service, Method::DELETE, SESSION, &cookie)).await;
        assert_eq!(answer.status, 204);
        let forgotten = answer.headers.get_all(header::SET_COOKIE).iter();
        let forgotten: Vec<_> = forgotten.map(|cookie| cookie.to_str().unwrap()).collect();
        let name = cookie_name(service);
        assert_eq!(
            forgotten,
            [
                format!("__Host-{name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"),
                format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"),
            ]
        );
    }
    let answer = get(service, &path, &cookie).await;
    answer.assert_problem("missing_api_key");
    assert!(answer.text().contains("log in again"), "{}", answer.text());
    assert_eq!(get(service, SESSION, &cookie).await.ok(), required);
    assert_eq!(count(service).await, 1);
    get(service, "/v1/runs", &other).await.ok();
}

async fn a_session_ends_after_its_last_use_and_at_its_age(service: &Service) {
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let status = async |cookie: &str| get(service, "/v1/runs", cookie).await.status.as_u16();
    let idle = log_in(service, &key).await;
    for (minutes, expected) in [(110, 200), (110, 200), (119, 200), (121, 401), (0, 401)] {
        service.clock.advance(TimeDelta::minutes(minutes));
        assert_eq!(status(&idle).await, expected, "{minutes}");
    }
    let busy = log_in(service, &key).await;
    for hour in 1..12 {
        service.clock.advance(TimeDelta::hours(1));
        assert_eq!(status(&busy).await, 200, "{hour}");
    }
    service.clock.advance(TimeDelta::hours(1));
    assert_eq!(status(&busy).await, 401);
    // Reading its own state is no use of a session.
    let watched = log_in(service, &key).await;
    for (minutes, expected) in [(110, "active"), (20, "required")] {
        service.clock.advance(TimeDelta::minutes(minutes));
        assert_eq!(get(service, SESSION, &watched).await.ok()["authentication"], expected);
    }
}

async fn a_session_ends_with_its_key(service: &Service) {
    let (key_id, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let cookie = log_in(service, &key).await;
    get(service, "/v1/runs", &cookie).await.ok();
    let store = &service.app.runs.store;
    assert!(
        store
            .key_revoke(key_id, &requester_at(service.clock.now()))
            .await
            .unwrap()
    );
    until("the session lives on", async || {
        get(service, "/v1/runs", &cookie).await.status == 401
    })
    .await;
    let shown = get(service, SESSION, &cookie).await.ok();
    assert_eq!(shown["authentication"], "required");
    post(service, SESSION, "", &json!({"key": key}))
        .await
        .assert_problem("invalid_api_key");
}

async fn every_replica_knows_a_session(service: &Service) {
    let elsewhere = TestApp::start_bare(service.database.url(), &service.models, &[]).await;
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let cookie = log_in(service, &key).await;
    get(service, "/v1/runs", &cookie).await.ok();
    // The browser knows one address for both.
    let there = |method, path| {
        let request = from_page(&elsewhere, method, path, &cookie);
        read(request.header(header::HOST, service.address.to_string()))
    };
    there(Method::GET, "/v1/runs").await.ok();
    assert_eq!(there(Method::DELETE, SESSION).await.status, 204);
    there(Method::GET, "/v1/runs").await.assert_problem("missing_api_key");
    until("the logout is not known here", async || {
        get(service, "/v1/runs", &cookie).await.status == 401
    })
    .await;
    elsewhere.finish().await;
}

#[tokio::test]
async fn services_on_other_ports_of_a_host_have_logins_of_their_own() {
    let (here, there) = (Service::start().await, Service::start().await);
    let mut cookies = Vec::new();
    for service in [&here, &there] {
        let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
        cookies.push(log_in(service, &key).await);
    }
    // A browser sends the cookies of all ports.
    let cookies = cookies.join("; ");
    for service in [&here, &there] {
        get(service, "/v1/runs", &cookies).await.ok();
    }
    let answer = read(from_page(&here, Method::DELETE, SESSION, &cookies)).await;
    assert_eq!(answer.status, 204);
    get(&here, "/v1/runs", &cookies).await.assert_problem("missing_api_key");
    get(&there, "/v1/runs", &cookies).await.ok();
    here.finish().await;
    there.finish().await;
}

#[tokio::test]
async fn a_stream_ends_with_the_login_of_its_reader() {
    let service = Service::start_with(&[("http.keep_alive_interval", "20ms")]).await;
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let follow = async |cookie: &str| Changes::send(from_page(&service, Method::GET, "/v1/changes", cookie)).await;
    let (first, second) = (log_in(&service, &key).await, log_in(&service, &key).await);
    let (first_stream, mut second_stream) = (follow(&first).await, follow(&second).await);
    let answer = read(from_page(&service, Method::DELETE, SESSION, &first)).await;
    assert_eq!(answer.status, 204);
    let dropped = json!({"type": "stream.dropped", "data": {
        "reason": "the API key or the login of the reader is no longer valid",
    }});
    assert_eq!(first_stream.last().await, dropped);
    // The login of another browser ends some time after its last use.
    service.clock.advance(TimeDelta::hours(3));
    assert_eq!(second_stream.next().await, Some(dropped));
    assert_eq!(second_stream.next().await, None);
    service.finish().await;
}

#[tokio::test]
async fn only_pages_of_the_console_use_a_cookie_and_mark_their_writes() {
    let service = Service::start().await;
    let (_, key) = service.make_key("acme", &[Scope::Admin]).await;
    let cookie = log_in(&service, &key).await;
    let own = format!("http://{}", service.address);
    let (same, origin, marked) = (
        ("sec-fetch-site", "same-origin"),
        ("origin", own.as_str()),
        ("x-console", "1"),
    );
    for (given, reads, writes) in [
        (vec![same], true, false),
        (vec![same, marked], true, true),
        (vec![origin, marked], true, true),
        (vec![marked], false, false),
        (vec![("sec-fetch-site", "cross-site"), marked], false, false),
        (vec![("sec-fetch-site", "same-site"), origin, marked], false, false),
        (vec![("sec-fetch-site", "none"), marked], false, false),
        (vec![("origin", "http://127.0.0.1:1"), marked], false, false),
    ] {
        let run = json!({"agent": "nobody", "input": "hi"});
        for (method, path, body, passes, code) in [
            (Method::GET, "/v1/agents/nobody", None, reads, "agent_not_found"),
            (Method::POST, "/v1/runs", Some(&run), writes, "agent_not_found"),
            (Method::DELETE, "/v1/agents/nobody", None, writes, "agent_not_found"),
        ] {
            let request = service.request(method, path).header(header::COOKIE, &cookie);
            let request = given
                .iter()
                .fold(request, |request, (name, value)| request.header(*name, *value));
            let answer = read(match body {
                Some(body) => with_json(request, body),
                None => request,
            })
            .await;
            answer.assert_problem(if passes { code } else { "origin_not_allowed" });
        }
        let request = service.request(Method::DELETE, SESSION).header(header::COOKIE, &cookie);
        let request = given
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        if !writes {
            read(request).await.assert_problem("origin_not_allowed");
        }
    }
    get(&service, "/v1/runs", &cookie).await.ok();
    service.finish().await;
}

#[tokio::test]
async fn a_login_comes_from_a_page_over_https_or_on_this_machine() {
    let service = Service::start().await;
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let body = json!({"key": key});
    let sent = async |headers: &[(&str, &str)]| {
        let request = service.request(Method::POST, SESSION);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        read(with_json(request, &body)).await
    };
    let marked = ("x-console", "1");
    for refused in [
        &[marked][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "cross-site"), marked],
        &[("origin", "https://evil.example"), marked],
        &[("host", "10.0.0.7:8080"), ("origin", "http://10.0.0.7:8080"), marked],
    ] {
        sent(refused).await.assert_problem("origin_not_allowed");
    }
    assert_eq!(count(&service).await, 0);
    // A proxy that ends TLS.
    let host = ("host", "agents.example");
    let secure = sent(&[host, ("origin", "https://agents.example"), marked]).await;
    assert_eq!(secure.status, 200, "{}", secure.text());
    let cookie = secure.header("set-cookie");
    assert!(cookie.starts_with("__Host-ark="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=43200; Secure; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let there = |cookie: String| from_page(&service, Method::GET, "/v1/runs", &cookie).header(header::HOST, host.1);
    read(there(cookie.to_owned())).await.ok();
    // A neighbour in the domain could set a cookie without the prefix.
    let plain = cookie.replace("__Host-", "");
    read(there(plain)).await.assert_problem("missing_api_key");
    service.finish().await;
}

#[tokio::test]
async fn a_login_has_a_small_body_with_a_key() {
    let service = Service::start().await;
    service.make_key("acme", &[Scope::SessionsRead]).await;
    for (body, code) in [
        (json!({}), "missing_field"),
        (json!({"key": 1}), "invalid_field"),
        (json!({"key": null}), "invalid_field"),
        (json!({"key": "ark_1", "user": "me"}), "unknown_field"),
        (json!([]), "invalid_field"),
        (json!({"key": "a".repeat(5_000)}), "body_too_large"),
    ] {
        post(&service, SESSION, "", &body).await.assert_problem(code);
    }
    let without_type = from_page(&service, Method::POST, SESSION, "").body("{}");
    read(without_type).await.assert_problem("unsupported_media_type");
    let path = format!("{SESSION}?next=/v1");
    get(&service, &path, "").await.assert_problem("unknown_parameter");
    service.finish().await;
}

#[tokio::test]
async fn without_keys_there_is_no_login_and_other_pages_are_refused() {
    let service = Service::start().await;
    let none = json!({"authentication": "none", "expires_at": null});
    assert_eq!(get(&service, SESSION, "").await.ok(), none);
    post(&service, SESSION, "", &json!({"key": "ark_1"}))
        .await
        .assert_problem("invalid_api_key");
    // A cookie of another store changes nothing.
    let stale = format!("{}={}", cookie_name(&service), "0".repeat(64));
    assert_eq!(get(&service, SESSION, &stale).await.ok(), none);
    get(&service, "/v1/runs", &stale).await.ok();
    for (name, value, code) in [
        ("host", "evil.example:8080", "host_not_allowed"),
        ("origin", "https://evil.example", "origin_not_allowed"),
        ("x-forwarded-for", "192.0.2.1", "proxied_without_key"),
    ] {
        let request = service.request(Method::GET, SESSION).header(name, value);
        read(request).await.assert_problem(code);
    }
    service.finish().await;
}

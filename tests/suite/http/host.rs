//! Which hosts and pages a service without keys responds to, and that a key ends these limits.

use reqwest::{Method, RequestBuilder, header};
use serde_json::json;
use store::keys::Scope;

use super::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::test_app::run_path;
use crate::support::text::assert_contains;

const OPEN: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs/"];

/// A request as it comes from a page whose name leads to this machine.
fn rebound(request: RequestBuilder) -> RequestBuilder {
    request.header(header::HOST, "evil.example:8080")
}

#[tokio::test]
async fn a_page_under_a_rebound_name_reads_and_starts_nothing() {
    let service = Service::start().await;
    service.run_with(json!({"input": "secret"})).await;
    for path in ["/v1/sessions", "/v1/runs", "/v1/agents"] {
        let answer = read(rebound(service.request(Method::GET, path))).await;
        answer.assert_problem("host_not_allowed");
        assert!(!answer.text().contains("secret"));
        let words = answer.json()["detail"].as_str().unwrap().to_owned();
        assert_contains!(words, "evil.example", "http.allowed_hosts");
    }
    let post = rebound(service.request(Method::POST, "/v1/runs"));
    read(with_json(post, &json!({"input": "hi"})))
        .await
        .assert_problem("host_not_allowed");
    assert_eq!(service.counts().await, (1, 1));
    // Nobody's data are in these.
    for path in OPEN {
        let answer = read(rebound(service.request(Method::GET, path))).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let port = service.address.port();
    for host in [format!("localhost:{port}"), "[::1]".to_owned(), "LOCALHOST.".to_owned()] {
        let request = service.request(Method::GET, "/v1/runs").header(header::HOST, &host);
        assert_eq!(read(request).await.status, 200, "{host}");
    }
    service.finish().await;
}

#[tokio::test]
async fn a_foreign_page_starts_and_ends_nothing() {
    let service = Service::start().await;
    let run = service.run_with(json!({"input": "hi"})).await;
    let cancel = run_path(&run, "/cancel");
    for origin in ["https://evil.example", "http://localhost:1", "null"] {
        // A page may send these without being asked.
        for (method, path) in [(Method::GET, "/v1/sessions"), (Method::POST, &cancel)] {
            let request = service.request(method, path).header(header::ORIGIN, origin);
            let answer = read(request).await;
            answer.assert_problem("origin_not_allowed");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
    }
    let own = service
        .request(Method::POST, &cancel)
        .header(header::ORIGIN, format!("http://{}", service.address));
    assert_eq!(read(own).await.status, 200);
    service.finish().await;
}

#[tokio::test]
async fn a_proxy_does_not_open_the_service_to_others() {
    let service = Service::start().await;
    for (name, value) in [
        ("forwarded", "for=192.0.2.1"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "agents.example"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "192.0.2.1"),
        ("via", "1.1 proxy.example"),
        ("true-client-ip", "192.0.2.1"),
        ("cf-connecting-ip", "192.0.2.1"),
    ] {
        let request = service.request(Method::GET, "/v1/runs").header(name, value);
        let answer = read(request).await;
        answer.assert_problem("proxied_without_key");
        assert!(answer.json()["detail"].as_str().unwrap().contains(name));
        for path in OPEN {
            let request = service.request(Method::GET, path).header(name, value);
            assert_eq!(read(request).await.status, 200, "{path}");
        }
    }
    service.finish().await;
}

#[tokio::test]
async fn an_exposed_service_is_behind_a_proxy_under_the_names_that_it_was_given() {
    let settings = [
        ("http.insecure_no_auth", "true"),
        ("http.allowed_hosts", r#"["Agents.Example"]"#),
    ];
    let service = Service::start_with(&settings).await;
    let request = |host: &str| {
        let request = service.request(Method::GET, "/v1/runs");
        request
            .header(header::HOST, host)
            .header("x-forwarded-for", "192.0.2.1")
    };
    for host in ["agents.example", "AGENTS.example:443", "10.0.0.7:8080"] {
        assert_eq!(read(request(host)).await.status, 200, "{host}");
    }
    let page = request("agents.example").header(header::ORIGIN, "https://agents.example");
    assert_eq!(read(page).await.status, 200);
    // That others may reach it does not mean that their pages may.
    read(request("evil.example")).await.assert_problem("host_not_allowed");
    let page = request("agents.example").header(header::ORIGIN, "https://evil.example");
    read(page).await.assert_problem("origin_not_allowed");
    service.finish().await;
}

#[tokio::test]
async fn with_a_key_neither_host_nor_proxy_matters() {
    let service = Service::start().await;
    let (_, secret) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let request = rebound(service.request(Method::GET, "/v1/runs"))
        .header(header::ORIGIN, "https://evil.example")
        .header("x-forwarded-for", "192.0.2.1");
    assert_eq!(read(request.bearer_auth(secret)).await.status, 200);
    service.finish().await;
}

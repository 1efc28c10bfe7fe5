//! Web pages of configured origins call the service from a browser (CORS).

use reqwest::{Method, header};
use serde_json::json;
use store::keys::Scope;

use super::service::Service;
use crate::support::answer::{Answer, read, with_json};

const PAGE: &str = "https://app.example";
const SETTINGS: [(&str, &str); 1] = [("http.allowed_origins", r#"["https://APP.example"]"#)];

/// Asks like a browser whether a page may send a request with headers.
async fn preflight(service: &Service, path: &str, origin: &str) -> Answer {
    let request = service
        .request(Method::OPTIONS, path)
        .header(header::ORIGIN, origin)
        .header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST")
        .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "authorization,content-type");
    read(request).await
}

/// Returns the headers of a response that browsers obey: the origin that may read it, and whether
/// it depends on the origin.
fn allowed(answer: &Answer) -> (String, bool) {
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    let varies = answer.header("vary").to_ascii_lowercase().contains("origin");
    (answer.header("access-control-allow-origin").to_owned(), varies)
}

#[tokio::test]
async fn preflights_of_known_pages_are_answered_without_a_key() {
    let service = Service::start_with(&SETTINGS).await;
    service.make_key("acme", &[Scope::RunsWrite]).await;
    for path in ["/v1/runs", "/v1/threads/t", "/v1/responses", "/mcp", "/nowhere"] {
        let answer = preflight(&service, path, PAGE).await;
        assert!(
            answer.status == 200 && answer.text().is_empty(),
            "{path}: {}",
            answer.text()
        );
        assert_eq!(allowed(&answer), (PAGE.to_owned(), true), "{path}");
        assert_eq!(answer.header("access-control-allow-methods"), "POST");
        assert_eq!(
            answer.header("access-control-allow-headers"),
            "authorization,content-type"
        );
        assert_eq!(answer.header("access-control-max-age"), "7200");
        for other in ["http://app.example", "https://evil.example", "null"] {
            let answer = preflight(&service, path, other).await;
            assert_eq!(allowed(&answer), (String::new(), true), "{path} {other}");
        }
    }
    service.finish().await;
}

#[tokio::test]
async fn a_known_page_reads_responses_and_problems() {
    let service = Service::start_with(&SETTINGS).await;
    let page = |method, path: &str| service.request(method, path).header(header::ORIGIN, PAGE);
    let run = read(with_json(
        page(Method::POST, "/v1/runs"),
        &json!({"agent": "demo", "input": "hi", "mode": "sync"}),
    ))
    .await;
    assert_eq!(run.json()["status"], "completed");
    assert_eq!(run.header("access-control-expose-headers"), "*");
    let rebound = page(Method::GET, "/v1/runs").header(header::HOST, "evil.example");
    let (_, key) = service.make_key("acme", &[Scope::SessionsRead]).await;
    let refusals = [
        (read(rebound).await, 403),
        (read(page(Method::GET, "/v1/runs").bearer_auth("unknown")).await, 401),
        (read(page(Method::POST, "/v1/runs").bearer_auth(&key)).await, 403),
        (read(page(Method::GET, "/v1/runs?limit=x").bearer_auth(&key)).await, 400),
        (read(page(Method::GET, "/nowhere")).await, 404),
        (read(page(Method::DELETE, "/v1/runs")).await, 405),
    ];
    for (answer, status) in refusals.iter().chain([&(run, 200)]) {
        assert_eq!(answer.status.as_u16(), *status);
        assert_eq!(allowed(answer), (PAGE.to_owned(), true), "{status}");
    }
    let plain = read(service.request(Method::GET, "/v1/runs").bearer_auth(&key)).await;
    assert_eq!((plain.status.as_u16(), allowed(&plain)), (200, (String::new(), true)));
    service.finish().await;
}

/// The list of origins doesn't open a service without keys to pages under names that lead to it.
#[tokio::test]
async fn a_known_page_is_served_under_known_hosts_only() {
    let service = Service::start_with(&SETTINGS).await;
    let request = |origin: &str| service.request(Method::GET, "/v1/runs").header(header::ORIGIN, origin);
    let rebound = read(request(PAGE).header(header::HOST, "evil.example")).await;
    rebound.assert_problem("host_not_allowed");
    assert_eq!(allowed(&rebound), (PAGE.to_owned(), true));
    assert_eq!(read(request(PAGE)).await.status, 200);
    read(request("https://evil.example"))
        .await
        .assert_problem("origin_not_allowed");
    service.finish().await;
}

/// Only a preflight is one: other requests with its method reach the router, with an id and a log
/// line.
#[tokio::test]
async fn a_plain_request_with_the_method_options_is_refused() {
    let service = Service::start_with(&SETTINGS).await;
    let request = service
        .request(Method::OPTIONS, "/v1/runs")
        .header(header::ORIGIN, PAGE);
    let answer = read(request).await;
    assert_eq!(
        (answer.status.as_u16(), allowed(&answer)),
        (405, (String::new(), false))
    );
    for answer in [answer, preflight(&service, "/v1/runs", PAGE).await] {
        assert!(!answer.header("x-request-id").is_empty(), "{}", answer.status);
    }
    service.finish().await;
}

#[tokio::test]
async fn without_origins_nothing_is_allowed() {
    let service = Service::start().await;
    let answer = preflight(&service, "/v1/runs", PAGE).await;
    assert_eq!(answer.status, 405);
    assert_eq!(allowed(&answer), (String::new(), false));
    service.finish().await;
}

//! Requests that no route accepts: their heads are too large, or their method is not allowed.

use reqwest::Method;

use super::service::Service;
use crate::support::answer::read;
use crate::support::table::rows;

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let service = Service::start_with(&[("http.max_header_bytes", "20000")]).await;
    service
        .try_get(&format!("/v1/runs?agent={}", "a".repeat(9_000)))
        .await
        .assert_problem("uri_too_long");
    let large = service
        .request(Method::GET, "/healthz")
        .header("cookie", "a".repeat(21_000));
    read(large).await.assert_problem("headers_too_large");
    let many = (0..101).fold(service.request(Method::GET, "/healthz"), |request, n| {
        request.header(format!("x-{n}"), "1")
    });
    read(many).await.assert_problem("headers_too_large");
    service.finish().await;
}

/// A method that a path does not have, and the words about it.
const NOT_ALLOWED: &str = "
DELETE | /v1/sessions | DELETE is not allowed here; the methods of this path are GET, HEAD, POST
PATCH  | /v1/agents/a | PATCH is not allowed here; the methods of this path are GET, HEAD, PUT, DELETE
POST   | /docs/       | POST is not allowed here; the methods of this path are GET, HEAD
";

#[tokio::test]
async fn an_unknown_method_gets_the_allowed_ones() {
    let service = Service::start().await;
    let answer = read(service.request(Method::DELETE, "/v1/sessions")).await;
    let mut allowed: Vec<_> = answer.header("allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    for [method, path, words] in rows(NOT_ALLOWED) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let answer = read(service.request(method, path)).await;
        assert_eq!(answer.json()["detail"], words);
        assert_eq!(
            answer.header("allow").split(',').count(),
            words.matches(',').count() + 1,
            "{path}"
        );
    }
    service.finish().await;
}

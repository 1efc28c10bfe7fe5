//! Bodies that are not JSON.

use reqwest::{Method, header};

use super::service::Service;
use crate::support::answer::read;

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let service = Service::start().await;
    let post = || service.request(Method::POST, "/v1/runs");
    let json = |request: reqwest::RequestBuilder| request.header(header::CONTENT_TYPE, "application/json");
    read(json(post()).body(b"{\"input\": \"caf\xe9\"}".to_vec()))
        .await
        .assert_problem("invalid_utf8");
    read(post().body("{}")).await.assert_problem("unsupported_media_type");
    read(post().header(header::CONTENT_TYPE, "text/plain").body("{}"))
        .await
        .assert_problem("unsupported_media_type");
    read(post().header(header::CONTENT_TYPE, "\u{e9}").body("{}"))
        .await
        .assert_problem("unsupported_media_type");
    read(json(post()).header(header::CONTENT_ENCODING, "gzip").body("x"))
        .await
        .assert_problem("unsupported_media_type");
    let answer = read(
        post()
            .header(header::CONTENT_TYPE, "Application/JSON; version=1; Charset=\"UTF-8\"")
            .body(r#"{"input": "hi"}"#),
    )
    .await;
    assert_eq!(answer.ok()["output_text"], "echo: hi");
    for types in [
        &["application/json; charset=utf-16"][..],
        &["application/json;charset=\"latin1\""],
        &["application/json", "application/json"],
        &["application/json", "text/plain"],
    ] {
        let request = types.iter().fold(post(), |request, media_type| {
            request.header(header::CONTENT_TYPE, *media_type)
        });
        let answer = read(request.body(r#"{"input": "hi"}"#)).await;
        answer.assert_problem("unsupported_media_type");
    }
    let encoded = post().header(header::CONTENT_ENCODING, "identity");
    read(json(encoded.header(header::CONTENT_ENCODING, "br")).body("x"))
        .await
        .assert_problem("unsupported_media_type");
    service.finish().await;
}

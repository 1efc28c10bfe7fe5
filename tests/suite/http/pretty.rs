//! The parameter `pretty`: the same JSON with line breaks, wherever there is JSON.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::service::Service;
use crate::support::answer::{Answer, read};
use crate::support::test_app::{run_path, session_path, sse_data};

fn assert_pretty(answer: &Answer) {
    let value: Value = answer.json();
    let text = answer.text();
    assert!(text.starts_with("{\n  \"") && text.ends_with("}\n"), "{text}");
    assert_eq!(text.lines().count(), format!("{value:#}").lines().count(), "{text}");
    // A session is sent as it is read.
    if answer.headers.contains_key(header::TRANSFER_ENCODING) {
        assert!(answer.headers.get(header::CONTENT_LENGTH).is_none());
    } else {
        assert_eq!(answer.header("content-length"), text.len().to_string());
    }
}

#[tokio::test]
async fn responses_have_line_breaks_if_the_query_asks_for_them() {
    let service = Service::start().await;
    let answer = service
        .post("/v1/runs?pretty", &json!({"input": "{a: [1, \"b\"]}"}))
        .await;
    assert_pretty(&answer);
    let run = answer.ok();
    assert_eq!(run["output_text"], "echo: {a: [1, \"b\"]}");
    let paths = [
        run_path(&run, ""),
        session_path(&run, ""),
        "/v1/runs?limit=1".to_owned(),
        "/healthz".to_owned(),
        "/openapi.json".to_owned(),
    ];
    for path in &paths {
        let separator = if path.contains('?') { '&' } else { '?' };
        let plain = service.try_get(path).await;
        let pretty = service.try_get(&format!("{path}{separator}pretty=true")).await;
        assert_pretty(&pretty);
        assert_eq!(pretty.json(), plain.json(), "{path}");
        assert_eq!(pretty.header("etag"), plain.header("etag"));
        let off = service.try_get(&format!("{path}{separator}pretty=false")).await;
        assert_eq!(off.body, plain.body, "{path}");
    }
    let problem = service.try_get("/v1/runs/x?pretty").await;
    problem.assert_problem("malformed_id");
    assert_pretty(&problem);
    service.finish().await;
}

#[tokio::test]
async fn responses_without_json_stay_as_they_are() {
    let service = Service::start().await;
    let body = json!({"input": "hi", "mode": "stream"});
    let stream = service.post("/v1/runs?pretty", &body).await;
    let events = sse_data(&stream.text());
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    let session = session_path(&events[0]["data"], "?pretty");
    let tag = service.try_get(&session).await.header("etag").to_owned();
    let request = service
        .request(Method::GET, &session)
        .header(header::IF_NONE_MATCH, tag);
    let known = read(request).await;
    assert_eq!((known.status.as_u16(), known.text()), (304, String::new()));
    let head = read(service.request(Method::HEAD, &session)).await;
    assert_eq!((head.status.as_u16(), head.text()), (200, String::new()));
    service.finish().await;
}

//! The request id, and the log line of each request: it has the cause, which the caller never
//! reads, and nothing that the caller sent.

use reqwest::{Method, header};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::internals::INTERNALS;
use test_support::logs::{CapturedLog, listen};

use super::service::{NOWHERE, Service};
use crate::support::answer::{read, with_json};

/// The trace of the caller.
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Returns the lines that tell of requests.
fn of_requests(log: &CapturedLog) -> Vec<Value> {
    let text = log.text();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone());
    lines
        .filter(|fields| fields["message"].as_str().unwrap().starts_with("request "))
        .collect()
}

#[tokio::test]
async fn each_request_has_one_line_without_what_was_sent() {
    let lines = CapturedLog::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    // The server runs on this thread too.
    let _listening = listen(subscriber);
    let service = Service::start().await;
    let (key_id, key) = service.make_key("acme", &[Scope::RunsWrite, Scope::SessionsRead]).await;
    let send = async |method, path: &str, body: Option<Value>| {
        let request = service
            .request(method, path)
            .bearer_auth(&key)
            .header("x-request-id", "r-1")
            .header("traceparent", TRACEPARENT);
        let request = request.header(header::COOKIE, "cookie-secret");
        read(body.map_or(request.try_clone().unwrap(), |body| with_json(request, &body))).await
    };
    let run = send(Method::POST, "/v1/runs", Some(json!({"input": "body-secret"})))
        .await
        .ok();
    send(Method::GET, "/v1/runs/path-secret?q=query-secret", None)
        .await
        .assert_problem("unknown_parameter");
    service.database.break_tables(&["sessions"]).await;
    send(Method::GET, "/v1/sessions?agent=query-secret", None)
        .await
        .assert_problem("internal_error");

    let reported: Vec<_> = of_requests(&lines).into_iter().map(without_duration).collect();
    let line = |message: &str, method: &str, route: &str, status: u16| json!({"message": message, "method": method, "route": route, "status": status, "request_id": "r-1", "trace_id": TRACE_ID, "tenant": "acme", "key_id": key_id});
    let mut expected = [
        line("request answered", "POST", "/v1/runs", 200),
        line("request answered", "GET", "/v1/runs/{run_id}", 400),
        line("request failed", "GET", "/v1/sessions", 500),
    ];
    expected[0]["run_id"] = run["run_id"].clone();
    for (index, code) in [(1, "unknown_parameter"), (2, "internal_error")] {
        expected[index]["code"] = json!(code);
    }
    let said = format!("(code: 1) bad JSON path: '{INTERNALS}'");
    expected[2]["cause"] = json!(format!(
        "the store failed: list sessions: error returned from database: {said}"
    ));
    assert_eq!(reported, expected);
    let all = lines.text();
    for secret in ["body-secret", "path-secret", "query-secret", "cookie-secret", &key] {
        assert!(!all.contains(secret), "{secret} is in the log: {all}");
    }
}

#[tokio::test]
async fn mistakes_of_clients_are_not_logged_as_errors() {
    let lines = CapturedLog::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    let _listening = listen(subscriber);
    let service = Service::start().await;
    let head = "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    service.send_raw(format!("{head}zz\r\n").as_bytes()).await;
    service.send_raw(b"what is this\r\n\r\n").await;
    let reported: Vec<_> = of_requests(&lines)
        .into_iter()
        .map(|line| (line["message"].clone(), line["code"].clone(), line["route"].clone()))
        .collect();
    let answered = json!("request answered");
    assert_eq!(
        reported,
        [
            (answered.clone(), json!("malformed_body"), json!("/v1/runs")),
            (answered, json!("malformed_request"), json!("unread")),
        ]
    );
    let all = lines.text();
    assert!(!all.contains(r#""level":"ERROR""#), "{all}");
    // The log has the cause for the operator.
    assert!(all.contains("Invalid chunk size line"), "{all}");
    service.finish().await;
}

fn without_duration(mut fields: Value) -> Value {
    let duration = fields.as_object_mut().unwrap().remove("duration_ms");
    assert!(duration.unwrap().as_f64().unwrap() > 0.0);
    fields
}

#[tokio::test]
async fn a_valid_request_id_is_used_and_another_replaced() {
    let service = Service::start().await;
    let sent = |id: &str| read(service.request(Method::GET, "/v1/runs/x").header("x-request-id", id));
    let retained = sent("req-7/a.b:c").await;
    assert_eq!(
        (
            retained.header("x-request-id"),
            retained.json()["request_id"].as_str().unwrap()
        ),
        ("req-7/a.b:c", "req-7/a.b:c")
    );
    for bad in ["", "a b", "<script>", &"a".repeat(129)] {
        let answer = sent(bad).await;
        assert_ne!(answer.header("x-request-id"), bad);
        assert_eq!(answer.header("x-request-id").len(), NOWHERE.len());
    }
    service.finish().await;
}

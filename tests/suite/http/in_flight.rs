//! The room that requests and responses share: what is counted in it, and that results that had to
//! wait for it are whole.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::logs::{CapturedLog, listen};
use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::test_app::{TestApp, run_path, session_path};

/// About how many bytes a page has.
pub(super) const PAGE: usize = 1 << 20;

/// A session whose messages have these numbers of bytes.
pub(super) fn history(sizes: &[usize]) -> Value {
    let message = |(number, size): (usize, &usize)| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": format!("{number} {}", "x".repeat(*size))})
    };
    let messages: Vec<_> = sizes.iter().enumerate().map(message).collect();
    json!({"message_history_state": {"messages": messages}})
}

/// A reader that asks for something, reads how the response begins, and then nothing more.
pub(super) async fn stop_reading(service: &TestApp, path: &str, key: Option<&str>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(service.address).await.unwrap();
    let authorization = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    stream
}

/// Of which a tenant takes half at most.
const ROOM: (&str, &str) = ("http.max_bytes_in_flight", "12582912");

/// Imports a session and returns its path.
async fn import(service: &Service, bytes: usize) -> String {
    let made = service.post("/v1/sessions", &history(&[bytes])).await.ok();
    session_path(&made, "")
}

/// A request with a large body of which no more than the beginning is ever sent.
async fn begin_upload(service: &Service, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let head =
        "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9000000";
    let beginning = " ".repeat(100_000);
    let request = format!("{head}\r\nauthorization: Bearer {key}\r\n\r\n{beginning}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn readers_who_do_not_read_leave_room_for_other_tenants() {
    let limits = [("http.max_bytes_in_flight", "25165824"), ("http.request_timeout", "1m")];
    let service = Service::start_with(&limits).await;
    let scopes = [Scope::SessionsRead, Scope::RunsWrite];
    let (_, slow) = service.make_key("slow", &scopes).await;
    let (_, other) = service.make_key("other", &scopes).await;
    let mut paths = Vec::new();
    for key in [&slow, &other] {
        let request = service.request(Method::POST, "/v1/sessions").bearer_auth(key);
        let made = read(with_json(request, &history(&[9_000_000]))).await.ok();
        paths.push(session_path(&made, ""));
    }
    let get =
        async |path: &str, key: &str| -> Answer { read(service.request(Method::GET, path).bearer_auth(key)).await };
    let first = stop_reading(&service, &paths[0], Some(&slow)).await;
    let refused = get(&paths[0], &slow).await;
    refused.assert_problem("too_much_in_flight");
    assert_eq!(refused.header("retry-after"), "1");
    let messages = format!("{}/messages", paths[1]);
    for path in [&paths[1], &messages] {
        let answer = get(path, &other).await;
        assert_eq!((answer.status.as_u16(), answer.body.len() > 9_000_000), (200, true));
    }
    // What a reader holds is given back with its connection.
    drop(first);
    assert_eq!(get(&paths[0], &slow).await.status, 200);
    service.finish().await;
}

#[tokio::test]
async fn uploads_that_never_end_leave_room_for_other_tenants() {
    let service = Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await;
    let scopes = [Scope::SessionsRead, Scope::RunsWrite];
    let (_, slow) = service.make_key("slow", &scopes).await;
    let (_, other) = service.make_key("other", &scopes).await;
    let send = async |key: &str, size: usize| -> Answer {
        let request = service.request(Method::POST, "/v1/sessions").bearer_auth(key);
        read(with_json(request, &history(&[size]))).await
    };
    // As large, and with a short response: the stored session would need room once more to be
    // shown.
    let nobody = json!({"agent": "nobody", "input": "x".repeat(3_000_000)});
    let mut upload = begin_upload(&service, &slow).await;
    until("the upload never took room", async || {
        // An upload that comes while the request below has the room may wait for it in vain.
        if upload.try_read(&mut [0]).is_ok() {
            upload = begin_upload(&service, &slow).await;
        }
        let request = service.request(Method::POST, "/v1/runs").bearer_auth(&slow);
        let answer = read(with_json(request, &nobody)).await;
        let is_refused = answer.status == 503;
        let code = if is_refused {
            "too_much_in_flight"
        } else {
            "agent_not_found"
        };
        answer.assert_problem(code);
        is_refused
    })
    .await;
    // What is small waits for nothing.
    assert_eq!(send(&slow, 1_000).await.status, 201);
    assert_eq!(send(&other, 3_000_000).await.status, 201);
    drop(upload);
    until("the upload never gave its room back", async || {
        send(&slow, 3_000_000).await.status == 201
    })
    .await;
    service.finish().await;
}

#[tokio::test]
async fn the_steps_of_a_run_at_work_take_room() {
    let service = Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await;
    let session = import(&service, 5_000_000).await;
    let input = format!("calculate {}", "1+".repeat(400_000));
    let accepted = service
        .post(
            "/v1/runs",
            &json!({"input": input, "model": "mock/gated", "mode": "async"}),
        )
        .await
        .ok();
    let steps = run_path(&accepted, "/steps");
    until("the first step was never shown", async || {
        let shown = service.get(&steps).await;
        shown["data"].as_array().unwrap().len() == 1
    })
    .await;
    let reader = stop_reading(&service, &session, None).await;
    service.try_get(&steps).await.assert_problem("too_much_in_flight");
    drop(reader);
    until("the room was never given back", async || {
        service.try_get(&steps).await.status == 200
    })
    .await;
    service.gate.open(1);
    let run = steps.trim_end_matches("/steps");
    until("the run never ended", async || {
        service.get(run).await["status"] == "completed"
    })
    .await;
    service.finish().await;
}

#[tokio::test]
async fn an_import_that_waits_for_room_is_answered_whole() {
    let service = Arc::new(Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await);
    let large = import(&service, 9_000_000).await;
    let reader = stop_reading(&service, &large, None).await;
    // Its body is small and waits for nothing; the session has ids and times as well.
    let messages = vec![json!({"role": "user", "content": "a"}); 500];
    let body = json!({"message_history_state": {"messages": messages}});
    assert!(body.to_string().len() < 16 << 10);
    let importing = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.post("/v1/sessions", &body).await }
    });
    service.until_counts((2, 0)).await;
    // Meanwhile reads are refused: the first when the import has waited about as long, the second
    // when it has waited longer.
    for _ in 0..2 {
        service.try_get(&large).await.assert_problem("too_much_in_flight");
    }
    assert!(!importing.is_finished());
    drop(reader);
    let answer = importing.await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text());
    let (path, made) = (answer.header("location").to_owned(), answer.json());
    assert_eq!(made["message_history_state"]["messages"].as_array().unwrap().len(), 500);
    assert_eq!(service.get(&path).await, made);
    Arc::into_inner(service).unwrap().finish().await;
}

#[tokio::test]
async fn an_import_that_can_not_be_read_again_is_answered_without_its_states() {
    let log = CapturedLog::default();
    let writer = log.clone();
    let _listening = listen(tracing_subscriber::fmt().with_writer(move || writer.clone()).finish());
    let service = Arc::new(Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await);
    let large = import(&service, 9_000_000).await;
    let reader = stop_reading(&service, &large, None).await;
    let body = json!({"message_history_state": {"messages": vec![json!({"role": "user", "content": "a"}); 500]}});
    let importing = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.post("/v1/sessions", &body).await }
    });
    service.until_counts((2, 0)).await;
    service.database.break_tables(&["sessions"]).await;
    drop(reader);
    let answer = importing.await.unwrap();
    service.database.mend_tables(&["sessions"]).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let reported = log.text();
    let reported: Vec<_> = reported
        .lines()
        .filter(|line| line.contains("an imported session"))
        .collect();
    assert!(
        matches!(reported[..], [line] if line.contains("WARN") && line.contains("shown without its states") && line.contains("sessions")),
        "{reported:?}"
    );
    let made = answer.json();
    for state in ["environment_state", "context_state", "message_history_state"] {
        assert_eq!(made.get(state), None, "{made}");
    }
    let whole = service.get(answer.header("location")).await;
    assert_eq!(whole["session_id"], made["session_id"]);
    assert_eq!(
        whole["message_history_state"]["messages"].as_array().unwrap().len(),
        500
    );
    Arc::into_inner(service).unwrap().finish().await;
}

#[tokio::test]
async fn a_result_that_waits_for_room_is_whole() {
    let service = Arc::new(Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await);
    let session = import(&service, 5_000_000).await;
    let reader = stop_reading(&service, &session, None).await;
    let run = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.run_with(json!({"input": "much"})).await }
    });
    service.until_counts((2, 1)).await;
    drop(reader);
    let run: Value = run.await.unwrap();
    assert_eq!(run["output_text"].as_str().unwrap().len(), super::service::MUCH);
    Arc::into_inner(service).unwrap().finish().await;
}

#[tokio::test]
async fn a_repeated_request_whose_run_has_a_large_result_waits_for_room() {
    let service = Service::start_with(&[ROOM, ("http.request_timeout", "5m")]).await;
    let ask = |prefer| {
        let post = service.request(Method::POST, "/v1/runs");
        let keyed = post.header("idempotency-key", "the-same").header("prefer", prefer);
        with_json(keyed, &json!({"input": "much"}))
    };
    let first = read(ask("")).await.ok();
    let session = import(&service, 5_000_000).await;
    for (prefer, status) in [("respond-async", 202), ("", 200)] {
        let reader = stop_reading(&service, &session, None).await;
        let mut repeated = Box::pin(read(ask(prefer)));
        // It has all the time that it would need.
        let early = tokio::time::timeout(Duration::from_millis(500), &mut repeated).await;
        assert!(early.is_err(), "{prefer}");
        drop(reader);
        let repeated = repeated.await;
        assert_eq!(repeated.status, status, "{prefer}");
        assert_eq!(repeated.header("idempotency-replayed"), "true");
        assert_eq!(repeated.json(), first, "{prefer}");
    }
    service.finish().await;
}

//! Readers of events who are too slow, or whose events can't be read: they are told so at last, and
//! go on where they were.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use values::tenant::TenantId;

use super::on_every_store;
use crate::support::gated::{GatedApp, assert_without_gap, id, numbers};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, run_path, sse_data};

on_every_store!(
    a_reader_of_a_light_run_that_is_too_slow_is_dropped_and_gets_the_end_later,
    a_slow_reader_of_a_queued_run_misses_nothing,
    a_slow_reader_of_a_response_gets_a_failed_one,
    a_reader_whose_store_cannot_be_read_is_dropped_and_goes_on_later,
);

/// How long anything may take. Megabytes pass through small buffers, and the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(4);
/// The completion, in pieces: far more than connections and the board hold.
const PIECES: usize = 1_500;
const PIECE_BYTES: usize = 4_096;

/// A service with little room for events whose model says much, and ends when the gate lets it.
async fn start(database: &TestDatabase) -> (TestApp, Arc<Gate>, MockModel) {
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |_| {
        let pieces = (0..PIECES).map(|number| format!("{number:PIECE_BYTES$}"));
        Reply::HeldAtEnd(Arc::clone(&behind), pieces.collect())
    })
    .await;
    let settings = [
        ("board.max_run_event_bytes", "65536"),
        // The service drops a reader that reads nothing for so long.
        ("http.request_timeout", "5m"),
    ];
    (TestApp::start(database.url(), &mock, &settings).await, gate, mock)
}

/// A caller of a streamed run who reads when it is told to.
struct SlowReader {
    stream: TcpStream,
    text: String,
}

impl SlowReader {
    /// Begins a run with these headers, and reads until the model speaks.
    async fn begin(app: &TestApp, headers: &str) -> (Self, Value) {
        let body = json!({"agent": "echo", "input": "speak", "mode": "stream"});
        Self::post(app, ["/v1/runs", headers], &body, "event: message.delta").await
    }

    /// Posts a body to a path with these headers, and reads until an event. Returns the first one.
    async fn post(app: &TestApp, [path, headers]: [&str; 2], body: &Value, event: &str) -> (Self, Value) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(app.address).await.unwrap();
        let body = body.to_string();
        // Of this version an answer has no frames but the events.
        let head = format!("POST {path} HTTP/1.0\r\nhost: localhost\r\n{headers}content-type: application/json");
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = Self {
            stream,
            text: String::new(),
        };
        let mut buffer = [0; 1_024];
        while !reader.text.contains(event) {
            let read = timeout(PATIENCE, reader.stream.read(&mut buffer))
                .await
                .unwrap()
                .unwrap();
            // On a busy machine it may be too slow before the first piece.
            if read == 0 {
                break;
            }
            reader.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        let begun = reader.text.lines().find(|line| line.starts_with("data: ")).unwrap();
        let run = sse_data(begun).remove(0);
        (reader, run)
    }

    /// Reads to the end of the stream.
    async fn rest(mut self) -> String {
        let reading = self.stream.read_to_string(&mut self.text);
        timeout(PATIENCE, reading).await.expect("the stream goes on").unwrap();
        self.text
    }
}

/// Waits until the model has said all, but not its end.
async fn until_all_is_said(app: &TestApp, run: &Value) {
    let (tenant, run_id) = (TenantId::anonymous(), id(run).parse().unwrap());
    until("the model does not speak", async || {
        let last = app.app.runs.board.event_last(&tenant, run_id).await.unwrap();
        last > PIECES as u64
    })
    .await;
}

async fn a_reader_of_a_light_run_that_is_too_slow_is_dropped_and_gets_the_end_later(database: TestDatabase) {
    let (app, gate, _mock) = start(&database).await;
    let (reader, run) = SlowReader::begin(&app, "").await;
    until_all_is_said(&app, &run).await;
    let text = reader.rest().await;
    let mut events = sse_data(&text);
    let dropped = events.pop().unwrap();
    let last = events.len() as u64;
    assert_eq!(numbers(&events), (1..=last).collect::<Vec<_>>());
    assert!(last < PIECES as u64, "{last}");
    assert_members!(dropped, {"type": "stream.dropped", "run_id": run["run_id"], "data/after": last});
    let reason = dropped["data"]["reason"].as_str().unwrap();
    assert!(reason.contains("too far behind"), "{reason}");
    let last_frame = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(!last_frame.contains("id: "), "{last_frame}");
    // What follows is gone, and the run has not told how it ends.
    assert_eq!(app.events_after(&run, last).await, [dropped]);

    gate.open(1);
    let ended = app.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{}", ended["error"]);
    let said = ended["output_text"].as_str().unwrap().len();
    assert_eq!(said, PIECES * PIECE_BYTES);
    app.until_stored(id(&run)).await;
    let rest = app.events_after(&run, last).await;
    let types: Vec<_> = rest.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session.committed", "run.completed"]);
    assert_eq!(rest[1]["data"], ended);
    app.finish().await;
}

async fn a_slow_reader_of_a_queued_run_misses_nothing(database: TestDatabase) {
    let (app, gate, _mock) = start(&database).await;
    let (reader, run) = SlowReader::begin(&app, "idempotency-key: k\r\n").await;
    until_all_is_said(&app, &run).await;
    gate.open(1);
    let ended = app.ended(&run).await;
    let events = sse_data(&reader.rest().await);
    assert_without_gap(&events);
    let said = events.iter().filter(|event| event["type"] == "message.delta");
    let said: String = said.map(|event| event["data"]["text"].as_str().unwrap()).collect();
    assert!(ended["output_text"] == said.as_str(), "{} bytes", said.len());
    let last = events.last().unwrap();
    assert_members!(last, {"type": "run.completed", "data": ended});
    app.finish().await;
}

async fn a_slow_reader_of_a_response_gets_a_failed_one(database: TestDatabase) {
    let (app, gate, _mock) = start(&database).await;
    let body = json!({"model": "echo", "input": "speak", "stream": true});
    let path = ["/v1/responses", ""];
    let (reader, created) = SlowReader::post(&app, path, &body, "event: response.output_text.delta").await;
    let run = &created["response"]["agent_runtime"];
    until_all_is_said(&app, run).await;
    let text = reader.rest().await;
    let events = sse_data(text.strip_suffix("data: [DONE]\n\n").unwrap());
    let numbers = events.iter().map(|event| event["sequence_number"].as_u64().unwrap());
    assert!(numbers.eq(0..events.len() as u64));
    let last = events.last().unwrap();
    assert_members!(last, {"type": "response.failed", "response/error/code": "stream_dropped"});
    // The response itself goes on.
    gate.open(1);
    assert_eq!(app.ended(run).await["status"], "completed");
    app.finish().await;
}

async fn a_reader_whose_store_cannot_be_read_is_dropped_and_goes_on_later(database: TestDatabase) {
    let worker = GatedApp::start(&database, &[("queue.poll_interval", "50ms")]).await;
    let app = GatedApp::start(&database, &[("queue.role", "api")]).await;
    let run = app.begin("wait", json!({})).await;
    worker.gate.until_waiting(1).await;
    let path = run_path(&run, "/events");
    let response = app.request(Method::GET, &path).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("event: model.requested") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    let broken = ["run_events"];
    database.break_tables(&broken).await;
    let reading = async {
        while let Some(piece) = stream.next().await {
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    };
    timeout(PATIENCE, reading).await.expect("the stream goes on");
    database.mend_tables(&broken).await;
    let mut events = sse_data(&text);
    let dropped = events.pop().unwrap();
    let last = events.len() as u64;
    let reason = "the store can't be read now";
    assert_eq!(
        dropped,
        json!({"run_id": run["run_id"], "type": "stream.dropped", "data": {"reason": reason, "after": last}})
    );

    worker.gate.open(1);
    events.extend(app.events_after(&run, last).await);
    assert_without_gap(&events);
    assert_eq!(events.last().unwrap()["data"], app.ended(&run).await);
    assert_eq!(app.events_after(&run, 0).await, events);
    app.finish().await;
    worker.finish().await;
}

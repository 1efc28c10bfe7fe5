//! Large events: they wait until there is room for them, and their readers share the encoded bytes.

use std::sync::Arc;
use std::time::Duration;

use agent::record::RunStatus;
use futures_util::future::join_all;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use store::Page;
use store::keys::Scope;
use store::runs::RunFilter;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use tokio::net::TcpStream;

use crate::http::in_flight::{history, stop_reading};
use crate::http::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{TestApp, run_path, session_path};

/// A service with little room, and a tenant of it.
struct Crowded {
    app: TestApp,
    _database: TestDatabase,
    _models: MockModel,
    /// Where the end of a reply to `hold` waits.
    gate: Arc<Gate>,
    key: String,
    /// A session so large that a reader of it leaves no room for others of its tenant.
    large: String,
}

impl Crowded {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let (database, gate) = (TestDatabase::sqlite(), Gate::new());
        let behind = Arc::clone(&gate);
        let models = MockModel::start(move |request| match last_user_text(request).as_str() {
            "hold" => Reply::HeldAtEnd(Arc::clone(&behind), vec!["x".repeat(40_000), "y".to_owned()]),
            "much" => Reply::text(&"z".repeat(100_000)),
            text => Reply::text(text),
        });
        let models = models.await;
        let fixed = [
            ("http.max_bytes_in_flight", "4194304"),
            ("http.keep_alive_interval", "20ms"),
            ("http.min_transfer_rate", "0"),
        ];
        let settings: Vec<_> = fixed.iter().chain(settings).copied().collect();
        let app = TestApp::start(database.url(), &models, &settings).await;
        let scopes = [Scope::SessionsRead, Scope::RunsWrite];
        let (_, key) = app.make_key("acme", &scopes).await;
        let mut this = Self {
            app,
            _database: database,
            _models: models,
            gate,
            key,
            large: String::new(),
        };
        let made = this.post("/v1/sessions", &history(&[9_000_000])).await;
        this.large = session_path(&made, "");
        this
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.app.request(Method::POST, path).bearer_auth(&self.key);
        read(with_json(request, body)).await.ok()
    }

    async fn get(&self, path: &str) -> Response {
        let request = self.app.request(Method::GET, path).bearer_auth(&self.key);
        request.send().await.unwrap()
    }

    /// Waits until so many runs of the tenant have completed. A response with them would take room.
    async fn until_completed(&self, count: usize) {
        let (tenant, store) = ("acme".parse().unwrap(), &self.app.app.runs.store);
        let filter = RunFilter {
            statuses: vec![RunStatus::Completed],
            ..RunFilter::default()
        };
        let page = Page {
            before: None,
            limit: 10,
        };
        until("so many runs never completed", async || {
            store.run_list(&tenant, &filter, page).await.unwrap().len() == count
        })
        .await;
    }

    /// Takes all the room of the tenant, until the connection is dropped.
    async fn crowd(&self) -> TcpStream {
        stop_reading(&self.app, &self.large, Some(&self.key)).await
    }
}

/// A stream of events, as far as it was read.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    fn new(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        let text = String::new();
        Self { response, text }
    }

    /// Reads on up to these words.
    async fn read_up_to(&mut self, words: &str) {
        while !self.text.contains(words) {
            assert!(self.read().await, "the stream ended without {words}: {}", self.text);
        }
    }

    async fn read(&mut self) -> bool {
        let Some(chunk) = self.response.chunk().await.unwrap() else {
            return false;
        };
        self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        true
    }

    async fn rest(mut self) -> String {
        while self.read().await {}
        self.text
    }
}

/// Returns the names of the events.
fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

#[tokio::test]
async fn a_reader_that_waits_for_room_is_sent_comments() {
    let service = Crowded::start(&[]).await;
    let run = service
        .post("/v1/runs", &json!({"model": "mock/m", "input": "x".repeat(40_000)}))
        .await;
    let crowd = service.crowd().await;
    let mut reader = Stream::new(service.get(&run_path(&run, "/events")).await);
    reader
        .read_up_to(": keep-alive\n\n: keep-alive\n\n: keep-alive\n\n")
        .await;
    assert!(!reader.text.contains("xxx"), "{}", reader.text);
    drop(crowd);
    let reported = reader.rest().await;
    assert_eq!(names(&reported).last(), Some(&"run.completed"));
    service.app.finish().await;
}

#[tokio::test]
async fn a_caller_whose_stream_is_dropped_after_a_wait_for_room_has_not_gone_away() {
    let service = Crowded::start(&[("board.max_live_event_bytes", "65536")]).await;
    let crowd = service.crowd().await;
    let request = service.app.request(Method::POST, "/v1/runs").bearer_auth(&service.key);
    let body = json!({"model": "mock/m", "input": "hold", "mode": "stream"});
    let mut stream = Stream::new(with_json(request, &body).send().await.unwrap());
    service.gate.until_waiting(1).await;
    // The run has told a large event, and the stream waits for room for it.
    stream.read_up_to("event: step.started").await;
    stream.read_up_to(": keep-alive\n\n: keep-alive\n\n").await;
    // Meanwhile another run tells so much that the event is not kept.
    let other = json!({"model": "mock/m", "input": "much", "mode": "stream"});
    let request = service.app.request(Method::POST, "/v1/runs").bearer_auth(&service.key);
    let other = Stream::new(with_json(request, &other).send().await.unwrap());
    service.until_completed(1).await;
    drop(crowd);
    let reported = stream.rest().await;
    assert_eq!(names(&reported).last(), Some(&"stream.dropped"), "{reported}");
    other.rest().await;
    service.gate.open(1);
    service.until_completed(2).await;
    service.app.finish().await;
}

#[tokio::test]
async fn readers_who_wait_for_room_get_each_event_once() {
    let service = Crowded::start(&[("board.max_ended_event_bytes", "0")]).await;
    let run = service
        .post("/v1/runs", &json!({"model": "mock/m", "input": "x".repeat(400_000)}))
        .await;
    let crowd = service.crowd().await;
    let path = run_path(&run, "/events");
    let readers = (0..8).map(async |_| {
        let mut reader = Stream::new(service.get(&path).await);
        reader.read_up_to(": keep-alive").await;
        reader
    });
    let readers = join_all(readers).await;
    drop(crowd);
    for reported in join_all(readers.into_iter().map(Stream::rest)).await {
        assert_eq!(names(&reported), ["session.committed", "run.completed"]);
    }
    service.app.finish().await;
}

#[tokio::test]
async fn many_readers_of_a_large_event_read_the_same() {
    let service =
        Service::start_with(&[("http.max_bytes_in_flight", "4194304"), ("store.acquire_timeout", "1m")]).await;
    let run = service.run_with(json!({"input": "x".repeat(200_000)})).await;
    let path = run_path(&run, "/events");
    // Together they read far more than may be in flight.
    let answers = join_all((0..15).map(|_| service.try_get(&path)));
    let answers = tokio::time::timeout(Duration::from_mins(5), answers).await.unwrap();
    let last = answers[0].text();
    assert!(last.ends_with("\n\n") && last.contains(run["output_text"].as_str().unwrap()));
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body == answers[0].body, "{} bytes", answer.body.len());
    }
    service.finish().await;
}

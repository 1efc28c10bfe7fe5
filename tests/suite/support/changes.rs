//! A reader of the changes of a tenant.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::time::timeout;

use super::test_app::TestApp;

/// How long an event may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A stream of changes.
pub(crate) struct Changes {
    response: Response,
    text: String,
}

impl Changes {
    /// Begins to read with a key, and checks the first event. An empty key stands for none.
    pub(crate) async fn open(app: &TestApp, key: &str) -> Self {
        let mut request = app.request(Method::GET, "/v1/changes");
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        Self::send(request).await
    }

    /// Sends the request, and checks the first event.
    pub(crate) async fn send(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = String::new();
        let mut changes = Self { response, text };
        let opened = changes.next().await.unwrap();
        assert_eq!(opened["type"], "changes.opened");
        assert!(opened["data"]["time"].is_string() && opened["data"]["started_at"].is_string());
        changes
    }

    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let next = timeout(PATIENCE, self.read()).await.unwrap()?;
        let lines: Vec<_> = next.lines().collect();
        let [event, data] = lines[..] else { panic!("{next}") };
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], event.strip_prefix("event: ").unwrap());
        Some(data)
    }

    /// Returns the last event, once the stream has ended.
    pub(crate) async fn last(mut self) -> Value {
        let mut last = Value::Null;
        while let Some(next) = self.next().await {
            last = next;
        }
        last
    }

    async fn read(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                if frame.starts_with(':') {
                    continue;
                }
                return Some(frame);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads up to a run's event of this status, and returns the statuses of the run.
    pub(crate) async fn statuses_until(&mut self, last: &str) -> Vec<Value> {
        let mut statuses = Vec::new();
        while statuses.last().is_none_or(|status| *status != last) {
            let event = self.next().await.unwrap();
            assert_eq!(event["type"], "run.changed", "{event}");
            statuses.push(event["data"]["status"].clone());
        }
        statuses
    }

    /// Reads up to the event of a run that has this status, and returns what all events of the run
    /// say up to there.
    pub(crate) async fn of_run_until(&mut self, run: &Value, status: &str) -> Vec<Value> {
        let mut said: Vec<Value> = Vec::new();
        while said.last().is_none_or(|last| last["status"] != status) {
            let event = self.next().await.unwrap();
            if event["data"]["run_id"] == run["run_id"] {
                said.push(event["data"].clone());
            }
        }
        said
    }
}

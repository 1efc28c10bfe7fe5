//! Traces: what a collector gets from a running service, over its real protocol, and what the
//! service passes on.

#[cfg(target_os = "linux")]
mod context_out;
mod links;
mod mcp_calls;
mod retries;
mod rotel;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::ports::RefusingAddress;
use test_support::wait::until;
use tokio::net::TcpListener;

use super::binary::Home;
use super::service::{Service, read};
use crate::support::mock_model::{MockModel, Reply, last_user_text};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLERS_SPAN: &str = "b7ad6b7169203331";

/// A collector that retains what it gets.
struct Collector {
    address: String,
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    async fn start() -> Self {
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let received = Arc::clone(&requests);
        let take = move |body: Bytes| async move {
            received.lock().push(ExportTraceServiceRequest::decode(body).unwrap());
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, requests }
    }

    /// Returns all spans.
    fn all(&self) -> Vec<Span> {
        let requests = self.requests.lock();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans).cloned().collect()
    }

    /// Returns the spans by their names.
    fn spans(&self) -> BTreeMap<String, Span> {
        self.all().into_iter().map(|span| (span.name.clone(), span)).collect()
    }

    /// Waits for a span, and returns all that have come.
    async fn until(&self, name: &str) -> BTreeMap<String, Span> {
        until(&format!("no span {name} comes"), async || {
            self.spans().contains_key(name)
        })
        .await;
        self.spans()
    }
}

fn home(home: Home, mock: &MockModel, collector: &str) -> Home {
    let home = home.with_mock(mock);
    home.write("config/agents/helper.toml", "name = 'helper'\nmodel = 'mock/m'\n");
    let lead = "name = 'lead'\nmodel = 'mock/m'\ntools = ['calculator']\n[[subagents]]\nagent = 'helper'\n";
    home.write("config/agents/lead.toml", lead);
    home.variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
}

/// A model that calculates, has a helper work, and then is done.
async fn model() -> MockModel {
    MockModel::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        match (last_user_text(request).as_str(), results) {
            ("work", 0) => Reply::call("c1", "calculator", &json!({"expression": "6 * 7"})),
            ("work", 1) => Reply::call("c2", "helper", &json!({"task": "help"})),
            _ => Reply::text("done"),
        }
    })
    .await
}

async fn work(service: &Service, mode: &str) -> Value {
    let traceparent = format!("00-{TRACE_ID}-{CALLERS_SPAN}-01");
    let request = service
        .request(Method::POST, "/v1/runs")
        .header("traceparent", traceparent);
    let body = json!({"agent": "lead", "input": "work", "mode": mode});
    let (status, run) = read(request, Some(body)).await;
    assert!(status.is_success(), "{run:#}");
    run
}

/// Returns the `traceparent` of what a span has called.
fn traceparent_of(span: &Span) -> String {
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns an attribute of a span as JSON.
fn attribute(span: &Span, name: &str) -> Value {
    value_of(&span.attributes, name)
}

fn value_of(attributes: &[KeyValue], name: &str) -> Value {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::BoolValue(is_true)) => json!(is_true),
        Some(Any::ArrayValue(values)) => json!(values.values.len()),
        _ => Value::Null,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_one_trace_below_the_caller_that_is_trusted() {
    let (collector, mock) = (Collector::start().await, model().await);
    let home = home(Home::with_file(), &mock, &collector.address);
    let service = Service::start_with(&home, &["--set", "traces.trust_traceparent=true"]).await;
    let run = work(&service, "sync").await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let spans = collector.until("invoke_agent lead").await;

    let parent = |name: &str| hex(&spans[name].parent_span_id);
    let id = |name: &str| hex(&spans[name].span_id);
    for span in spans.values() {
        assert_eq!(hex(&span.trace_id), TRACE_ID, "{}", span.name);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    }
    assert_eq!(parent("POST /v1/runs"), CALLERS_SPAN);
    assert_eq!(parent("invoke_agent lead"), id("POST /v1/runs"));
    assert_eq!(parent("execute_tool calculator"), id("invoke_agent lead"));
    assert_eq!(parent("execute_tool helper"), id("invoke_agent lead"));
    assert_eq!(parent("invoke_agent helper"), id("execute_tool helper"));
    let chats: Vec<_> = spans.keys().filter(|name| name.starts_with("chat ")).collect();
    assert_eq!(chats, ["chat m"]);

    let lead = &spans["invoke_agent lead"];
    for (name, expected) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.agent.name", json!("lead")),
        ("gen_ai.conversation.id", run["session_id"].clone()),
        ("agent_runtime.run.id", run["run_id"].clone()),
        ("agent_runtime.session.id", run["session_id"].clone()),
        ("agent_runtime.tenant", json!("default")),
        ("agent_runtime.stop_reason", json!("completed")),
        ("gen_ai.usage.input_tokens", run["usage"]["input_tokens"].clone()),
        ("error.type", Value::Null),
    ] {
        assert_eq!(attribute(lead, name), expected, "{name}");
    }
    let chat = &spans["chat m"];
    for (name, expected) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("m")),
        ("gen_ai.response.finish_reasons", json!(1)),
        ("server.address", json!("127.0.0.1")),
        ("gen_ai.conversation.id", run["session_id"].clone()),
    ] {
        assert_eq!(attribute(chat, name), expected, "{name}");
    }
    assert!(attribute(chat, "gen_ai.response.time_to_first_chunk").as_f64().unwrap() >= 0.0);
    let tool = &spans["execute_tool calculator"];
    assert_eq!(attribute(tool, "gen_ai.tool.name"), "calculator");
    assert_eq!(attribute(tool, "gen_ai.tool.call.id"), "c1");
    // The log of the request leads to the trace.
    let line = format!("trace_id={TRACE_ID} span_id={}", id("POST /v1/runs"));
    let log = service.stop().await.stderr;
    assert!(log.contains(&line), "{log}");
    let sent = format!("{:?}", collector.requests.lock());
    assert!(!sent.contains("6 * 7"), "a span has contents");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_not_trusted_is_linked_and_a_queued_run_is_below_its_request() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let (collector, mock) = (Collector::start().await, model().await);
    let home = home(Home::new(database.url()), &mock, &collector.address);
    let api = Service::start_with(&home, &["--role", "api"]).await;
    let worker = Service::start_with(&home, &["--role", "worker"]).await;
    let run = work(&api, "async").await;
    assert_eq!(api.ended(&run).await["status"], "completed");
    collector.until("invoke_agent lead").await;
    let spans = collector.until("POST /v1/runs").await;
    let request = &spans["POST /v1/runs"];
    assert_ne!(hex(&request.trace_id), TRACE_ID);
    assert!(request.parent_span_id.is_empty());
    assert_eq!(hex(&request.links[0].trace_id), TRACE_ID);
    assert_eq!(hex(&request.links[0].span_id), CALLERS_SPAN);
    for name in ["invoke_agent lead", "run.queue"] {
        assert_eq!(spans[name].trace_id, request.trace_id, "{name}");
        assert_eq!(spans[name].parent_span_id, request.span_id, "{name}");
    }
    let names: Vec<_> = spans.keys().filter(|name| name.contains("readyz")).collect();
    assert!(names.is_empty(), "{names:?}");
    // A search for the trace of the caller finds the request, and so the trace of the service.
    let log = api.stop().await.stderr;
    let ids = (hex(&request.trace_id), hex(&request.span_id));
    let line = format!("trace_id={} span_id={} caller_trace_id={TRACE_ID}", ids.0, ids.1);
    assert!(log.contains(&line), "{log}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standard_variables_turn_recording_off() {
    let (collector, mock) = (Collector::start().await, model().await);
    for (variable, value) in [
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_SDK_DISABLED", "true"),
    ] {
        let home = home(Home::with_file(), &mock, &collector.address).variable(variable, value);
        let service = Service::start(&home).await;
        assert_eq!(work(&service, "sync").await["status"], "completed");
        service.stop().await;
        assert_eq!(collector.spans().len(), 0, "{variable}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_delays_nothing_and_its_lost_spans_are_counted() {
    let (nobody, mock) = (RefusingAddress::new(), model().await);
    let home = home(Home::with_file(), &mock, &format!("http://{}", nobody.address()));
    let service = Service::start_with(&home, &["--set", "metrics.enabled=true"]).await;
    assert_eq!(work(&service, "sync").await["status"], "completed");
    until("no lost span is counted", async || {
        let answer = service.request(Method::GET, "/metrics").send().await.unwrap();
        let text = answer.text().await.unwrap();
        let lost = text
            .lines()
            .find_map(|line| line.strip_prefix("agent_runtime_spans_dropped_total "));
        lost.is_some_and(|lost| lost != "0")
    })
    .await;
    let log = service.stop().await.stderr;
    assert_eq!(log.matches("the collector does not take spans").count(), 1, "{log}");
    assert!(log.contains(&format!("host=\"{}\"", nobody.address())), "{log}");
}

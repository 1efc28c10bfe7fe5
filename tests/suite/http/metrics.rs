//! Metrics: that each thing is counted once, who may read them, and how many series there can be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent::AgentEvent;
use agent::ports::{
    Model, ModelCatalog, ModelError, ModelErrorClass, ModelEvent, ModelLookupError, ModelRequest, ModelStream,
};
use agent::record::RunSummary;
use agent::state::{FinishReason, Messages, ModelResponse};
use agent_runtime::metrics::{Format, Metrics, MetricsSettings, ObservedModels, RunKind};
use futures_util::{StreamExt as _, stream};
use reqwest::{Method, header};
use serde_json::json;
use store::keys::Scope;
use store::{Outcome, StoreObserver as _};
use test_support::fake_model::{Beat, completed, usage};
use test_support::wait::until;
use values::message::ContentPart;
use values::model_parameters::ToolChoice;
use values::model_ref::{ModelRef, ResponseFormat};
use values::tenant::TenantId;
use values::usage::PriceTable;

use super::service::Service;
use crate::support::answer::read;

const ON: &[(&str, &str)] = &[("metrics.enabled", "true")];
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";

on_every_store! { with &[("metrics.enabled", "true")];
    a_run_its_tools_and_its_requests_are_counted_once,
    the_queue_is_shown_as_it_stands,
    open_streams_are_connections_of_their_own,
}

/// Series with their values, as they are shown.
#[derive(Debug)]
struct Series(BTreeMap<String, String>);

impl Series {
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    async fn of(service: &Service) -> Self {
        Self::parse(&service.try_get("/metrics").await.text())
    }

    /// Returns the value of a series of ours, which counts something; 0 if there is none.
    #[track_caller]
    fn get(&self, name: &str) -> u64 {
        self.value(&format!("agent_runtime_{name}"))
    }

    #[track_caller]
    fn value(&self, name: &str) -> u64 {
        let value = self.0.get(name).map_or("0", String::as_str);
        value.strip_suffix(".0").unwrap_or(value).parse().unwrap()
    }

    /// Returns the sum of the series whose names begin so.
    fn sum(&self, name: &str) -> u64 {
        self.beginning_with(name).into_iter().map(|name| self.value(name)).sum()
    }

    /// Returns the names with which a name of ours begins.
    fn beginning_with(&self, name: &str) -> Vec<&String> {
        let begin = format!("agent_runtime_{name}");
        self.0.keys().filter(|name| name.starts_with(&begin)).collect()
    }
}

async fn a_run_its_tools_and_its_requests_are_counted_once(service: &Service) {
    let before = Series::of(service).await;
    assert_eq!(before.beginning_with("runs_total"), Vec::<&String>::new());
    let body = json!({"agent": "demo", "input": "calculate 6 * 7"});
    let run = service.post("/v1/runs", &body).await.json();
    assert_eq!(run["status"], "completed", "{run:#}");
    service
        .post("/v1/runs", &json!({"agent": "nobody", "input": "x"}))
        .await
        .assert_problem("agent_not_found");

    let series = Series::of(service).await;
    let runs = "runs_total{agent=\"demo\",status=\"completed\",stop_reason=\"completed\",kind=\"light\"}";
    let echo = "provider=\"mock\",model=\"echo\"";
    let usage = |name: &str| run["usage"][name].as_u64().unwrap();
    for (name, expected) in [
        (runs, 1),
        ("run_duration_seconds_count{agent=\"demo\"}", 1),
        ("tool_calls_total{tool=\"calculator\",outcome=\"ok\"}", 1),
        ("tool_call_duration_seconds_count{tool=\"calculator\"}", 1),
        (&format!("model_attempts_total{{{echo},outcome=\"ok\"}}"), 2),
        (
            &format!("model_request_duration_seconds_count{{{echo},outcome=\"ok\"}}"),
            2,
        ),
        (&format!("model_time_to_first_token_seconds_count{{{echo}}}"), 2),
        (
            &format!("model_tokens_total{{{echo},kind=\"input\"}}"),
            usage("input_tokens"),
        ),
        (
            &format!("model_tokens_total{{{echo},kind=\"output\"}}"),
            usage("output_tokens"),
        ),
        (
            "http_requests_total{route=\"/v1/runs\",method=\"POST\",status=\"200\"}",
            1,
        ),
        (
            "http_requests_total{route=\"/v1/runs\",method=\"POST\",status=\"404\"}",
            1,
        ),
        (
            "http_request_duration_seconds_count{route=\"/v1/runs\",method=\"POST\"}",
            2,
        ),
        ("http_refusals_total{code=\"agent_not_found\"}", 1),
        (
            "store_operation_duration_seconds_count{operation=\"commit session\",outcome=\"ok\"}",
            1,
        ),
        ("runs_in_progress{kind=\"light\"}", 0),
        ("webhook_deliveries_total{outcome=\"dead\"}", 0),
    ] {
        assert_eq!(series.get(name), expected, "{name}\n{series:#?}");
    }
    assert_eq!(series.beginning_with("runs_total").len(), 1);
    let is_shown = |name: &str| series.0.contains_key(name);
    assert!(is_shown("agent_runtime_webhook_deliveries_total{outcome=\"dead\"}"));
    assert!(is_shown("process_resident_memory_bytes") && is_shown("process_cpu_seconds_total"));
    let engine = service.app.runs.store.engine();
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("build_info{{version=\"{version}\",role=\"all\",store=\"{engine}\"}}");
    assert_eq!(series.get(&build), 1);

    // A further turn finds the session in the cache.
    let further = json!({"agent": "demo", "input": "x", "base_session_id": run["session_id"]});
    service.post("/v1/runs", &further).await.json();
    let after = Series::of(service).await;
    assert_eq!(after.get("bundle_lookups_total{outcome=\"hit\"}"), 1);
    assert_eq!(after.get(runs), 2);
}

async fn the_queue_is_shown_as_it_stands(service: &Service) {
    let body = json!({"input": "x", "mode": "async", "model": "mock/gated", "agent": "demo"});
    let run = service.post("/v1/runs", &body).await.json();
    service.gate.until_waiting(1).await;
    let series = Series::of(service).await;
    for (name, expected) in [
        ("queue_runs{state=\"leased\"}", 1),
        ("queue_runs{state=\"waiting\"}", 0),
        ("queue_runs{state=\"held\"}", 0),
        ("queue_oldest_waiting_seconds", 0),
        ("runs_in_progress{kind=\"queued\"}", 1),
        ("queue_wait_seconds_count", 1),
    ] {
        assert!(series.0.contains_key(&format!("agent_runtime_{name}")), "{name}");
        assert_eq!(series.get(name), expected, "{name}");
    }
    service.gate.open(1);
    let path = format!("/v1/runs/{}?wait=10s", run["run_id"].as_str().unwrap());
    assert_eq!(service.get(&path).await["status"], "completed");
    let ended = "runs_total{agent=\"demo\",status=\"completed\",stop_reason=\"completed\",kind=\"queued\"}";
    assert_eq!(Series::of(service).await.get(ended), 1);
}

async fn open_streams_are_connections_of_their_own(service: &Service) {
    let stream = service.request(Method::GET, "/v1/changes").send().await.unwrap();
    let series = Series::of(service).await;
    assert_eq!(series.get("connections{kind=\"stream\"}"), 1);
    // The other client of this test and the reader of the metrics may share one.
    assert!(series.get("connections{kind=\"request\"}") >= 1);
    drop(stream);
    until("the stream is still counted", async || {
        Series::of(service).await.get("connections{kind=\"stream\"}") == 0
    })
    .await;
}

#[tokio::test]
async fn a_reader_needs_the_scope_and_chooses_the_format() {
    let service = Service::start_with(ON).await;
    let (_, admin) = service.make_key("acme", &[Scope::Admin]).await;
    let (_, reader) = service.make_key("acme", &[Scope::Metrics]).await;
    let ask = async |secret: &str, accept: &str| {
        let request = service.request(Method::GET, "/metrics").header(header::ACCEPT, accept);
        read(request.bearer_auth(secret)).await
    };
    // Metrics are about all tenants, and an administrator is one of a tenant.
    ask(&admin, "*/*").await.assert_problem("missing_scope");
    service.try_get("/metrics").await.assert_problem("missing_api_key");

    let text = ask(&reader, "*/*").await;
    assert_eq!(text.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(
        text.text()
            .contains("# TYPE agent_runtime_http_requests_total counter\n")
    );
    assert!(!text.text().contains("# EOF"));
    let open = ask(&reader, OPEN_METRICS).await;
    assert_eq!(
        open.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(open.text().contains("# TYPE agent_runtime_http_requests counter\n"));
    assert!(open.text().ends_with("# EOF\n"));
    // The scope allows nothing else.
    let request = service.request(Method::GET, "/v1/runs").bearer_auth(&reader);
    read(request).await.assert_problem("missing_scope");
    service.finish().await;
}

#[tokio::test]
async fn without_the_setting_nothing_is_counted() {
    let service = Service::start().await;
    assert!(service.app.runs.metrics.is_none());
    service.try_get("/metrics").await.assert_problem("route_not_found");
    service.finish().await;
}

fn summary(agent: &str) -> RunSummary {
    let id = "01a2029f-3aaa-7738-ac15-a93ea52f3917";
    let time = "2026-01-02T03:04:05Z";
    let summary = json!({
        "run_id": id, "session_id": id, "base_session_id": null, "agent": agent, "agent_version": null,
        "model": "mock/echo", "mode": "sync", "status": "completed", "stop_reason": "completed", "usage": {},
        "step_count": 1, "error": null, "metadata": {}, "created_at": time, "started_at": time, "completed_at": time,
    });
    serde_json::from_value(summary).unwrap()
}

fn call_of(tool: &str, is_foreign: bool) -> AgentEvent {
    let data = json!({
        "step_number": 1, "call_id": "c", "name": tool, "arguments": "{}", "content": [], "is_error": false,
        "is_foreign": is_foreign, "duration_ms": 3,
    });
    serde_json::from_value(json!({"type": "tool_call.completed", "data": data})).unwrap()
}

/// As many names as the store has operations, and more.
const OPERATIONS: [&str; 80] = {
    let mut names = ["operation"; 80];
    let text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzab";
    let mut index = 0;
    while index < names.len() {
        names[index] = text.split_at(index + 1).0;
        index += 1;
    }
    names
};

/// Models of any name. Those whose names begin with `absent` fail.
#[derive(Debug)]
struct AnyModel {
    is_absent: bool,
}

impl Model for AnyModel {
    fn stream(&self, _: ModelRequest) -> ModelStream {
        let end = if self.is_absent {
            Err(ModelError::new(ModelErrorClass::Invalid, "there is no such model"))
        } else {
            Ok(ModelEvent::Completed(Box::new(response())))
        };
        stream::iter([end]).boxed()
    }
}

#[derive(Debug)]
struct AnyModels;

impl ModelCatalog for AnyModels {
    fn model(&self, name: &ModelRef) -> Result<Arc<dyn Model>, ModelLookupError> {
        let is_absent = name.model().starts_with("absent");
        Ok(Arc::new(AnyModel { is_absent }))
    }
}

fn response() -> ModelResponse {
    match completed(vec![ContentPart::text("hello")], FinishReason::Stop, usage(3, 2)) {
        Beat::Event(ModelEvent::Completed(response)) => *response,
        _ => panic!("no completion"),
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "any".to_owned(),
        system: "".into(),
        messages: Messages::default(),
        tools: Arc::default(),
        provider_tools: Arc::default(),
        tool_choice: ToolChoice::default(),
        response_format: ResponseFormat::default(),
        max_output_tokens: None,
        parameters: Arc::default(),
        trace: None,
    }
}

/// Asks models with so many names, each of which responds, and as many that do not exist.
async fn ask_models(metrics: &Arc<Metrics>, names: usize) {
    let models = ObservedModels::new(Arc::new(AnyModels), PriceTable::default(), Arc::clone(metrics));
    for number in 0..names {
        for kind in ["absent", "model"] {
            let name = format!("mock/{kind}-{number}").parse().unwrap();
            let stream = models.model(&name).unwrap().stream(request());
            assert_eq!(stream.collect::<Vec<_>>().await.len(), 1);
        }
    }
}

#[tokio::test]
async fn names_that_callers_make_up_have_few_series() {
    let listed: TenantId = "tenant-7".parse().unwrap();
    let settings = json!({"enabled": true, "listen": "", "tenants": [listed]});
    let settings: MetricsSettings = serde_json::from_value(settings).unwrap();
    let metrics = Metrics::new(&settings);
    for number in 0..1_000 {
        let tenant: TenantId = format!("tenant-{number}").parse().unwrap();
        let run = summary(&format!("agent-{number}"));
        metrics.runs.ended(&tenant, &run, RunKind::Light);
        metrics.runs.ended(&tenant, &summary("agent-999"), RunKind::Queued);
        metrics.runs.note(&call_of(&format!("tool-{number}"), false));
        metrics.runs.note(&call_of(&format!("made-up-{number}"), true));
    }
    let second = Duration::from_secs(1);
    for number in 0..100 {
        let route = format!("/v1/{number}");
        for method in ["GET", "POST", "BREW"] {
            metrics
                .http
                .answered(method, &route, if method == "GET" { 200 } else { 405 }, second);
        }
    }
    for operation in OPERATIONS {
        metrics.store.operation_ended(operation, Outcome::Ok, second);
    }
    let metrics = Arc::new(metrics);
    ask_models(&metrics, 1_000).await;
    let series = Series::parse(&metrics.encode(Format::Text).unwrap());
    assert!(series.0.len() <= 5_000, "{}", series.0.len());
    let ended = |agent: &str, kind: &str| {
        format!("runs_total{{agent=\"{agent}\",status=\"completed\",stop_reason=\"completed\",kind=\"{kind}\"}}")
    };
    // Nothing is lost: what has no series of its own is counted with the others.
    assert_eq!(series.get(&ended("agent-7", "light")), 1);
    assert_eq!(series.get(&ended("agent-999", "queued")), 1_000);
    assert_eq!(series.sum("runs_total"), 2_000);
    assert_eq!(series.sum("tool_calls_total"), 2_000);
    assert!(series.get("tool_calls_total{tool=\"other\",outcome=\"ok\"}") >= 1_900);
    assert!(!series.0.keys().any(|name| name.contains("made-up")));
    // A name that nothing responds to takes no series from a model.
    let echo = "model_attempts_total{provider=\"mock\",model=\"model-7\",outcome=\"ok\"}";
    assert_eq!(series.get(echo), 1);
    assert!(!series.0.keys().any(|name| name.contains("absent")));
    assert_eq!(series.sum("model_attempts_total"), 2_000);
    let of_tenants = series.beginning_with("tenant_runs_total");
    assert_eq!(of_tenants.len(), 1, "only the listed tenant has series: {of_tenants:?}");
    assert_eq!(
        series.get("tenant_runs_total{tenant=\"tenant-7\",status=\"completed\"}"),
        2
    );
}

#[test]
fn what_the_documentation_says_of_a_metric_is_what_is_shown() {
    let settings = json!({"enabled": true, "listen": "", "tenants": []});
    let metrics = Metrics::new(&serde_json::from_value::<MetricsSettings>(settings).unwrap());
    metrics
        .runs
        .ended(&TenantId::anonymous(), &summary("demo"), RunKind::Light);
    metrics.runs.note(&call_of("calculator", false));
    metrics.http.answered("GET", "/v1/runs", 200, Duration::ZERO);
    let text = metrics.encode(Format::Text).unwrap();
    for described in metrics.described() {
        let type_line = format!("# TYPE {} {}\n", described.name, described.kind);
        let Some((_, rest)) = text.split_once(&type_line) else {
            continue;
        };
        let sample = rest.lines().next().unwrap();
        let labels = sample
            .split_once('{')
            .map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
        let shown: Vec<&str> = labels
            .split(',')
            .filter_map(|pair| Some(pair.split_once('=')?.0))
            .filter(|label| *label != "le")
            .collect();
        assert_eq!(shown, described.labels, "{}", described.name);
        let help = format!("# HELP {} {}.\n", described.name, described.help);
        assert!(text.contains(&help), "{help}");
    }
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        assert!(
            metrics.described().iter().any(|described| described.name == name),
            "{name}"
        );
    }
}

//! The log of a service: the lines of a run name the run, and lead from its request to its worker
//! and back.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::binary::Home;
use super::service::{Service, read};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};

/// The trace of the caller of the runs.
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";

/// A model that has another agent work on "delegate", and fails on everything that the other agent
/// asks.
async fn delegating_model() -> MockModel {
    MockModel::start(|request| match last_user_text(request).as_str() {
        "delegate" if request["messages"].as_array().unwrap().len() < 3 => {
            Reply::call("c", "helper", &json!({"task": "fail"}))
        }
        "delegate" => Reply::text("done"),
        _ => Reply::Status(400, "{}".to_owned()),
    })
    .await
}

fn home(store_url: &str, mock: &MockModel) -> Home {
    let home = Home::new(store_url)
        .with_mock(mock)
        .variable("AGENT_RUNTIME__LOG__FORMAT", "json")
        .variable("AGENT_RUNTIME__LOG__FILTER", "agent_runtime=debug");
    home.write("config/agents/helper.toml", "name = 'helper'\nmodel = 'mock/m'\n");
    let lead = "name = 'lead'\nmodel = 'mock/m'\n[[subagents]]\nagent = 'helper'\n";
    home.write("config/agents/lead.toml", lead);
    home
}

/// Makes a run that has a subagent which fails, and returns its result.
async fn delegate(service: &Service, mode: &str) -> Value {
    let request = service.request(Method::POST, "/v1/runs").header("x-request-id", "r-42");
    let request = request.header("traceparent", format!("00-{TRACE_ID}-b7ad6b7169203331-00"));
    let body = json!({"agent": "lead", "input": "delegate", "mode": mode});
    let (status, run) = read(request, Some(body)).await;
    assert!(status.is_success(), "{run:#}");
    run
}

fn lines(log: &str) -> Vec<Value> {
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Checks that every line of the run has its fields, and returns their messages.
fn messages_of_run(lines: &[Value], run: &Value) -> Vec<String> {
    let is_of_run = |line: &&Value| line["span"]["name"] == "run.execute";
    let expected = json!({
        "name": "run.execute",
        "run_id": run["run_id"],
        "tenant": "default",
        "attempt": 1,
        "request_id": "r-42",
        "trace_id": TRACE_ID,
    });
    let of_run = lines.iter().filter(is_of_run);
    of_run
        .map(|line| {
            assert_eq!(line["span"], expected, "{line:#}");
            line["message"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// Checks the line of the request that started the run.
fn assert_request_names_run(lines: &[Value], run: &Value) {
    let is_start = |line: &&Value| line["route"] == "/v1/runs" && line["method"] == "POST";
    let of_request: Vec<_> = lines.iter().filter(is_start).collect();
    assert_eq!(of_request.len(), 1);
    assert_members!(of_request[0], {"run_id": run["run_id"], "request_id": "r-42", "trace_id": TRACE_ID});
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_of_a_light_run_names_the_run_and_its_request() {
    let mock = delegating_model().await;
    let home = home("sqlite://store.db", &mock);
    let service = Service::start(&home).await;
    let run = delegate(&service, "sync").await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let lines = lines(&service.stop().await.stderr);
    assert_request_names_run(&lines, &run);
    let messages = messages_of_run(&lines, &run);
    for expected in ["model call failed", "run ended"] {
        assert!(messages.iter().any(|message| message == expected), "{messages:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_of_a_queued_run_names_the_request_that_another_process_accepted() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = delegating_model().await;
    let home = home(database.url(), &mock);
    let (api, worker) = (["--role", "api"], ["--role", "worker"]);
    let (api, worker) = tokio::join!(Service::start_with(&home, &api), Service::start_with(&home, &worker));
    let run = delegate(&api, "async").await;
    assert_eq!(api.ended(&run).await["status"], "completed");
    let of_api = lines(&api.stop().await.stderr);
    assert_request_names_run(&of_api, &run);
    assert_eq!(messages_of_run(&of_api, &run), [""; 0]);
    let messages = messages_of_run(&lines(&worker.stop().await.stderr), &run);
    for expected in ["model call failed", "run ended"] {
        assert!(messages.iter().any(|message| message == expected), "{messages:?}");
    }
}

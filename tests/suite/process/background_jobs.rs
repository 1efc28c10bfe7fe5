//! Background jobs of agents in the real service: what becomes of them when runs or the service
//! end.

use std::fs;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::sandbox::{DIRECTORY, Long, end, home, put, signal_run};
use super::service::Service;

/// Starts a run that starts a job and then waits for its end.
async fn begin(service: &Service, job: &str) -> Value {
    let call = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    let script = json!([
        call("shell", json!({"command": job, "background": true})),
        call("shell_job", json!({"id": "job-1", "action": "wait", "timeout_seconds": 300})),
        {"text": "done"},
    ]);
    let definition = json!({"script": script, "tools": ["shell", "shell_job"]});
    let (status, answer) = put(service, "sh", definition).await;
    assert!(status.is_success(), "{answer:#}");
    service.begin("sh", "go").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_leaves_no_process_of_a_job() {
    let home = home();
    let service = Service::start(&home).await;
    let long = Long::new(11);
    begin(&service, &long.command).await;
    long.until(3).await;
    service.signal("KILL");
    long.until(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jobs_of_a_run_that_is_ended_are_killed() {
    let home = home();
    let service = Service::start(&home).await;
    for (number, action, status) in [(12, "stop", "stopped"), (13, "cancel", "cancelled")] {
        let long = Long::new(number);
        let run = begin(&service, &long.command).await;
        long.until(3).await;
        signal_run(&service, &run, action).await;
        let ended = service.ended(&run).await;
        assert_eq!(ended["status"], status, "{ended:#}");
        // None is left by the time at which the run has ended.
        assert_eq!(long.processes(), 0);
        if status == "stopped" {
            let path = format!("/v1/sessions/{}/files/file", ended["session_id"].as_str().unwrap());
            let response = service.request(Method::GET, &path).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.text().await.unwrap(), "begun\n");
        }
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_ends_jobs() {
    let home = home();
    let service = Service::start(&home).await;
    let long = Long::new(14);
    begin(&service, &long.command).await;
    long.until(3).await;
    service.signal("TERM");
    end(service).await;
    assert_eq!(long.processes(), 0);
    let left: Vec<_> = fs::read_dir(home.path().join(DIRECTORY)).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

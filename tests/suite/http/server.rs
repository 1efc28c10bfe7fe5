//! A service that shuts down: which requests it finishes, refuses and cuts.

use std::time::Duration;

use agent_runtime::run::process;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::service::Service;

#[tokio::test]
async fn a_service_that_shuts_down_takes_no_runs() {
    let service = Service::start().await;
    process::shut_down(&service.app.runs, Duration::ZERO).await;
    let answer = service.post("/v1/runs", &json!({"input": "hi"})).await;
    answer.assert_problem("shutting_down");
    assert_ne!(answer.header("retry-after"), "");
    service.finish().await;
}

#[tokio::test]
async fn shutting_down_lets_requests_end_and_takes_no_more() {
    let service = Service::start().await;
    let body = json!({"input": "hi", "model": "mock/gated"});
    let open = async {
        service.gate.until_waiting(1).await;
        service.stop();
        service.gate.open(1);
    };
    let (answer, ()) = tokio::join!(service.post("/v1/runs", &body), open);
    assert_eq!(answer.ok()["output_text"], "echo: hi");
    let address = service.address;
    service.until_stopped().await;
    assert!(TcpStream::connect(address).await.is_err());
    service.finish().await;
}

#[tokio::test]
async fn a_connection_that_outlasts_the_grace_period_is_cut() {
    let service = Service::start().await;
    let body = json!({"input": "hi", "model": "mock/gated"});
    let mut stream = service.open_run(&body).await;
    service.gate.until_waiting(1).await;
    service.stop();
    service.until_stopped().await;
    // Its run ends as that of any lost connection does.
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"");
    service.until_counts((0, 1)).await;
    service.finish().await;
}

//! The run that answers the calls of another one links to it, also if another worker takes it over.

use opentelemetry_proto::tonic::trace::v1::Span;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until_found;

use super::{Collector, attribute};
use crate::end_to_end::waiting::answer_to;
use crate::process::binary::Home;
use crate::process::service::Service;
use crate::support::mock_model::{MockModel, Reply, new_results};
use crate::support::test_app::run_path;

/// Waits for the span of a run's agent.
async fn agent_of(collector: &Collector, run: &Value) -> Span {
    until_found("no span of the run comes", async || {
        let is_of_run = |span: &Span| {
            span.name.starts_with("invoke_agent") && attribute(span, "agent_runtime.run.id") == run["run_id"]
        };
        collector.all().into_iter().find(is_of_run)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_links_to_the_run_that_waited_also_after_a_takeover() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let (collector, gate) = (Collector::start().await, Gate::new());
    let held = gate.clone();
    let mock = MockModel::start(move |request| match new_results(request).as_slice() {
        [] => Reply::call("c1", "ask", &json!({})),
        _ => Reply::Held(held.clone(), "done".to_owned()),
    })
    .await;
    let home = Home::new(database.url())
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "10m")
        .variable("AGENT_RUNTIME__QUEUE__POLL_INTERVAL", "50ms")
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    home.write(
        "config/agents/asker.toml",
        "name = 'asker'\nmodel = 'mock/m'\ndurability = 'step'\n[[client_tools]]\nname = 'ask'\n",
    );
    let mut service = Service::start(&home).await;
    for is_taken_over in [false, true] {
        let body = json!({"agent": "asker", "input": "work"});
        let waiting = service.post("/v1/runs", body).await;
        assert_eq!(waiting["status"], "waiting", "{waiting:#}");
        let asked = agent_of(&collector, &waiting).await;
        let answers = json!({"mode": "async", "answers": [answer_to(&waiting, "c1", json!({"result": "yes"}))]});
        let path = run_path(&waiting, "/answers");
        let answering = service.ok(Method::POST, &path, Some(answers)).await;
        gate.until_waiting(1).await;
        if is_taken_over {
            service.kill();
            let expire = "update run_queue set leased_until = enqueued_at where leased_until is not null";
            database.execute(expire).await.unwrap();
            service = Service::start(&home).await;
            gate.until_waiting(1).await;
        }
        gate.open(1);
        let ended = service.ended(&answering).await;
        assert_eq!(ended["status"], "completed", "{ended:#}");
        assert_eq!(ended["attempts"], if is_taken_over { 2 } else { 1 });

        let answered = agent_of(&collector, &ended).await;
        assert!(asked.links.is_empty(), "{asked:?}");
        let links: Vec<_> = answered
            .links
            .iter()
            .map(|link| (&link.trace_id, &link.span_id))
            .collect();
        assert_eq!(links, [(&asked.trace_id, &asked.span_id)]);
        assert_ne!(answered.trace_id, asked.trace_id);
    }
    service.stop().await;
}

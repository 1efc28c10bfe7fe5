//! Retries and fallbacks of requests to models.

use serde_json::{Value, json};

use super::{Collector, attribute, hex, value_of};
use crate::process::binary::Home;
use crate::process::service::Service;
use crate::support::mock_model::{MockModel, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_are_events_with_their_reasons_and_a_fallback_has_a_span_of_its_own() {
    let collector = Collector::start().await;
    let busy = MockModel::start(|_| Reply::Status(429, "{}".to_owned())).await;
    let spare = MockModel::start(|_| Reply::text("done")).await;
    let home = Home::with_file().variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    let provider = |name, mock: &MockModel| {
        format!(
            "[providers.{name}]\nkind = 'openai_chat'\nbase_url = '{}'\n",
            mock.base_url()
        )
    };
    let models = "[models]\nmax_retries = 2\nretry_base_delay = '10ms'\n";
    let (busy_provider, spare_provider) = (provider("busy", &busy), provider("spare", &spare));
    home.write(
        "agent-runtime.toml",
        &format!("{models}{busy_provider}{spare_provider}"),
    );
    home.write(
        "config/agents/two.toml",
        "name = 'two'\nmodels = ['busy/first', 'spare/second']\n",
    );
    let service = Service::start(&home).await;
    let run = service.run("two", None, "work").await;
    let spans = collector.until("invoke_agent two").await;

    let (first, second) = (&spans["chat first"], &spans["chat second"]);
    for chat in [first, second] {
        assert_eq!(chat.parent_span_id, spans["invoke_agent two"].span_id);
    }
    assert_eq!(attribute(first, "error.type"), "model_rate_limited");
    assert_eq!(attribute(first, "agent_runtime.attempts"), 3);
    assert_eq!(first.events.len(), 2, "{first:?}");
    for event in &first.events {
        assert_eq!(event.name, "retry");
        assert_eq!(value_of(&event.attributes, "error.type"), "rate_limit");
        let within = first.start_time_unix_nano..=first.end_time_unix_nano;
        assert!(within.contains(&event.time_unix_nano), "{first:?}");
    }
    assert_eq!(attribute(second, "error.type"), Value::Null);
    assert_eq!(attribute(second, "agent_runtime.attempts"), 1);
    assert!(second.events.is_empty(), "{second:?}");
    assert_ne!(hex(&first.span_id), hex(&second.span_id));

    // Readers get the same retries.
    let mut events = service.follow(&run, 0).await;
    let responded = events.until("model.responded").await;
    let retries = responded["data"]["retries"].as_array().unwrap();
    let reasons: Vec<_> = retries.iter().map(|retry| &retry["reason"]).collect();
    assert_eq!(reasons, [&json!("rate_limit"), &json!("rate_limit")]);
    service.stop().await;
}

//! What runs have reserved when their process is killed.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};

on_every_store!(what_a_killed_process_has_reserved_is_given_back);

/// Kills the service while a light and a queued run wait for their models. The queued run goes on
/// at the next process. What the light one has reserved expires.
async fn what_a_killed_process_has_reserved_is_given_back(database: TestDatabase) {
    let mock = MockModel::start(|request| match last_user_text(request).as_str() {
        "go" => Reply::text("done"),
        _ => Reply::Slow(vec!["never".to_owned()], Duration::from_mins(10)),
    })
    .await;
    let home = Home::new(database.url())
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__LIMITS__EACH_TENANT__MAX_COST_PER_DAY", "1000.0")
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "3s");
    let provider = format!(
        "[providers.mock]\nkind = 'openai_chat'\nbase_url = '{}'\n",
        mock.base_url()
    );
    home.write(
        "agent-runtime.toml",
        &format!("{provider}[prices.'mock/m']\ninput = 1000.0\noutput = 2000.0\n"),
    );
    let service = Service::start(&home).await;
    service.post("/v1/runs", json!({"agent": "echo", "input": "go"})).await;
    let limit = async |service: &Service| service.get("/v1/spend").await["limits"][0].clone();
    assert_members!(limit(&service).await, {"spent": 0.02, "reserved": 0.0});
    let _stream = service.stream(json!({"agent": "echo", "input": "light"})).await;
    let queued = service.begin("echo", "queued").await;
    until("both models are asked", async || mock.asked() == 3).await;
    assert!(limit(&service).await["reserved"].as_f64().unwrap() > 0.0);
    service.kill();

    let expired = match database.engine {
        test_support::databases::Engine::Postgres => "now()",
        test_support::databases::Engine::Sqlite => "1",
    };
    database
        .execute(&format!("update spend_reservations set expires_at = {expired}"))
        .await
        .unwrap();
    let service = Service::start(&home).await;
    service.control(&queued, "cancel").await;
    let ended: Value = service.ended(&queued).await;
    assert_members!(ended, {"status": "cancelled"});
    until("what was reserved is given back", async || {
        limit(&service).await["reserved"] == 0.0
    })
    .await;
    let records = database
        .number("select cast(sum(coalesce(cost, cost_known_part)) * 1000000 as bigint) from runs")
        .await;
    let spent = database
        .number("select cast(sum(spent) as bigint) from spend_periods")
        .await;
    assert_eq!(spent, records);
    service.stop().await;
}

//! Usage and events of runs are persisted while the runs work, also beside busy runs of other
//! tenants.

use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::json;
use store::keys::Scope;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::processors::HeldProcessors;
use test_support::wait::until;

use super::world::World;
use crate::end_to_end::on_every_store;
use crate::support::answer::{read, with_json};
use crate::support::mock_model::{Reply, last_user_text, tool_results};

on_every_store!(a_tenant_whose_events_wait_for_processors_delays_no_other);

async fn a_tenant_whose_events_wait_for_processors_delays_no_other(database: TestDatabase) {
    /// More than the runs of a tenant that are persisted at a time.
    const BUSY: usize = 20;
    const QUIET_STEPS: i64 = 3;
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let world = World::new(database, move |request| {
        if last_user_text(request) == "busy" {
            // The text is streamed, so its events are many, and together large.
            return Reply::HeldAtEnd(Arc::clone(&behind), vec!["word ".repeat(1_000); 80]);
        }
        if tool_results(request).len() < usize::try_from(QUIET_STEPS).unwrap() {
            Reply::call("c", "again", &json!({"note": "n"}))
        } else {
            Reply::text("done")
        }
    })
    .await;
    let replica = world.replica().await;
    let secret_of = async |tenant: &str| {
        let (_, secret) = replica.make_key(tenant, &[Scope::Admin]).await;
        let put = replica.request(Method::PUT, "/v1/agents/worker").bearer_auth(&secret);
        let agent = json!({"model": "mock/m", "tools": ["again"], "durability": "session"});
        read(with_json(put, &agent)).await.ok();
        secret
    };
    let (busy, quiet) = (secret_of("persists-much").await, secret_of("persists-little").await);
    let begin = async |secret: &str, input: &str| {
        let post = replica.request(Method::POST, "/v1/runs").bearer_auth(secret);
        let body = json!({"agent": "worker", "input": input, "mode": "async"});
        assert_eq!(read(with_json(post, &body)).await.status, StatusCode::ACCEPTED);
    };
    let held = HeldProcessors::of(&"persists-much".parse().unwrap()).await;
    for _ in 0..BUSY {
        begin(&busy, "busy").await;
    }
    gate.until_waiting(BUSY).await;
    begin(&quiet, "quiet").await;
    for step in 1..=QUIET_STEPS {
        world.tool_gate.until_waiting(1).await;
        until("what the other tenant's run has spent is not persisted", async || {
            let spent =
                "select cast(coalesce(sum(total_tokens), 0) as bigint) from runs where tenant = 'persists-little'";
            world.database.number(spent).await == 15 * step
        })
        .await;
        until("what the other tenant's run has emitted is not persisted", async || {
            let events = "select count(*) from run_events where tenant = 'persists-little'";
            world.database.number(events).await >= step
        })
        .await;
        world.tool_gate.open(1);
    }
    drop(held);
    gate.open(BUSY);
    until("the runs do not end", async || {
        world.database.number("select count(*) from run_queue").await == 0
    })
    .await;
    replica.finish().await;
}

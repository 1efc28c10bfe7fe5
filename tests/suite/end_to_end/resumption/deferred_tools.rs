//! Tools that a run has found before another process takes it over.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;

use super::world::World;
use crate::end_to_end::deferred_tools::offered;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::Reply;

on_every_store!(a_takeover_offers_the_tools_that_were_found);

async fn a_takeover_offers_the_tools_that_were_found(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| {
        match request["messages"].as_array().unwrap().len() {
            1 => Reply::call("c1", "search_tools", &json!({"query": "todo"})),
            3 => Reply::Held(Arc::clone(&gate), "unused".to_owned()),
            _ => Reply::text("unused"),
        }
    })
    .await;
    let first = world.replica().await;
    let tools = json!(["search_tools", "calculator", "todo"]);
    let agent =
        json!({"model": "mock/m", "tools": tools, "deferred_tools": ["todo", "calculator"], "durability": "step"});
    first.put_agent("worker", agent).await;
    let run = first.begin("go", json!({"agent": "worker"})).await;
    model_gate.until_waiting(1).await;
    let second = world.successor(first, &model_gate).await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 2});
    let requests = world.mock.requests();
    let names: Vec<_> = requests.iter().map(offered).collect();
    assert_eq!(
        names,
        [
            &["search_tools"][..],
            &["search_tools", "todo"],
            &["search_tools", "todo"]
        ]
    );
    second.finish().await;
}

//! Responses in the background: another replica takes one over, and a client cancels one.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;

use super::{World, model, play, sessions, url, with_agents};
use crate::end_to_end::on_every_store;
use crate::process::binary::Home;
use crate::process::service::Service;
use crate::support::members::column;

on_every_store!(a_response_survives_its_replica);

const SCRIPT: &str = "with_openai.py";

async fn a_response_survives_its_replica(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = with_agents(Home::new(database.url()), &mock);
    // Longer than a test machine stands still.
    let settings = ["--set", "queue.lease=12s"];
    let first = Service::start_with(&home, &settings).await;
    let Some(printed) = play(&home, SCRIPT, &["begin", &url(&first)]) else {
        return;
    };
    let begun = printed.lines().find(|line| line.starts_with('{'));
    let begun: Value = serde_json::from_str(begun.unwrap()).unwrap();
    gate.until_waiting(1).await;
    first.kill();
    gate.until_waiting(0).await;
    gate.open(1);

    let second = Service::start_with(&home, &settings).await;
    let (id, sequence) = (begun["id"].as_str().unwrap(), begun["sequence"].to_string());
    play(&home, SCRIPT, &["resume", &url(&second), id, &sequence]);
    assert_eq!(mock.asked(), 2);
    let expected = (None, "user: wait | assistant: almost done".to_owned());
    assert_eq!(sessions(&second).await, [expected]);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_cancelled() {
    for script in [SCRIPT, "with_openai.mjs"] {
        let world = World::start().await;
        if world.play(script, "cancel").is_none() {
            continue;
        }
        // The connection to the model ends with the run.
        world.gate.until_waiting(0).await;
        let runs = world.service.get("/v1/runs").await;
        assert_eq!(column(&runs["data"], "status"), [&json!("cancelled")]);
        assert_eq!(sessions(&world.service).await, []);
        world.service.stop().await;
    }
}

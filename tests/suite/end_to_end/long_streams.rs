//! Long and fast streams: every event arrives, in order, up to the terminal one.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(a_long_fast_answer_arrives_whole);

async fn a_long_fast_answer_arrives_whole(database: TestDatabase) {
    let pieces: Vec<String> = (0..12_000).map(|n| format!("{n} ")).collect();
    let whole = pieces.concat();
    let mock = MockModel::start(move |_| Reply::Text(pieces.clone())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let events = app.stream(json!({"agent": "echo", "input": "count"})).await;

    let numbers: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let said: String = events
        .iter()
        .filter(|event| event["type"] == "message.delta")
        .map(|event| event["data"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, whole);
    let last = events.last().unwrap();
    assert_members!(last, {"type": "run.completed", "data/output_text": whole});
    app.finish().await;
}

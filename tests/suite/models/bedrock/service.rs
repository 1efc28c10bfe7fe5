//! Runs of the service on Bedrock, and on another provider after it.

use serde_json::{Value, json};

use super::support::{delta, metadata, start, stop, stream_bytes, text_delta};
use crate::support::databases::TestDatabase;
use crate::support::mock_model::MockModel;
use crate::support::model_server::{Captured, ModelServer, Reply};
use crate::support::test_app::TestApp;

fn answer(events: &[Value], reason: &str) -> Reply {
    let events = [events, &[stop(reason), metadata()]].concat();
    Reply::new(200, "application/vnd.amazon.eventstream", stream_bytes(&events))
}

/// Signed reasoning goes back within a run and in the next turn; another provider is sent the words alone.
#[tokio::test]
async fn reasoning_goes_back_to_its_provider_and_to_no_other() {
    let reasoning = |signature: &str| {
        let piece = |piece: Value| delta(0, &json!({"reasoningContent": piece}));
        [piece(json!({"text": "Hm"})), piece(json!({"signature": signature}))]
    };
    let call = [
        start(1, &json!({"toolUse": {"toolUseId": "tooluse_1", "name": "calculator"}})),
        delta(1, &json!({"toolUse": {"input": "{\"expression\":\"17 * 23\"}"}})),
    ];
    let server = ModelServer::start(vec![
        answer(&[reasoning("S1+/="), call].concat(), "tool_use"),
        answer(&[&reasoning("S2+/=")[..], &[text_delta(1, "391")]].concat(), "end_turn"),
        answer(&[text_delta(0, "You are welcome.")], "end_turn"),
    ])
    .await;
    let mock = MockModel::echoing().await;
    let database = TestDatabase::sqlite();
    let base = server.url("");
    let settings = [
        ("providers.own.kind", "bedrock"),
        ("providers.own.base_url", base.as_str()),
        ("providers.own.aws.region", "eu-central-1"),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent(
        "thinker",
        json!({"model": "own/eu.anthropic.claude-x-v1:0", "system_prompt": "Be brief.", "tools": ["calculator"]}),
    )
    .await;

    let first = app
        .run_with(json!({"agent": "thinker", "input": "What is 17 * 23?"}))
        .await;
    assert_eq!(
        (&first["status"], &first["output_text"]),
        (&json!("completed"), &json!("391")),
        "{first:#}"
    );
    let second = json!({"agent": "thinker", "base_session_id": first["session_id"], "input": "Thanks!"});
    assert_eq!(app.run_with(second.clone()).await["status"], "completed");
    let mut elsewhere = second;
    elsewhere["model"] = json!("mock/gpt-5-mini");
    assert_eq!(app.run_with(elsewhere).await["status"], "completed");
    app.finish().await;

    let requests: Vec<Value> = server.captured().iter().map(Captured::json).collect();
    let asks = |text: &str| json!({"role": "user", "content": [{"text": text}]});
    let thought =
        |signature: &str| json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": signature}}});
    let called =
        json!({"toolUse": {"toolUseId": "tooluse_1", "name": "calculator", "input": {"expression": "17 * 23"}}});
    let result = json!({"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "391"}]}});
    let messages = [
        json!([asks("What is 17 * 23?")]),
        json!([
            asks("What is 17 * 23?"),
            {"role": "assistant", "content": [thought("S1+/="), called]},
            {"role": "user", "content": [result]},
        ]),
        json!([
            asks("What is 17 * 23?"),
            {"role": "assistant", "content": [thought("S2+/="), {"text": "391"}]},
            asks("Thanks!"),
        ]),
    ];
    for (request, messages) in requests.iter().zip(&messages) {
        assert_eq!(&request["messages"], messages);
        assert_eq!(
            request["system"],
            json!([{"text": "Be brief."}, {"cachePoint": {"type": "default"}}])
        );
    }
    assert_eq!(requests.len(), messages.len());
    let other = mock.requests().pop().unwrap();
    assert!(!other.to_string().contains("S2+"), "{other}");
}

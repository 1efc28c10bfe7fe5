//! Runs of the service on Bedrock, and on another provider after it.

use serde_json::{Value, json};
use test_support::bedrock_frames::{delta, metadata, start, stop, stream_bytes, text_delta};
use test_support::model_server::{ModelServer, Reply};

use super::converse;

fn answer(events: &[Value], reason: &str) -> Reply {
    let events = [events, &[stop(reason), metadata()]].concat();
    Reply::new(200, "application/vnd.amazon.eventstream", stream_bytes(&events))
}

/// Signed reasoning goes back within a run and in the next turn; another provider is sent the words
/// alone.
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
    let base = server.url("");
    let settings = [
        ("providers.own.kind", "bedrock"),
        ("providers.own.base_url", base.as_str()),
        ("providers.own.aws.region", "eu-central-1"),
    ];
    let asked = converse(&server, &settings, "own/eu.anthropic.claude-x-v1:0").await;
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
    for (request, messages) in asked.requests.iter().zip(&messages) {
        assert_eq!(&request["messages"], messages);
        assert_eq!(
            request["system"],
            json!([{"text": "Be brief."}, {"cachePoint": {"type": "default"}}])
        );
    }
    assert_eq!(asked.requests.len(), messages.len());
    assert!(!asked.elsewhere.to_string().contains("S2+"), "{}", asked.elsewhere);
}

//! Runs of the service on a provider that speaks Ollama's protocol, and on another one after it.

use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};

use super::converse;

/// A stream of one message.
fn answer(message: &Value) -> Reply {
    let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
    let lines = format!("{}\n{end}\n", json!({"message": message, "done": false}));
    Reply::new(200, "application/x-ndjson", lines)
}

/// Reasoning goes back to its model within a run; another provider is sent the words alone.
#[tokio::test]
async fn reasoning_goes_back_to_its_provider_and_to_no_other() {
    let call = json!({"id": "c1", "function": {"name": "calculator", "arguments": {"expression": "17 * 23"}}});
    let server = ModelServer::start(vec![
        answer(&json!({"thinking": "HIDDEN", "tool_calls": [call]})),
        answer(&json!({"thinking": "HIDDEN", "content": "391"})),
        answer(&json!({"content": "You are welcome."})),
    ])
    .await;
    let base = server.url("");
    let settings = [
        ("providers.own.kind", "ollama_chat"),
        ("providers.own.base_url", base.as_str()),
    ];
    let asked = converse(&server, &settings, "own/qwen3").await;
    let system = json!({"role": "system", "content": "Be brief."});
    let asks = |text: &str| json!({"role": "user", "content": text});
    let messages = [
        json!([system, asks("What is 17 * 23?")]),
        json!([
            system,
            asks("What is 17 * 23?"),
            {"role": "assistant", "content": "", "thinking": "HIDDEN", "tool_calls": [call]},
            {"role": "tool", "content": "391", "tool_name": "calculator", "tool_call_id": "c1"},
        ]),
        json!([
            system,
            asks("What is 17 * 23?"),
            {"role": "assistant", "content": "391", "thinking": "HIDDEN"},
            asks("Thanks!"),
        ]),
    ];
    for (request, messages) in asked.requests.iter().zip(&messages) {
        assert_eq!(&request["messages"], messages);
    }
    assert_eq!(asked.requests.len(), messages.len());
    assert!(!asked.elsewhere.to_string().contains("HIDDEN"), "{}", asked.elsewhere);
}

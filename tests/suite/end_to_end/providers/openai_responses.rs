//! Runs of the service on a provider that speaks responses.

use serde_json::{Value, json};
use test_support::model_server::{ModelServer, Reply};

use super::converse;

fn thought(n: u32) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{n}"), "encrypted_content": format!("E{n}+/="), "summary": []})
}

fn answer(output: &[Value]) -> Reply {
    let response = json!({"object": "response", "id": "resp", "model": "m", "status": "completed", "output": output,
                          "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}});
    Reply::events(format!(
        "data: {}\n\n",
        json!({"type": "response.completed", "response": response})
    ))
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn asks(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// Reasoning goes back with its call within a run, and with its answer in the next turn; all of it
/// is stored in between.
#[tokio::test]
async fn reasoning_goes_back_within_a_run_and_in_the_next_turn() {
    let call = json!({"type": "function_call", "call_id": "c1", "name": "calculator", "arguments": "{\"expression\": \"17 * 23\"}"});
    let server = ModelServer::start(vec![
        answer(&[thought(1), call.clone()]),
        answer(&[thought(2), says("391")]),
        answer(&[thought(3), says("You are welcome.")]),
    ])
    .await;
    let base = server.url("/v1");
    let settings = [
        ("providers.own.kind", "openai_responses"),
        ("providers.own.base_url", base.as_str()),
    ];
    let asked = converse(&server, &settings, "own/o3").await;
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "391"});
    let question = asks("What is 17 * 23?");
    let inputs = [
        json!([question]),
        json!([question, thought(1), call, result]),
        json!([question, thought(2), says("391"), asks("Thanks!")]),
    ];
    for (request, input) in asked.requests.iter().zip(&inputs) {
        assert_eq!(&request["input"], input);
        assert_eq!(
            (&request["instructions"], &request["store"]),
            (&json!("Be brief."), &json!(false))
        );
    }
    assert_eq!(asked.requests.len(), inputs.len());
    assert!(!asked.elsewhere.to_string().contains("E2+"), "{}", asked.elsewhere);
}

//! Runs of the service on a provider that speaks Gemini's protocol, and on another one after it.

use serde_json::{Value, json};
use test_support::gemini_chunks::{last, stream_text};
use test_support::model_server::{ModelServer, Reply};

use super::converse;

fn answer(parts: &[Value]) -> Reply {
    Reply::events(stream_text(&[last(parts, "STOP")]))
}

/// Signatures go back with their parts within a run and in the next turn; another provider is sent
/// the words alone.
#[tokio::test]
async fn signatures_go_back_to_their_provider_and_to_no_other() {
    let call = json!({"functionCall": {"id": "c1", "name": "calculator", "args": {"expression": "17 * 23"}}, "thoughtSignature": "S1+/="});
    let final_part = json!({"text": "391", "thoughtSignature": "S2+/="});
    let server = ModelServer::start(vec![
        answer(&[json!({"text": "Hm", "thought": true}), call.clone()]),
        answer(std::slice::from_ref(&final_part)),
        answer(&[json!({"text": "You are welcome."})]),
    ])
    .await;
    let base = server.url("/v1beta");
    let settings = [
        ("providers.own.kind", "gemini"),
        ("providers.own.base_url", base.as_str()),
    ];
    let asked = converse(&server, &settings, "own/gemini-3-pro").await;
    let asks = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let result = json!({"functionResponse": {"id": "c1", "name": "calculator", "response": {"output": "391"}}});
    let contents = [
        json!([asks("What is 17 * 23?")]),
        json!([
            asks("What is 17 * 23?"),
            {"role": "model", "parts": [{"text": "Hm", "thought": true}, call]},
            {"role": "user", "parts": [result]},
        ]),
        json!([asks("What is 17 * 23?"), {"role": "model", "parts": [final_part]}, asks("Thanks!")]),
    ];
    for (request, contents) in asked.requests.iter().zip(&contents) {
        assert_eq!(&request["contents"], contents);
        assert_eq!(request["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    }
    assert_eq!(asked.requests.len(), contents.len());
    assert!(!asked.elsewhere.to_string().contains("S2+"), "{}", asked.elsewhere);
}

//! Runs of the service on a provider that speaks Gemini's protocol, and on another one after it.

use serde_json::{Value, json};

use super::support::{last, stream_text};
use crate::support::databases::TestDatabase;
use crate::support::mock_model::MockModel;
use crate::support::model_server::{Captured, ModelServer, Reply};
use crate::support::test_app::TestApp;

fn answer(parts: &[Value]) -> Reply {
    Reply::events(stream_text(&[last(parts, "STOP")]))
}

/// Signatures go back with their parts within a run and in the next turn; another provider is sent the words alone.
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
    let mock = MockModel::echoing().await;
    let database = TestDatabase::sqlite();
    let base = server.url("/v1beta");
    let settings = [
        ("providers.own.kind", "gemini"),
        ("providers.own.base_url", base.as_str()),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent(
        "thinker",
        json!({"model": "own/gemini-3-pro", "system_prompt": "Be brief.", "tools": ["calculator"]}),
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
    for (request, contents) in requests.iter().zip(&contents) {
        assert_eq!(&request["contents"], contents);
        assert_eq!(request["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    }
    assert_eq!(requests.len(), contents.len());
    let other = mock.requests().pop().unwrap();
    assert!(!other.to_string().contains("S2+"), "{other}");
}

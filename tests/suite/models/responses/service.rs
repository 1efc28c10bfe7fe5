//! Runs of the service on a provider that speaks responses.

use serde_json::{Value, json};

use crate::support::databases::TestDatabase;
use crate::support::mock_model::MockModel;
use crate::support::model_server::{Captured, ModelServer, Reply};
use crate::support::test_app::TestApp;

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

/// Reasoning goes back with its call within a run, and with its answer in the next turn; all of it is stored in between.
#[tokio::test]
async fn reasoning_goes_back_within_a_run_and_in_the_next_turn() {
    let call = json!({"type": "function_call", "call_id": "c1", "name": "calculator", "arguments": "{\"expression\": \"17 * 23\"}"});
    let server = ModelServer::start(vec![
        answer(&[thought(1), call.clone()]),
        answer(&[thought(2), says("391")]),
        answer(&[thought(3), says("You are welcome.")]),
    ])
    .await;
    let mock = MockModel::echoing().await;
    let database = TestDatabase::sqlite();
    let base = server.url("/v1");
    let settings = [
        ("providers.own.kind", "openai_responses"),
        ("providers.own.base_url", base.as_str()),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    app.put_agent(
        "thinker",
        json!({"model": "own/o3", "system_prompt": "Be brief.", "tools": ["calculator"]}),
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
    assert_eq!(app.run_with(second).await["status"], "completed");
    app.finish().await;

    let requests: Vec<Value> = server.captured().iter().map(Captured::json).collect();
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "391"});
    let question = asks("What is 17 * 23?");
    let inputs = [
        json!([question]),
        json!([question, thought(1), call, result]),
        json!([question, thought(2), says("391"), asks("Thanks!")]),
    ];
    for (request, input) in requests.iter().zip(&inputs) {
        assert_eq!(&request["input"], input);
        assert_eq!(
            (&request["instructions"], &request["store"]),
            (&json!("Be brief."), &json!(false))
        );
    }
    assert_eq!(requests.len(), inputs.len());
}

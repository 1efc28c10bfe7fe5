//! A conversation of the whole service with a provider, and with another one after it: what must go
//! back to the one stays with the one.

mod bedrock;
mod gemini;
mod openai_responses;

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::model_server::{Captured, ModelServer};

use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;

/// The requests that providers have received.
struct Asked {
    /// The requests to the provider.
    requests: Vec<Value>,
    /// The request to the other one.
    elsewhere: Value,
}

/// Asks the model of the provider `own` for 17 * 23, with a calculator, and thanks it; then another
/// provider is thanked in its place.
async fn converse(server: &ModelServer, provider: &[(&str, &str)], model: &str) -> Asked {
    let mock = MockModel::echoing().await;
    let database = TestDatabase::sqlite();
    let app = TestApp::start(database.url(), &mock, provider).await;
    app.put_agent(
        "thinker",
        json!({"model": model, "system_prompt": "Be brief.", "tools": ["calculator"]}),
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
    Asked {
        requests: server.captured().iter().map(Captured::json).collect(),
        elsewhere: mock.requests().pop().unwrap(),
    }
}

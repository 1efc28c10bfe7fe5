//! Answers in a shape, over HTTP: what each kind of provider is sent, and the value that callers
//! and stores keep.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::on_every_store;
use crate::support::hostile::endless_schemas;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::{TestApp, run_path};
use crate::support::text::assert_contains;

on_every_store!(
    the_value_is_in_the_result_and_in_the_store,
    a_response_that_never_fits_fails_with_the_pointer_and_the_reason,
    formats_of_the_agent_the_request_and_the_session_reach_the_model,
    formats_that_can_not_be_used_are_refused,
);

const ANSWER: &str = r#"{"celsius":21.5}"#;

fn weather() -> Value {
    let schema = json!({"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]});
    json!({"type": "json_schema", "name": "weather", "schema": schema, "strict": true})
}

/// The words of the system message of a request; none without one.
fn system(request: &Value) -> String {
    let first = &request["messages"][0];
    if first["role"] == "system" {
        content_text(&first["content"])
    } else {
        String::new()
    }
}

async fn the_value_is_in_the_result_and_in_the_store(database: TestDatabase) {
    for by in ["native", "tool", "prompt"] {
        let mock = MockModel::start(move |_| match by {
            "tool" => Reply::call("c1", "weather", &json!({"celsius": 21.5})),
            "prompt" => Reply::text(&format!("```json\n{ANSWER}\n```")),
            _ => Reply::text(ANSWER),
        });
        let mock = mock.await;
        let settings = [("providers.mock.structured_output", by)];
        let app = TestApp::start(database.url(), &mock, &settings).await;
        app.put_agent("forecast", json!({"model": "mock/m", "response_format": weather()}))
            .await;
        let result = app.run_with(json!({"agent": "forecast", "input": "go"})).await;
        assert_eq!(result["status"], "completed", "{by}: {result:#}");
        assert_eq!(result["output_value"], json!({"celsius": 21.5}), "{by}");
        let streamed = app.stream(json!({"agent": "forecast", "input": "go"})).await;
        let (last, words) = (streamed.last().unwrap(), |event: &Value| event["data"]["text"].clone());
        assert_members!(last, {"type": "run.completed", "data/output_value": result["output_value"]});
        let emitted: Vec<Value> = streamed
            .iter()
            .filter(|event| event["type"] == "message.delta")
            .map(words)
            .collect();
        assert_eq!(emitted, [result["output_text"].clone()], "{by}");

        let request = &mock.requests()[0];
        let (tools, format, system) = (&request["tools"], &request["response_format"], system(request));
        match by {
            "native" => {
                let mut strict = weather()["schema"].clone();
                strict["additionalProperties"] = json!(false);
                assert_eq!(format["json_schema"]["schema"], strict);
                assert_eq!((tools, system.as_str()), (&Value::Null, ""));
            }
            "tool" => {
                assert_eq!(
                    (&tools[0]["function"]["name"], format),
                    (&json!("weather"), &Value::Null)
                );
                assert_eq!(tools[0]["function"]["parameters"], weather()["schema"]);
                assert!(system.contains("calling the tool weather"), "{system}");
            }
            _ => {
                assert_eq!((tools, format), (&Value::Null, &Value::Null));
                assert!(system.ends_with(&weather()["schema"].to_string()), "{system}");
            }
        }
        let path = run_path(&result, "");
        app.until_stored(result["run_id"].as_str().unwrap()).await;
        app.finish().await;
        let restarted = TestApp::start(database.url(), &mock, &settings).await;
        assert_eq!(restarted.get(&path).await, result, "{by}");
        restarted.finish().await;
    }
}

async fn a_response_that_never_fits_fails_with_the_pointer_and_the_reason(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text(r#"{"celsius": "warm"}"#)).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent(
        "forecast",
        json!({"model": "mock/m", "response_format": weather(), "max_corrections": 1}),
    )
    .await;
    let result = app.run_with(json!({"agent": "forecast", "input": "go"})).await;
    assert_members!(result, {"status": "failed", "step_count": 2});
    assert_eq!(
        result["error"],
        json!({
            "code": "answer_invalid", "phase": "execute",
            "message": "the answer does not fit its shape: /celsius: \"warm\" is not of type \"number\"",
        })
    );
    assert_members!(result, {"output_value": null, "output_text": r#"{"celsius": "warm"}"#});
    let steps = app.get(&run_path(&result, "/steps")).await;
    let codes = steps["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["errors"][0]["code"]);
    assert_eq!(codes.collect::<Vec<_>>(), ["answer_invalid", "answer_invalid"]);
    app.finish().await;
}

async fn formats_of_the_agent_the_request_and_the_session_reach_the_model(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text(ANSWER)).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let object = json!({"type": "json_object"});
    let first = app
        .run_with(json!({"agent": "echo", "input": "go", "response_format": object}))
        .await;
    let continued = json!({"base_session_id": first["session_id"], "input": "go on"});
    let second = app.run_with(continued).await;
    app.put_agent("echo", json!({"model": "mock/m", "response_format": weather()}))
        .await;
    let third = app.run_with(json!({"agent": "echo", "input": "go"})).await;
    let overridden = json!({"agent": "echo", "input": "go", "response_format": {"type": "text"}});
    let fourth = app.run_with(overridden).await;
    let kinds: Vec<Value> = mock
        .requests()
        .iter()
        .map(|request| request["response_format"]["type"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            json!("json_object"),
            json!("json_object"),
            json!("json_schema"),
            Value::Null
        ]
    );
    let values = [first, second, third, fourth].map(|result| result["output_value"].clone());
    let value = json!({"celsius": 21.5});
    assert_eq!(values, [value.clone(), value.clone(), value, Value::Null]);
    app.finish().await;
}

async fn formats_that_can_not_be_used_are_refused(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let named = |name: &str, schema: Value| json!({"type": "json_schema", "name": name, "schema": schema});
    let unusable = [
        (named("a", json!({"type": "array"})), "must have"),
        (named("a", json!({"type": "object", "required": 1})), "not valid"),
        (named("a b", json!({"type": "object"})), "is named by"),
    ];
    let endless = endless_schemas().map(|(schema, words)| (named("a", schema), words));
    for (format, words) in unusable.into_iter().chain(endless) {
        let agent = json!({"model": "mock/m", "response_format": format});
        let hook = json!({"name": "context_config", "config": {"response_format": format}});
        let hooked = json!({"model": "mock/m", "hooks": [hook]});
        let run = json!({"agent": "echo", "input": "go", "response_format": format});
        let import = json!({"agent": "echo", "context_state": {"response_format": format}});
        for (answer, code) in [
            (app.put("/v1/agents/bad", &agent).await, "invalid_response_format"),
            (app.put("/v1/agents/bad", &hooked).await, "invalid_hook"),
            (app.post("/v1/runs", &run).await, "invalid_response_format"),
            (app.post("/v1/sessions", &import).await, "invalid_response_format"),
        ] {
            answer.assert_problem(code);
            assert_contains!(answer.json()["detail"].as_str().unwrap(), words);
        }
    }
    assert!(mock.requests().is_empty());
    app.finish().await;
}

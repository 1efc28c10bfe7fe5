//! A provider that refuses one part of a request: the run goes on without this part, and says so.

use agent_runtime::json::Value;
use serde_json::json;

use super::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(
    a_tool_whose_schema_is_refused_is_left_out_for_the_rest_of_the_run,
    every_tool_that_is_refused_is_left_out_and_a_chosen_one_is_not,
    pictures_that_are_refused_become_words,
    a_response_format_that_is_refused_moves_into_the_prompt,
    a_part_that_is_refused_again_ends_the_run
);

/// Returns the names of the tools of a request.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn refusal(message: &str, param: &str) -> Reply {
    let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": null});
    Reply::Status(400, json!({"error": error}).to_string())
}

/// Refuses the first tool whose name begins with `odd`. Otherwise calls the calculator once.
async fn refusing() -> MockModel {
    MockModel::start(|request| {
        let odd = offered(request).into_iter().position(|name| name.starts_with("odd"));
        if let Some(odd) = odd {
            return refusal(
                "Invalid schema: a keyword is not permitted.",
                &format!("tools[{odd}].function.parameters"),
            );
        }
        if request.to_string().contains("tool_call_id") {
            Reply::text("4")
        } else {
            Reply::call("c1", "calculator", &json!({"expression": "2+2"}))
        }
    })
    .await
}

fn with_tools(names: &[&str]) -> Value {
    let tools = names.iter().map(|name| json!({"name": name, "description": "Odd."}));
    json!({"model": "mock/m", "tools": ["calculator"], "client_tools": tools.collect::<Vec<_>>()})
}

async fn steps(app: &TestApp, run: &Value) -> Vec<Value> {
    let run_id = run["run_id"].as_str().unwrap();
    let steps = app.get(&format!("/v1/runs/{run_id}/steps")).await;
    steps["data"].as_array().unwrap().clone()
}

async fn a_tool_whose_schema_is_refused_is_left_out_for_the_rest_of_the_run(database: TestDatabase) {
    let mock = refusing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("a", with_tools(&["odd_one"])).await;
    let events = app.stream(json!({"agent": "a", "input": "go"})).await;
    let run = &events.last().unwrap()["data"];
    assert_eq!(
        (&run["status"], &run["output_text"], &run["step_count"]),
        (&json!("completed"), &json!("4"), &json!(2)),
        "{run:#}"
    );
    let offers: Vec<_> = mock.requests().iter().map(offered).collect();
    assert_eq!(
        offers,
        [vec!["calculator", "odd_one"], vec!["calculator"], vec!["calculator"]]
    );
    let responded = events.iter().filter(|event| event["type"] == "model.responded");
    let left_out: Vec<_> = responded.map(|event| event["data"]["left_out"].clone()).collect();
    assert_eq!(left_out, [json!(["tool odd_one"]), Value::Null, Value::Null]);
    let steps = steps(&app, run).await;
    assert_eq!(steps[0]["left_out"], json!(["tool odd_one"]));
    assert_eq!((&steps[0]["errors"], &steps[1]["left_out"]), (&json!([]), &Value::Null));
    app.finish().await;
}

async fn every_tool_that_is_refused_is_left_out_and_a_chosen_one_is_not(database: TestDatabase) {
    let mock = refusing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("a", with_tools(&["odd_a", "odd_b", "odd_c"])).await;
    let run = app.run_with(json!({"agent": "a", "input": "go"})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!(
        steps(&app, &run).await[0]["left_out"],
        json!(["tool odd_a", "tool odd_b", "tool odd_c"])
    );
    let mut chosen = with_tools(&["odd_a"]);
    chosen["parameters"] = json!({"tool_choice": {"tool": "odd_a"}});
    app.put_agent("a", chosen).await;
    let run = app.run_with(json!({"agent": "a", "input": "go"})).await;
    assert_eq!(run["error"]["code"], "model_request_refused", "{run:#}");
    app.finish().await;
}

async fn pictures_that_are_refused_become_words(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if request.to_string().contains("image_url") {
            refusal("This model does not support image input.", "messages[0].content[1]")
        } else {
            Reply::text("fine")
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let picture =
        json!({"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let input = json!([{"role": "user", "content": [{"type": "text", "text": "Look."}, picture]}]);
    let run = app.run_with(json!({"agent": "echo", "input": input})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let requests = mock.requests();
    assert_eq!(requests.len(), 2);
    let last = requests[1]["messages"].to_string();
    assert!(last.contains("a picture that you can't read"), "{last}");
    assert_eq!(steps(&app, &run).await[0]["left_out"], json!(["pictures"]));
    // The history retains the picture for models that can read it.
    let session = app
        .get(&format!("/v1/sessions/{}", run["session_id"].as_str().unwrap()))
        .await;
    assert!(session["message_history_state"].to_string().contains("iVBORw0KGgo="));
    app.finish().await;
}

async fn a_response_format_that_is_refused_moves_into_the_prompt(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if request.get("response_format").is_some() {
            refusal("Invalid schema for response_format 'n'", "response_format")
        } else {
            Reply::text("{\"n\": 3}")
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let format = json!({"type": "json_schema", "name": "n", "schema": schema});
    let run = app
        .run_with(json!({"agent": "echo", "input": "go", "response_format": format}))
        .await;
    assert_eq!(
        (&run["status"], &run["output_value"]),
        (&json!("completed"), &json!({"n": 3})),
        "{run:#}"
    );
    let system = mock.requests()[1]["messages"][0]["content"].to_string();
    assert!(system.contains("It fits this JSON Schema"), "{system}");
    assert_eq!(steps(&app, &run).await[0]["left_out"], json!(["response format"]));
    app.finish().await;
}

async fn a_part_that_is_refused_again_ends_the_run(database: TestDatabase) {
    let mock = MockModel::start(|_| refusal("Invalid schema for function 'odd'.", "tools"));
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("a", with_tools(&["odd"])).await;
    let run = app.run_with(json!({"agent": "a", "input": "go"})).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("model_request_refused"))
    );
    assert_eq!(mock.asked(), 2, "once more, without the tool");
    app.finish().await;
}

//! A provider that refuses one part of a request: the run goes on without this part, and says so.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(
    a_tool_whose_schema_is_refused_is_left_out_for_the_rest_of_the_run,
    every_tool_that_is_refused_is_left_out_and_a_chosen_one_is_not,
    pictures_that_are_refused_become_words,
    pictures_and_files_are_left_out_with_any_status,
    the_only_schema_of_a_request_needs_no_name,
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
    assert_members!(run, {"status": "completed", "output_text": "4", "step_count": 2});
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
    assert_members!(json!(steps), {"0/errors": [], "1/left_out": null});
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
    let session = app.get(&session_path(&run, "")).await;
    assert!(session["message_history_state"].to_string().contains("iVBORw0KGgo="));
    app.finish().await;
}

/// Refusals of a picture or of a file: the status, the words and the part.
const OF_CONTENT: [(u16, &str, &str); 8] = [
    (400, "At most 0 image(s) may be provided in one prompt.", "pictures"),
    (404, "No endpoints found that support image input", "pictures"),
    (
        500,
        "image input is not supported - you may need to provide the mmproj",
        "pictures",
    ),
    (500, "could not decode the image", "pictures"),
    (400, "Unknown part type: file", "documents"),
    (
        422,
        "unknown variant `file`, expected `text` or `image_url`",
        "documents",
    ),
    (404, "No endpoints found that support file input", "documents"),
    (500, "Unsupported content part: file", "documents"),
];

async fn pictures_and_files_are_left_out_with_any_status(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let messages = request["messages"].to_string();
        let mut cases = OF_CONTENT.iter().enumerate();
        let (_, (status, message, part)) = cases
            .find(|(number, _)| messages.contains(&format!("Case {number}.")))
            .unwrap();
        let name = if *part == "pictures" {
            "image_url"
        } else {
            "\"type\":\"file\""
        };
        if messages.contains(name) {
            Reply::Status(*status, json!({"error": {"message": message}}).to_string())
        } else {
            Reply::text("fine")
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let source = |media_type: &str, data: &str| json!({"kind": "base64", "media_type": media_type, "data": data});
    for (number, (status, message, part)) in OF_CONTENT.iter().enumerate() {
        let content = json!([
            {"type": "text", "text": format!("Case {number}.")},
            {"type": "image", "source": source("image/png", "iVBORw0KGgo=")},
            {"type": "document", "name": "a.pdf", "source": source("application/pdf", "JVBERi0=")},
        ]);
        let input = json!([{"role": "user", "content": content}]);
        let run = app.run_with(json!({"agent": "echo", "input": input})).await;
        assert_eq!(run["status"], "completed", "{status} {message}: {run:#}");
        assert_eq!(
            steps(&app, &run).await[0]["left_out"],
            json!([part]),
            "{status} {message}"
        );
    }
    assert_eq!(mock.asked(), 2 * OF_CONTENT.len());
    app.finish().await;
}

async fn the_only_schema_of_a_request_needs_no_name(database: TestDatabase) {
    let refusals = [
        "The provided JSON schema contains features not supported by xgrammar.",
        "Grammar error: Unimplemented keys: [\"uniqueItems\"]",
        "The specified schema produces a constraint that has too many states for serving.",
        "The compiled grammar is too large. Simplify your schema or reduce its size.",
    ];
    let mock = MockModel::start(move |request| {
        let messages = request["messages"].to_string();
        let number = (0..refusals.len()).find(|number| messages.contains(&format!("Case {number}.")));
        if request.get("response_format").is_some() {
            Reply::Status(
                400,
                json!({"error": {"message": refusals[number.unwrap()]}}).to_string(),
            )
        } else {
            Reply::text("{\"n\": 3}")
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let format = json!({"type": "json_schema", "name": "n", "schema": schema});
    for (number, message) in refusals.iter().enumerate() {
        let input = format!("Case {number}.");
        let run = app
            .run_with(json!({"agent": "echo", "input": input, "response_format": format}))
            .await;
        assert_eq!(run["output_value"], json!({"n": 3}), "{message}: {run:#}");
        assert_eq!(
            steps(&app, &run).await[0]["left_out"],
            json!(["response format"]),
            "{message}"
        );
    }
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
    assert_members!(run, {"status": "completed", "output_value": {"n": 3}});
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
    assert_members!(run, {"status": "failed", "error/code": "model_request_refused"});
    assert_eq!(mock.asked(), 2, "once more, without the tool");
    app.finish().await;
}

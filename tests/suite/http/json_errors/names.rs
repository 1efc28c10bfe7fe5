//! Fields that are wrong or unknown, and what may have been meant.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::answer::read;

/// Asserts that a problem has one error, at the pointer and with these words.
fn assert_names(problem: &Value, pointer: &str, words: &str) {
    let error = &problem["errors"][0];
    assert_eq!(error["pointer"], pointer, "{problem:#}");
    assert!(error["message"].as_str().unwrap().contains(words), "{problem:#}");
}

#[tokio::test]
async fn faults_of_runs_name_the_field_and_what_it_may_be() {
    let service = Service::start().await;
    let time = "not a time such as 2026-01-31T12:00:00Z (RFC 3339)";
    for (changes, pointer, words) in [
        (
            json!({"budget": {"max_cost": 0}}),
            "/budget/max_cost",
            "must be above 0",
        ),
        (json!({"budget": {"deadline": "tomorrow"}}), "/budget/deadline", time),
        (
            json!({"parameters": {"temperature": 9}}),
            "/parameters/temperature",
            "must be between 0 and 2",
        ),
        (
            json!({"parameters": {"top_p": 0}}),
            "/parameters/top_p",
            "must be above 0 and at most 1",
        ),
        (json!({"mode": 5}), "/mode", "expected one of the known names"),
    ] {
        let mut body = changes.clone();
        body["input"] = json!("hi");
        let answer = service.post("/v1/runs", &body).await;
        answer.assert_problem("invalid_field");
        assert_names(&answer.json(), pointer, words);
    }
    let answer = service.post("/v1/runs", &json!({"message": "hi"})).await;
    answer.assert_problem("unknown_field");
    assert_names(&answer.json(), "/message", "write `input` instead");
    let answer = service
        .post("/v1/agents", &json!({"name": "a", "model": "mock/echo"}))
        .await;
    answer.assert_problem("method_not_allowed");
    assert_eq!(
        answer.json()["detail"],
        "POST is not allowed here; the methods of this path are GET, HEAD; PUT /v1/agents/{name} stores an agent"
    );
    let answer = read(service.request(Method::DELETE, "/v1/agents/demo")).await;
    answer.assert_problem("agent_is_configured");
    assert!(answer.text().contains("is built in or defined in a configuration file"));
    let answer = service.try_get("/v1/sessions?prety").await;
    answer.assert_problem("unknown_parameter");
    assert_names(&answer.json(), "prety", "did you mean `pretty`?");
    service.finish().await;
}

#[tokio::test]
async fn faults_of_agents_name_the_field_and_what_it_may_be() {
    let service = Service::start().await;
    let presets = "expected one of `ignore_tool_errors`, `retry_tool_errors`, `stop_on_any_error`, `retry_all`";
    let elsewhere = json!([{"agent": "a", "tool": "t"}, {"agent": "b", "tool": "t"}]);
    for (changes, pointer, words) in [
        (
            json!({"budget": {"max_cost": 0}}),
            "/budget/max_cost",
            "must be above 0",
        ),
        (
            json!({"parameters": {"top_p": 2}}),
            "/parameters/top_p",
            "must be above 0",
        ),
        (json!({"error_policy": "retry"}), "/error_policy", presets),
        (
            json!({"error_policy": {"tool": "sulk"}}),
            "/error_policy/tool",
            "`stop`, `retry`, `ignore`",
        ),
        (
            json!({"error_policy": {"max_consecutive": 0}}),
            "/error_policy/max_consecutive",
            "must be at least 1",
        ),
        (json!({"driver": null}), "/driver", "expected one of the known names"),
        (
            json!({"tools": ["calculator"], "parameters": {"tool_choice": {"tool": "current_time"}}}),
            "/parameters/tool_choice",
            "neither one of the `tools` nor a subagent's",
        ),
        (json!({"subagents": elsewhere}), "/subagents", "another `tool`"),
    ] {
        let mut body = changes.clone();
        body["model"] = json!("mock/echo");
        let answer = service.put("/v1/agents/a", &body).await;
        answer.assert_problem("invalid_field");
        assert_names(&answer.json(), pointer, words);
    }
    service.finish().await;
}

#[tokio::test]
async fn null_is_as_if_a_field_of_a_run_were_absent() {
    let service = Service::start().await;
    let description = service.get("/openapi.json").await;
    let fields = description["components"]["schemas"]["CreateRun"]["properties"].clone();
    let mut body: Value = fields
        .as_object()
        .unwrap()
        .keys()
        .map(|field| (field.clone(), Value::Null))
        .collect::<serde_json::Map<_, _>>()
        .into();
    body["input"] = json!("hi");
    assert_eq!(service.run_with(body).await["output_text"], "echo: hi");
    service.finish().await;
}

#[tokio::test]
async fn a_name_that_is_nearly_right_is_suggested() {
    let service = Service::start().await;
    let answer = service
        .post("/v1/runs", &json!({"input": "hi", "on_disconect": "cancel"}))
        .await;
    assert!(
        answer.json()["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `on_disconnect`?"),
        "{}",
        answer.text()
    );
    let answer = service.try_get("/v1/runs?stats=failed").await;
    assert!(
        answer.json()["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `status`?"),
        "{}",
        answer.text()
    );
    service.finish().await;
}

#[tokio::test]
async fn a_field_of_another_api_is_answered_with_the_one_to_use() {
    let service = Service::start().await;
    let schema = json!({"name": "city", "schema": {"type": "object"}, "strict": true});
    for (body, pointer, words) in [
        (
            json!({"input": "hi", "stream": true}),
            "/stream",
            "write `\"mode\": \"stream\"` instead",
        ),
        (
            json!({"messages": [{"role": "user", "content": "hi"}]}),
            "/messages",
            "write `input` instead",
        ),
        (
            json!({"input": "hi", "response_format": {"type": "json_schema", "json_schema": schema}}),
            "/response_format/json_schema",
            "write its `name`, `schema` and `strict` beside `type` instead",
        ),
    ] {
        let answer = service.post("/v1/runs", &body).await;
        answer.assert_problem("unknown_field");
        let problem = answer.json();
        assert_eq!(problem["errors"][0]["pointer"], pointer);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem:#}");
    }
    for (field, words) in [
        ("temperature", "write it into `parameters`"),
        ("max_tokens", "write `max_output_tokens` into `parameters`"),
        ("max_steps", "write it into `budget`"),
        ("background", r#"write `"mode": "async"` instead"#),
        ("previous_response_id", "write `base_session_id` instead"),
    ] {
        let answer = service.post("/v1/runs", &json!({"input": "hi", field: 1})).await;
        answer.assert_problem("unknown_field");
        assert!(answer.text().replace('\\', "").contains(words), "{}", answer.text());
    }
    let answer = service.post("/v1/sessions", &json!({"messages": []})).await;
    assert!(answer.text().contains("message_history_state"), "{}", answer.text());
    let answer = service.try_get("/v1/sessions?metadata.user.id=7").await;
    answer.assert_problem("invalid_parameter");
    let problem = answer.json();
    assert_eq!(problem["errors"][0]["pointer"], "metadata.user.id");
    let words = problem["detail"].as_str().unwrap();
    for instead in [r#"metadata={"user":{"id":"7"}}"#, r#"metadata={"user.id":"7"}"#] {
        assert!(words.contains(instead), "{words}");
    }
    service.finish().await;
}

/// Names of other APIs, in requests, in agents and as paths.
#[tokio::test]
async fn names_of_other_apis_are_explained() {
    let service = Service::start().await;
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {}}});
    for (changes, pointer, words) in [
        (
            json!({"max_tokens": 5}),
            "/max_tokens",
            "`max_output_tokens` into `parameters`",
        ),
        (
            json!({"max_completion_tokens": 5}),
            "/max_completion_tokens",
            "`max_output_tokens` into `parameters`",
        ),
        (
            json!({"parameters": {"max_tokens": 5}}),
            "/parameters/max_tokens",
            "write `max_output_tokens` instead",
        ),
        (json!({"temperature": 1}), "/temperature", "write it into `parameters`"),
        (json!({"tools": [tool]}), "/tools/0", "the `client_tools` of the agent"),
        (
            json!({"tools": ["a", {"name": "b"}]}),
            "/tools/1",
            "write the name of a tool",
        ),
    ] {
        let mut of_run = changes.clone();
        of_run["input"] = json!("hi");
        let mut of_agent = changes.clone();
        of_agent["model"] = json!("mock/echo");
        for answer in [
            service.post("/v1/runs", &of_run).await,
            service.put("/v1/agents/a", &of_agent).await,
        ] {
            assert_eq!(answer.status, 400, "{changes}");
            assert_names(&answer.json(), pointer, words);
        }
    }
    for (body, pointer, words) in [
        (
            json!({"answers": []}),
            "/answers",
            "answer each open call, or send `\"deny_open\": true`",
        ),
        (json!({}), "/input", "a text, or a list of messages"),
        (
            json!({"thread_id": "t", "input": "x"}),
            "/thread_id",
            "write `thread` instead",
        ),
    ] {
        let answer = service.post("/v1/runs", &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_names(&answer.json(), pointer, words);
    }
    for (path, words) in [
        ("/v1/threads", "POST /v1/runs with a `thread`"),
        ("/v1/sessions/x/messages", "POST /v1/runs with a `base_session_id`"),
    ] {
        let answer = service.post(path, &json!({})).await;
        answer.assert_problem("method_not_allowed");
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    for (path, words) in [
        ("/v1/chat/completions", "POST /v1/runs"),
        ("/v1/completions", "POST /v1/runs"),
        ("/v1/responses", "POST /v1/runs"),
        ("/v1/messages", "POST /v1/runs"),
        ("/v1/assistants", "PUT /v1/agents/{name}"),
        ("/v1/threads/t/runs/r/submit_tool_outputs", "/answers"),
        ("/v1/nothing", "no route has this path; GET /openapi.json lists all"),
    ] {
        let answer = service.post(path, &json!({})).await;
        answer.assert_problem("route_not_found");
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    service.finish().await;
}

const LIST: &str = "write a list of names, such as `\"tools\": [\"NAME\"]`";

#[tokio::test]
async fn a_wrong_agent_is_answered_with_what_to_write() {
    let service = Service::start().await;
    let function = json!({"type": "function", "function": {"name": "f"}});
    let of_runs = "requests for runs have `input` and `mode`";
    for (changes, pointer, words) in [
        (
            json!({"mcp": [{"url": "https://a.example/"}]}),
            "/mcp/0",
            "write the name of an MCP server",
        ),
        (json!({"tools": "shell"}), "/tools", LIST),
        (json!({"tools": {"shell": true}}), "/tools", LIST),
        (
            json!({"client_tools": [function]}),
            "/client_tools/0/",
            "a client tool has its `name`",
        ),
        (
            json!({"client_tools": [{"input_schema": {}}]}),
            "/client_tools/0/input_schema",
            "write `parameters` instead",
        ),
        (json!({"maxTokens": 5}), "/maxTokens", "write `max_output_tokens` into"),
        (json!({"prompt": "x"}), "/prompt", "write `system_prompt` instead"),
        (json!({"messages": []}), "/messages", of_runs),
        (json!({"stream": true}), "/stream", of_runs),
        (json!({"mode": "sync"}), "/mode", of_runs),
        (
            json!({"model_settings": {}}),
            "/model_settings",
            "write `parameters` instead",
        ),
    ] {
        let mut body = changes.clone();
        body["model"] = json!("mock/echo");
        let answer = service.put("/v1/agents/a", &body).await;
        assert_explains(&answer.json(), pointer, words);
    }
    service.finish().await;
}

#[tokio::test]
async fn a_wrong_run_is_answered_with_what_to_write() {
    let service = Service::start().await;
    let base = "write `base_session_id` instead";
    let of_agents = "the agent has them";
    for (changes, pointer, words) in [
        (json!({"tools": "shell"}), "/tools", LIST),
        (json!({"session": "x"}), "/session", base),
        (json!({"parent": "x"}), "/parent", base),
        (
            json!({"model_settings": {}}),
            "/model_settings",
            "write `parameters` instead",
        ),
        (
            json!({"idempotency_key": "x"}),
            "/idempotency_key",
            "send the header `Idempotency-Key`",
        ),
        (json!({"mcp": ["x"]}), "/mcp", of_agents),
        (json!({"client_tools": []}), "/client_tools", of_agents),
        (json!({"timeout": 5}), "/timeout", "write `max_seconds` into `budget`"),
        (json!({"maxSteps": 5}), "/maxSteps", "write it into `budget`"),
        (
            json!({"input": [{"type": "input_text", "text": "hi"}]}),
            "/input/0",
            "write `text` instead",
        ),
        (
            json!({"answers": [{"id": "c"}]}),
            "/answers/0/id",
            "write `call_id` instead",
        ),
        (
            json!({"answers": [{"approve": true}]}),
            "/answers/0/approve",
            "write `\"decision\": \"approve\"`",
        ),
    ] {
        let mut body = changes.clone();
        if body.get("input").is_none() {
            body["input"] = json!("hi");
        }
        let answer = service.post("/v1/runs", &body).await;
        assert_explains(&answer.json(), pointer, words);
    }
    service.finish().await;
}

/// Asserts that a problem has one error, whose pointer begins like this, with these words.
fn assert_explains(problem: &Value, pointer: &str, words: &str) {
    let error = &problem["errors"][0];
    assert!(error["pointer"].as_str().unwrap().starts_with(pointer), "{problem:#}");
    assert!(error["message"].as_str().unwrap().contains(words), "{problem:#}");
}

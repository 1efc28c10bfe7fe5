//! Fields that are wrong or unknown, and what may have been meant.

use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::extended;
use crate::support::table::rows;

/// Bodies of `POST /v1/runs`: the code, where it is known, the pointer, words of the problem, and
/// the body. A pointer with a star is the beginning of one.
const RUNS: &str = r#"
invalid_field | /budget/max_cost             | must be above 0                                 | {"input": "hi", "budget": {"max_cost": 0}}
invalid_field | /budget/deadline             | not a time such as 2026-01-31T12:00:00Z (RFC 3339) | {"input": "hi", "budget": {"deadline": "tomorrow"}}
invalid_field | /parameters/temperature      | must be between 0 and 2                         | {"input": "hi", "parameters": {"temperature": 9}}
invalid_field | /parameters/top_p            | must be between 0 and 1                         | {"input": "hi", "parameters": {"top_p": 2}}
invalid_field | /mode                        | expected one of the known names                 | {"input": "hi", "mode": 5}
unknown_field | /message                     | write `input` instead                           | {"message": "hi"}
unknown_field | /messages                    | write `input` instead                           | {"messages": [{"role": "user", "content": "hi"}]}
unknown_field | /stream                      | write `"mode": "stream"` instead                | {"input": "hi", "stream": true}
unknown_field | /response_format/json_schema | write its `name`, `schema` and `strict` beside `type` instead | {"input": "hi", "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "object"}, "strict": true}}}
unknown_field | /on_disconect                | did you mean `on_disconnect`?                   | {"input": "hi", "on_disconect": "cancel"}
unknown_field | /temperature                 | write it into `parameters`                      | {"input": "hi", "temperature": 1}
unknown_field | /max_tokens                  | write `max_output_tokens` into `parameters`     | {"input": "hi", "max_tokens": 1}
unknown_field | /max_steps                   | write it into `budget`                          | {"input": "hi", "max_steps": 1}
unknown_field | /background                  | write `"mode": "async"` instead                 | {"input": "hi", "background": 1}
unknown_field | /previous_response_id        | write `base_session_id` instead                 | {"input": "hi", "previous_response_id": 1}
              | /answers                     | answer each open call, or send `"deny_open": true` | {"answers": []}
              | /input                       | a text, or a list of messages                   | {}
              | /thread_id                   | write `thread` instead                          | {"thread_id": "t", "input": "x"}
              | /tools*                      | write a list of names, such as `"tools": ["NAME"]` | {"input": "hi", "tools": "shell"}
              | /session*                    | write `base_session_id` instead                 | {"input": "hi", "session": "x"}
              | /parent*                     | write `base_session_id` instead                 | {"input": "hi", "parent": "x"}
              | /model_settings*             | write `parameters` instead                      | {"input": "hi", "model_settings": {}}
              | /idempotency_key*            | send the header `Idempotency-Key`               | {"input": "hi", "idempotency_key": "x"}
              | /mcp*                        | the agent has them                              | {"input": "hi", "mcp": ["x"]}
              | /client_tools/0/input_schema* | write `parameters` instead                     | {"input": "hi", "client_tools": [{"input_schema": {}}]}
              | /timeout*                    | write `max_seconds` into `budget`               | {"input": "hi", "timeout": 5}
              | /maxSteps*                   | write it into `budget`                          | {"input": "hi", "maxSteps": 5}
              | /input/0*                    | write `text` instead                            | {"input": [{"type": "input_text", "text": "hi"}]}
              | /answers/0/id*               | write `call_id` instead                         | {"input": "hi", "answers": [{"id": "c"}]}
              | /answers/0/approve*          | write `"decision": "approve"`                   | {"input": "hi", "answers": [{"approve": true}]}
"#;

/// The same for agents, which also have a model.
const AGENTS: &str = r#"
invalid_field | /budget/max_cost              | must be above 0                   | {"budget": {"max_cost": 0}}
invalid_field | /parameters/top_p             | must be between 0 and 1           | {"parameters": {"top_p": 2}}
invalid_field | /error_policy                 | expected one of `ignore_tool_errors`, `retry_tool_errors`, `stop_on_any_error`, `retry_all` | {"error_policy": "retry"}
invalid_field | /error_policy/tool            | `stop`, `retry`, `ignore`         | {"error_policy": {"tool": "sulk"}}
invalid_field | /error_policy/max_consecutive | must be at least 1                | {"error_policy": {"max_consecutive": 0}}
invalid_field | /driver                       | expected one of the known names   | {"driver": null}
invalid_field | /parameters/tool_choice       | neither one of the `tools` nor a subagent's | {"tools": ["calculator"], "parameters": {"tool_choice": {"tool": "current_time"}}}
invalid_field | /subagents                    | another `tool`                    | {"subagents": [{"agent": "a", "tool": "t"}, {"agent": "b", "tool": "t"}]}
              | /mcp/0*                       | write the name of an MCP server   | {"mcp": [{"url": "https://a.example/"}]}
              | /tools*                       | write a list of names, such as `"tools": ["NAME"]` | {"tools": "shell"}
              | /tools*                       | write a list of names, such as `"tools": ["NAME"]` | {"tools": {"shell": true}}
              | /client_tools/0/*             | a client tool has its `name`      | {"client_tools": [{"type": "function", "function": {"name": "f"}}]}
              | /client_tools/0/input_schema* | write `parameters` instead        | {"client_tools": [{"input_schema": {}}]}
              | /maxTokens*                   | write `max_output_tokens` into    | {"maxTokens": 5}
              | /prompt*                      | write `system_prompt` instead     | {"prompt": "x"}
              | /messages*                    | requests for runs have `input` and `mode` | {"messages": []}
              | /stream*                      | requests for runs have `input` and `mode` | {"stream": true}
              | /mode*                        | requests for runs have `input` and `mode` | {"mode": "sync"}
              | /model_settings*              | write `parameters` instead        | {"model_settings": {}}
"#;

/// The same for runs, which also have an input, and for agents.
const BOTH: &str = r#"
              | /max_tokens            | `max_output_tokens` into `parameters`  | {"max_tokens": 5}
              | /max_completion_tokens | `max_output_tokens` into `parameters`  | {"max_completion_tokens": 5}
              | /parameters/max_tokens | write `max_output_tokens` instead      | {"parameters": {"max_tokens": 5}}
              | /temperature           | write it into `parameters`             | {"temperature": 1}
              | /tools/0               | application executes belongs to `client_tools` | {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}
              | /tools/1               | write the name of a tool               | {"tools": ["a", {"name": "b"}]}
"#;

/// Requests without a body that matters: the code, words of the problem, and the request.
const PATHS: &str = r#"
method_not_allowed  | the methods of this path are GET, HEAD; PUT /v1/agents/{name} stores an agent | POST /v1/agents
method_not_allowed  | the methods of this path are GET, HEAD, PUT, PATCH, DELETE | POST /v1/threads/t
method_not_allowed  | POST /v1/runs with a `base_session_id`                 | POST /v1/sessions/x/messages
agent_is_configured | is built in or defined in a configuration file         | DELETE /v1/agents/demo
unknown_parameter   | did you mean `pretty`?                                 | GET /v1/sessions?prety
unknown_parameter   | did you mean `status`?                                 | GET /v1/runs?stats=failed
invalid_parameter   | metadata={"user":{"id":"7"}}                           | GET /v1/sessions?metadata.user.id=7
invalid_parameter   | metadata={"user.id":"7"}                               | GET /v1/sessions?metadata.user.id=7
route_not_found     | POST /v1/chat/completions                              | POST /completions
route_not_found     | POST /v1/runs                                          | POST /responses
route_not_found     | POST /v1/runs                                          | POST /v1/messages
route_not_found     | PUT /v1/agents/{name}                                  | POST /assistants
route_not_found     | /answers                                               | POST /v1/threads/t/runs/r/submit_tool_outputs
route_not_found     | no route has this path; GET /openapi.json lists all    | POST /v1/nothing
"#;

fn assert_explains(answer: &Answer, code: &str, pointer: &str, words: &str) {
    let problem = answer.json();
    assert_eq!(answer.status, 400, "{problem:#}");
    if !code.is_empty() {
        answer.assert_problem(code);
    }
    let error = &problem["errors"][0];
    match pointer.strip_suffix('*') {
        Some(begin) => assert!(error["pointer"].as_str().unwrap().starts_with(begin), "{problem:#}"),
        None => assert_eq!(error["pointer"], pointer, "{problem:#}"),
    }
    assert!(error["message"].as_str().unwrap().contains(words), "{problem:#}");
}

#[tokio::test]
async fn a_wrong_field_is_answered_with_what_to_write() {
    let service = Service::start().await;
    let agent = |body: &str| extended(json!({"model": "mock/echo"}), &serde_json::from_str(body).unwrap());
    for [code, pointer, words, body] in rows(RUNS) {
        let body = serde_json::from_str(body).unwrap();
        let answer = service.post("/v1/runs", &body).await;
        assert_explains(&answer, code, pointer, words);
    }
    for [code, pointer, words, body] in rows(AGENTS) {
        let answer = service.put("/v1/agents/a", &agent(body)).await;
        assert_explains(&answer, code, pointer, words);
    }
    for [code, pointer, words, body] in rows(BOTH) {
        let run = extended(json!({"input": "hi"}), &serde_json::from_str(body).unwrap());
        assert_explains(&service.post("/v1/runs", &run).await, code, pointer, words);
        let answer = service.put("/v1/agents/a", &agent(body)).await;
        assert_explains(&answer, code, pointer, words);
    }
    service.finish().await;
}

#[tokio::test]
async fn a_wrong_path_is_answered_with_the_one_to_use() {
    let service = Service::start().await;
    for [code, words, request] in rows(PATHS) {
        let (method, path) = request.split_once(' ').unwrap();
        let sent = service.request(method.parse().unwrap(), path);
        let is_post = method == "POST";
        let answer = read(if is_post { with_json(sent, &json!({})) } else { sent }).await;
        answer.assert_problem(code);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words), "{request}: {detail}");
    }
    let answer = service.post("/v1/sessions", &json!({"messages": []})).await;
    assert!(answer.text().contains("message_history_state"), "{}", answer.text());
    service.finish().await;
}

#[tokio::test]
async fn null_is_as_if_a_field_of_a_run_were_absent() {
    let service = Service::start().await;
    let description = service.get("/openapi.json").await;
    let fields = description["components"]["schemas"]["CreateRun"]["properties"].clone();
    let fields = fields.as_object().unwrap().keys();
    let nothing: Value = fields.map(|field| (field.clone(), Value::Null)).collect();
    let run = service.run_with(extended(nothing, &json!({"input": "hi"}))).await;
    assert_eq!(run["output_text"], "echo: hi");
    service.finish().await;
}

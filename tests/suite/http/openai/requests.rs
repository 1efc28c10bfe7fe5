//! Requests that are refused, and errors in OpenAI's form.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{FaceApp, assert_error, keyed, on_every_database, post_with};
use crate::support::answer::{read, with_json};
use crate::support::members::assert_members;
use crate::support::table::rows;
use store::keys::Scope;

/// The status, the code and the field of an error, and the fields of a request for a response that
/// has it.
const BAD: &str = r#"
400 | unsupported_parameter       | prompt                   | {"input": "hi", "prompt": {"id": "p"}}
400 | unsupported_parameter       | max_tool_calls           | {"input": "hi", "max_tool_calls": 2}
400 | unsupported_parameter       | top_logprobs             | {"input": "hi", "top_logprobs": 3}
400 | unsupported_parameter       | tools[0].type            | {"input": "hi", "tools": [{"type": "web_search"}]}
400 | unsupported_parameter       | tool_choice.type         | {"input": "hi", "tool_choice": {"type": "file_search"}}
400 | unsupported_parameter       | conversation             | {"input": "hi", "conversation": "c", "previous_response_id": "r"}
400 | unsupported_parameter       | background               | {"input": "hi", "background": true, "store": false}
400 | unsupported_parameter       | input[0].type            | {"input": [{"type": "computer_call"}]}
400 | unsupported_parameter       | input[0].content[0].type | {"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}
400 | invalid_type                | input                    | {"input": 1}
400 | invalid_type                | input[0]                 | {"input": ["hi"]}
400 | invalid_type                | input[0].type            | {"input": [{"type": 1}]}
400 | invalid_type                | input[0].role            | {"input": [{"role": 1, "content": "hi"}]}
400 | invalid_type                | input[0].content         | {"input": [{"role": "user", "content": 1}]}
400 | invalid_type                | input[0].content[0].text | {"input": [{"role": "user", "content": [{"type": "input_text", "text": 1}]}]}
400 | invalid_type                | input[0].call_id         | {"input": [{"type": "function_call", "call_id": 1, "name": "f"}]}
400 | invalid_type                | temperature              | {"input": "hi", "temperature": "hot"}
400 | invalid_type                | max_output_tokens        | {"input": "hi", "max_output_tokens": 1.5}
400 | invalid_type                | stream                   | {"input": "hi", "stream": "yes"}
400 | invalid_type                | conversation             | {"input": "hi", "conversation": 1}
400 | invalid_type                | conversation.id          | {"input": "hi", "conversation": {"id": 1}}
400 | invalid_type                | metadata.a               | {"input": "hi", "metadata": {"a": 1}}
400 | invalid_type                | reasoning.effort         | {"input": "hi", "reasoning": {"effort": 1}}
400 | invalid_type                | text.format.name         | {"input": "hi", "text": {"format": {"type": "json_schema", "name": 1}}}
400 | invalid_type                | tools                    | {"input": "hi", "tools": "look"}
400 | invalid_type                | tools[0]                 | {"input": "hi", "tools": ["look"]}
400 | invalid_type                | tools[0].name            | {"input": "hi", "tools": [{"type": "function", "name": 1}]}
400 | invalid_type                | tool_choice              | {"input": "hi", "tool_choice": 1}
400 | missing_required_parameter  | tools[0].type            | {"input": "hi", "tools": [{}]}
400 | missing_required_parameter  | tools[0].name            | {"input": "hi", "tools": [{"type": "function"}]}
400 | missing_required_parameter  | input[0].call_id         | {"input": [{"type": "function_call_output", "output": ""}]}
400 | missing_required_parameter  | input[0].content[0].image_url | {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}
400 | invalid_field               | input[0].role            | {"input": [{"role": "robot", "content": "hi"}]}
400 | invalid_field               | temperature              | {"input": "hi", "temperature": 3}
400 | invalid_field               | text.format.type         | {"input": "hi", "text": {"format": {"type": "xml"}}}
400 | invalid_field               | tools[0].name            | {"input": "hi", "tools": [{"type": "function", "name": "look"}]}
400 | invalid_field               | input[0].content[0].image_url | {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}
400 | invalid_response_format     | text.format.name         | {"input": "hi", "text": {"format": {"type": "json_schema", "name": "a b", "schema": {"type": "object"}}}}
400 | invalid_response_format     | text.format.schema       | {"input": "hi", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "array"}}}}
400 | invalid_answers             | input[0]                 | {"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}
400 | invalid_field               | input[0]                 | {"input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}
404 | model_not_found             | model                    | {"input": "hi", "model": "nobody"}
404 | model_not_found             | model                    | {"input": "hi", "model": "nobody/m"}
400 | previous_response_not_found | previous_response_id     | {"input": "hi", "previous_response_id": "x"}
400 | previous_response_not_found | previous_response_id     | {"input": "hi", "previous_response_id": "resp_0197f3c21b1e7c3a9d543f1f0a6f8c11"}
404 | thread_not_found            | conversation             | {"input": "hi", "conversation": "nobody"}
404 | run_not_found               | input[0].id              | {"input": [{"type": "item_reference", "id": "msg_0197f3c21b1e7c3a9d543f1f0a6f8c110"}]}
404 | run_not_found               | input[0].id              | {"input": [{"id": "x"}]}
"#;

/// The code and the field of an error, and the fields of a request for a completion that has it.
const BAD_CHATS: &str = r#"
invalid_type               | messages                         | {"messages": "hi"}
invalid_type               | messages[0].content              | {"messages": [{"role": "user", "content": 1}]}
invalid_type               | stop                             | {"messages": [], "stop": 1}
invalid_type               | stop[0]                          | {"messages": [], "stop": [1]}
invalid_type               | response_format.json_schema.name | {"messages": [], "response_format": {"type": "json_schema", "json_schema": {"name": 1}}}
missing_required_parameter | response_format.type             | {"messages": [], "response_format": {}}
invalid_field              | response_format.type             | {"messages": [], "response_format": {"type": "xml"}}
invalid_field              | max_completion_tokens            | {"messages": [], "max_completion_tokens": 0}
invalid_field              | max_tokens                       | {"messages": [], "max_tokens": 0}
invalid_field              | tools[0].function.name           | {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": {"name": "look"}}]}
invalid_field              | messages[0].content[0].image_url.url | {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}
invalid_response_format    | response_format.json_schema.schema | {"messages": [{"role": "user", "content": "hi"}], "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "array"}}}}
"#;

on_every_database! {
    bad_requests_name_the_field,
    a_request_may_not_repeat_too_much,
    routes_of_openai_that_are_not_served_have_the_form,
    a_key_belongs_to_one_thread,
    every_error_below_these_paths_has_the_form,
    any_bearer_is_accepted_while_no_key_exists,
    unknown_fields_and_fields_without_effect_are_accepted,
    unsupported_tools_can_be_dropped,
    a_failed_run_is_an_error_that_names_its_response,
    a_response_with_cut_json_is_not_continued,
}

async fn bad_requests_name_the_field(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    for [status, code, param, body] in rows(BAD) {
        let answer = app.respond(&serde_json::from_str(body).unwrap()).await;
        assert_error(&answer, status.parse().unwrap(), code, &json!(param));
    }
    for [code, param, body] in rows(BAD_CHATS) {
        let answer = app.complete(&serde_json::from_str(body).unwrap()).await;
        assert_error(&answer, 400, code, &json!(param));
    }
    let answer = app.post("/v1/responses", &json!({"input": "hi"})).await;
    assert_error(&answer, 400, "missing_required_parameter", &json!("model"));
    let answer = app.post("/v1/responses", &json!(["hi"])).await;
    assert_error(&answer, 400, "invalid_type", &Value::Null);
    assert_eq!(app.mock.asked(), 0);
    app.finish().await;
}

async fn a_request_may_not_repeat_too_much(database: TestDatabase) {
    let app = FaceApp::start_with(&database, &[("openai.unsupported_tools", "drop")]).await;
    let tools = json!([{"type": "web_search", "filler": "x".repeat(1 << 20)}]);
    let answer = app.respond(&json!({"input": "hi", "tools": tools})).await;
    assert_error(&answer, 400, "invalid_field", &json!("tools"));
    app.finish().await;
}

async fn routes_of_openai_that_are_not_served_have_the_form(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let served = "of OpenAI's API, the service has /v1/responses";
    for (method, path, status, code, words) in [
        (Method::POST, "/v1/embeddings", 404, "route_not_found", served),
        (Method::GET, "/v1/files/x/content", 404, "route_not_found", served),
        (Method::POST, "/v1/images/generations", 404, "route_not_found", served),
        (Method::GET, "/v1/chat/completions/x", 404, "route_not_found", served),
        (
            Method::POST,
            "/v1/completions",
            404,
            "route_not_found",
            "POST /v1/chat/completions",
        ),
        (
            Method::GET,
            "/v1/chat/completions",
            405,
            "method_not_allowed",
            "GET is not allowed here",
        ),
        (Method::POST, "/v1/responses/compact", 404, "route_not_found", served),
        (
            Method::POST,
            "/v1/responses/input_tokens",
            404,
            "route_not_found",
            served,
        ),
    ] {
        let answer = read(app.request(method, path)).await;
        assert_error(&answer, status, code, &Value::Null);
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{path}: {message}");
    }
    app.try_get("/v1/nothing").await.assert_problem("route_not_found");
    app.finish().await;
}

async fn a_key_belongs_to_one_thread(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let send = async |thread: &str| {
        let request = app.request(Method::POST, "/v1/chat/completions");
        let request = request.header("idempotency-key", "k").header("x-agent-thread", thread);
        let body = json!({"model": "own", "messages": [{"role": "user", "content": "hi"}]});
        read(with_json(request, &body)).await
    };
    send("ada").await.ok();
    assert_error(&send("bob").await, 400, "idempotency_key_reused", &Value::Null);
    assert_eq!(send("ada").await.header("idempotency-replayed"), "true");
    app.finish().await;
}

async fn every_error_below_these_paths_has_the_form(database: TestDatabase) {
    let app = FaceApp::start_with(&database, &[("http.max_body_bytes", "4096")]).await;
    let broken = app
        .request(Method::POST, "/v1/responses")
        .header("content-type", "application/json");
    assert_error(&read(broken.body("{")).await, 400, "malformed_json", &Value::Null);
    let plain = app.request(Method::POST, "/v1/responses").body("{}");
    assert_error(&read(plain).await, 415, "unsupported_media_type", &Value::Null);
    let answer = app.respond(&json!({"input": "x".repeat(5_000)})).await;
    assert_error(&answer, 413, "body_too_large", &Value::Null);
    assert!(answer.header("openai-processing-ms").parse::<u64>().is_ok());
    for (method, path, status, code) in [
        (Method::PUT, "/v1/responses", 405, "method_not_allowed"),
        (Method::GET, "/v1/responses/x/y", 404, "route_not_found"),
        (Method::GET, "/v1/responses/x", 404, "run_not_found"),
        (Method::GET, "/v1/models/nobody", 404, "model_not_found"),
    ] {
        let answer = read(app.request(method, path)).await;
        let param = if code == "model_not_found" {
            json!("model")
        } else {
            Value::Null
        };
        assert_error(&answer, status, code, &param);
    }
    let (_, secret) = app.make_key("acme", &[Scope::SessionsRead]).await;
    let answer = post_with(&app, &secret, "/v1/responses", &json!({"model": "own", "input": "hi"})).await;
    assert_error(&answer, 403, "missing_scope", &Value::Null);
    assert_eq!(answer.json()["error"]["type"], "permission_error");
    let answer = read(app.request(Method::GET, "/v1/models")).await;
    assert_error(&answer, 401, "invalid_api_key", &Value::Null);
    assert_eq!(answer.json()["error"]["type"], "authentication_error");
    app.finish().await;
}

async fn any_bearer_is_accepted_while_no_key_exists(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let body = json!({"model": "own", "input": "hi"});
    for secret in ["sk-anything", ""] {
        assert_eq!(
            post_with(&app, secret, "/v1/responses", &body).await.ok()["status"],
            "completed"
        );
    }
    // Not on the other routes, and not once there is a key.
    let answer = read(keyed(&app, "sk-anything", Method::GET, "/v1/runs")).await;
    answer.assert_problem("invalid_api_key");
    let (_, secret) = app.make_key("default", &[Scope::RunsWrite]).await;
    post_with(&app, &secret, "/v1/responses", &body).await.ok();
    let answer = post_with(&app, "sk-anything", "/v1/responses", &body).await;
    assert_error(&answer, 401, "invalid_api_key", &Value::Null);
    app.finish().await;
}

async fn unknown_fields_and_fields_without_effect_are_accepted(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let response = app
        .response(&json!({
            "input": [
                {"role": "system", "content": ""},
                {"role": "user", "content": [{"type": "input_text", "text": "hi", "unknown": 1}], "id": null},
            ],
            "client_metadata": {"a": [1]}, "top_logprobs": 0, "parallel_tool_calls": true, "presence_penalty": 0,
            "include": ["message.output_text.logprobs"], "text": {"verbosity": "low"}, "stream_options": {},
            "tools": [], "user": "u", "service_tier": "auto", "safety_identifier": "s", "prompt_cache_key": "k",
            "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}, "truncation": "auto",
            "reasoning": {"summary": "auto"},
        }))
        .await;
    assert_eq!(super::text(&response), "echo: hi");
    assert_members!(response, {
        "user": "u", "service_tier": "auto", "safety_identifier": "s", "prompt_cache_key": "k",
        "prompt_cache_retention": "24h", "truncation": "auto",
        "reasoning": {"effort": null, "summary": "auto"}, "top_logprobs": 0, "presence_penalty": 0.0,
        "text": {"verbosity": "low", "format": {"type": "text"}},
    });
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await, response);
    app.finish().await;
}

async fn unsupported_tools_can_be_dropped(database: TestDatabase) {
    let app = FaceApp::start_with(&database, &[("openai.unsupported_tools", "drop")]).await;
    let tools = json!([{"type": "web_search"}, {"type": "function", "name": "mine", "parameters": null}]);
    app.response(&json!({"input": "hi", "tools": tools})).await;
    let offered = app.last_request()["tools"].as_array().unwrap().clone();
    let names: Vec<_> = offered
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["look", "deploy", "mine"]);
    app.finish().await;
}

async fn a_failed_run_is_an_error_that_names_its_response(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let answer = app.respond(&json!({"input": "overloaded"})).await;
    assert_error(&answer, 429, "rate_limit_exceeded", &Value::Null);
    let id = answer.json()["error"]["response_id"].as_str().unwrap().to_owned();
    assert_eq!(
        (answer.header("x-response-id"), answer.header("x-should-retry")),
        (id.as_str(), "false")
    );
    let response = app.get(&format!("/v1/responses/{id}")).await;
    assert_eq!((&response["id"], &response["status"]), (&json!(id), &json!("failed")));
    // A failed response has nothing to continue.
    let answer = app.respond(&json!({"input": "hi", "previous_response_id": id})).await;
    assert_error(
        &answer,
        400,
        "previous_response_not_found",
        &json!("previous_response_id"),
    );
    // Chat Completions has no form for a failure but an error.
    let chat = json!({"model": "own", "messages": [{"role": "user", "content": "overloaded"}]});
    let answer = read(with_json(app.request(Method::POST, "/v1/chat/completions"), &chat)).await;
    assert_error(&answer, 429, "rate_limit_exceeded", &Value::Null);
    app.finish().await;
}

async fn a_response_with_cut_json_is_not_continued(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let format = json!({"format": {"type": "json_object"}});
    let cut = app.response(&json!({"input": "cut", "text": format})).await;
    assert_eq!(cut["status"], "incomplete", "{cut:#}");
    let answer = app
        .respond(&json!({"input": "go on", "previous_response_id": cut["id"]}))
        .await;
    assert_error(
        &answer,
        400,
        "previous_response_not_found",
        &json!("previous_response_id"),
    );
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("was cut before it was valid JSON"), "{message}");
    app.finish().await;
}

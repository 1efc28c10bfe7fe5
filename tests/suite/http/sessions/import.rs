//! Sessions that are made of given states, and imports that are refused.

use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::members::assert_members;
use crate::support::table::rows;
use crate::support::test_app::session_path;

on_every_store! {
    a_session_is_made_of_given_states_and_continued,
    an_import_that_would_lose_something_is_refused,
    bad_imports_are_refused,
    histories_that_no_model_accepts_are_refused,
}

async fn a_session_is_made_of_given_states_and_continued(service: &Service) {
    let first = service
        .run_with(json!({"input": "hi", "variables": {"city": "Bern"}}))
        .await;
    let shown = service.get(&session_path(&first, "")).await;
    let states = ["environment_state", "context_state", "message_history_state"];
    let body: Value = states
        .iter()
        .map(|state| ((*state).to_owned(), shown[*state].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let answer = service.post("/v1/sessions", &body).await;
    let location = answer.header("location").to_owned();
    assert_eq!(answer.status, 201);
    let made = answer.ok();
    assert_eq!(location, session_path(&made, ""));
    assert_members!(made, {"run_id": null, "parent_session_id": null, "agent": "demo"});
    assert_eq!(made["message_history_state"], shown["message_history_state"]);
    assert_eq!(made["environment_state"], shown["environment_state"]);
    assert_eq!(
        made["context_state"], shown["context_state"],
        "its times stay as they were"
    );
    assert_eq!(service.get(&location).await, made);
    let continued = service
        .run_with(json!({"input": "again", "base_session_id": made["session_id"]}))
        .await;
    assert_eq!(continued["output_text"], "echo: again");
    // A short form: ids and times are made, unknown keys are kept.
    let short = json!({"environment_state": {"theme": "dark"}, "message_history_state": {"messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]}});
    let made = service.post("/v1/sessions", &short).await.ok();
    assert_members!(made, {"message_count": 2, "environment_state/theme": "dark"});
}

/// Parts that nobody would read again: the code, the pointer and words of the problem, the author
/// and the part.
const LOST_PARTS: &str = r#"
unknown_field | /txt           | did you mean `text`?  | user      | {"type": "text", "txt": "hello"}
unknown_field | /x             | unknown field `x`     | user      | {"type": "text", "text": "hello", "x": 1}
missing_field | /type          | `type`                | user      | {"typ": "text", "text": "hello"}
missing_field | /text          | `text`                | user      | {"type": "text"}
invalid_field | /type          | invalid type          | user      | {"type": 5, "text": "a"}
invalid_field | /type          | did you mean `text`?  | user      | {"type": "txt", "text": "hello"}
invalid_field | /type          | did you mean `image`? | user      | {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}
unknown_field | /source/size   | `size`                | user      | {"type": "image", "source": {"kind": "url", "url": "https://a.example/a.png", "size": 1}}
invalid_field | /type          | `tool_call`           | user      | {"type": "tool_use", "id": "c", "name": "t", "input": {}}
unknown_field | /tool_use_id   | `call_id`             | user      | {"type": "tool_result", "tool_use_id": "c", "content": []}
invalid_field | /arguments     | expected a string     | assistant | {"type": "tool_call", "id": "c", "name": "t", "arguments": {}}
unknown_field | /content/0/txt | did you mean `text`?  | tool      | {"type": "tool_result", "call_id": "c", "name": "t", "content": [{"type": "text", "txt": "2"}]}
"#;

/// Keys that nobody would read again, with the pointer and words of the problem.
const LOST_KEYS: &str = r#"
/context_state/systemprompt  | did you mean `system_prompt`? | {"context_state": {"systemprompt": "x"}}
/context_state/metdata       | did you mean `metadata`?      | {"context_state": {"metdata": {"a": 1}}}
/environment_state/variabels | did you mean `variables`?     | {"environment_state": {"variabels": {"a": 1}}}
"#;

async fn an_import_that_would_lose_something_is_refused(service: &Service) {
    let parts = rows(LOST_PARTS).map(|[code, field, words, role, part]| {
        let part: Value = serde_json::from_str(part).unwrap();
        let hello = json!({"role": "user", "content": "hello"});
        let body = json!({"message_history_state": {"messages": [hello, {"role": role, "content": [part]}]}});
        let pointer = format!("/message_history_state/messages/1/content/0{field}");
        (body, code, pointer, words)
    });
    let states = rows(LOST_KEYS).map(|[pointer, words, body]| {
        let body = serde_json::from_str(body).unwrap();
        (body, "unknown_field", pointer.to_owned(), words)
    });
    for (body, code, pointer, words) in parts.chain(states) {
        let answer = service.post("/v1/sessions", &body).await;
        assert_eq!(answer.code(), code, "{body}: {}", answer.text());
        answer.assert_problem(code);
        let error = &answer.json()["errors"][0];
        assert_eq!(error["pointer"], pointer, "{error:#}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error:#}");
    }
    assert_eq!(service.get("/v1/sessions").await["data"], json!([]));
    // What a later version may have written comes back as it was sent.
    let content = json!([{"type": "text", "text": "hello"}, {"type": "hologram", "depth": 3}]);
    let body = json!({
        "environment_state": {"disks": {"a": 1}}, "context_state": {"moods": [1]},
        "message_history_state": {"messages": [{"role": "user", "content": content}]},
    });
    let made = service.post("/v1/sessions", &body).await.ok();
    assert_members!(made, {"environment_state/disks": {"a": 1}, "context_state/moods": [1]});
    assert_eq!(made["message_history_state"]["messages"][0]["content"], content);
}

/// The code of a problem, and a body that has it.
const BAD_IMPORTS: &str = r#"
missing_field   | {"message_history_state": {"messages": [{"role": "user"}]}}
unknown_field   | {"messages": []}
invalid_field   | {"context_state": {"created_at": "-0001-01-01T00:00:00Z"}}
invalid_field   | {"message_history_state": {"messages": [{"role": "user", "content": "x", "created_at": "+10000-01-01T00:00:00Z"}]}}
invalid_field   | {"agent": ".."}
agent_not_found | {"agent": "dmo"}
invalid_field   | {"context_state": {"execution_count": -1}}
unknown_model   | {"context_state": {"model": "mock/none"}}
invalid_field   | {"environment_state": {"variables": 1}}
invalid_history | {"message_history_state": {"messages": [{"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "t", "arguments": ""}]}]}}
"#;

async fn bad_imports_are_refused(service: &Service) {
    let large = [
        (
            json!({"context_state": {"system_prompt": format!("{{{{ a{} }}}}", ".b".repeat(10_000))}}),
            "invalid_prompt",
        ),
        (json!({"context_state": {"execution_count": u64::MAX}}), "invalid_field"),
        (
            json!({"context_state": {"execution_count": (1_u64 << 53) + 1}}),
            "invalid_field",
        ),
        (
            json!({"environment_state": {"variables": {"a": "x".repeat(263_000)}}}),
            "invalid_field",
        ),
        (
            json!({"message_history_state": {"messages": vec![json!({"role": "user", "content": "x"}); 20_001]}}),
            "too_many_messages",
        ),
    ];
    let small = rows(BAD_IMPORTS).map(|[code, body]| (serde_json::from_str(body).unwrap(), code));
    for (body, code) in large.into_iter().chain(small) {
        let answer = service.post("/v1/sessions", &body).await;
        assert_eq!(answer.code(), code, "{}", answer.text());
        answer.assert_problem(code);
    }
    service.assert_nothing_was_written().await;
}

/// Histories that no provider accepts, each with words of its fault.
async fn histories_that_no_model_accepts_are_refused(service: &Service) {
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "t", "arguments": "{}"}]});
    let result =
        json!({"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "t", "content": []}]});
    let with = |message: &Value, key: &str, value: Value| {
        let mut message = message.clone();
        message[key] = value;
        message
    };
    let hello = json!({"role": "user", "content": "hello"});
    let trace = json!({"is_trace": true});
    let table = [
        (json!([{"role": "user", "content": []}]), "has no content"),
        (json!([{"role": "user", "content": ""}]), "has no content"),
        (json!([{"role": "assistant", "content": []}]), "has no content"),
        (
            json!([with(&call, "role", json!("user")), result]),
            "only assistant messages",
        ),
        (
            json!([call, with(&result, "role", json!("user"))]),
            "only tool messages",
        ),
        (
            json!([call, {"role": "tool", "content": "2"}]),
            "something else than tool results",
        ),
        (json!([call, hello, result]), "has no result"),
        (json!([call, result, result]), "answers no open tool call"),
        (json!([with(&call, "tags", trace.clone()), result]), "`is_trace` tag"),
        (json!([call, with(&result, "tags", trace)]), "`is_trace` tag"),
        (
            json!([call, with(&result, "tags", json!({"section": "notes"}))]),
            "`section`",
        ),
    ];
    for (messages, words) in table {
        let body = json!({"message_history_state": {"messages": messages}});
        let answer = service.post("/v1/sessions", &body).await;
        assert!(answer.text().contains(words), "{messages}: {}", answer.text());
        answer.assert_problem("invalid_history");
    }
    service.assert_nothing_was_written().await;
}

//! Bodies of `POST /v1/runs` that are refused. Each gets its own problem and starts nothing.

use agent_runtime::run::process;
use reqwest::Method;
use serde_json::json;

use crate::http::refused::assert_refused;
use crate::http::service::Service;
use crate::support::table::rows;

on_every_store! {
    bad_bodies_of_runs_are_refused,
}

async fn bad_bodies_of_runs_are_refused(service: &Service) {
    for (code, pointer, body) in bad_runs() {
        let shown: String = body.chars().take(200).collect();
        let request = service.send_json(Method::POST, "/v1/runs", body);
        assert_refused(request, code, pointer, &shown).await;
    }
    service.assert_nothing_was_written().await;
    assert_eq!(process::active_runs(&service.app.runs), 0);
}

/// The code and the pointer of a problem, and a body of `POST /v1/runs` that has it.
const BAD_RUNS: &str = r#"
empty_body           |                            |
malformed_json       |                            | {
malformed_json       |                            | {"input": "hi",}
malformed_json       |                            | {"input": "hi"} x
malformed_json       |                            | {"input": "hi", "budget": {"max_seconds": 1e999}}
malformed_json       |                            | {"input": "\ud800"}
nul_character        | /input                     | {"input": "a\u0000b"}
nul_character        | /metadata/a/0              | {"input": "hi", "metadata": {"a": ["\u0000"]}}
nul_character        | /metadata/a�               | {"input": "hi", "metadata": {"a\u0000": 1}}
duplicate_key        | /input                     | {"input": "hi", "input": "ho"}
duplicate_key        | /metadata/a                | {"input": "hi", "metadata": {"a": 1, "a": 2}}
unknown_field        | /inputs                    | {"inputs": "hi"}
unknown_field        | /budget/max_step           | {"input": "hi", "budget": {"max_step": 3}}
unknown_field        | /input/0/txt               | {"input": [{"role": "user", "content": "hi", "txt": 1}]}
unknown_field        | /input/0/txt               | {"input": [{"type": "text", "txt": "hi"}]}
unknown_field        | /input/0/content/0/bold    | {"input": [{"role": "user", "content": [{"type": "text", "text": "a", "bold": true}]}]}
missing_field        | /input                     | {}
missing_field        | /input                     | {"input": null}
missing_field        | /input/0/content           | {"input": [{"role": "user"}]}
invalid_field        |                            | []
invalid_field        |                            | "hi"
invalid_field        | /input                     | {"input": 5}
invalid_field        | /input                     | {"input": ""}
invalid_field        | /input                     | {"input": []}
invalid_field        | /input/0                   | {"input": [5]}
invalid_field        | /input/0                   | {"input": [{"type": "tool_call", "id": "1", "name": "calculator", "arguments": "{}"}]}
invalid_field        | /input/0/role              | {"input": [{"role": "robot", "content": "hi"}]}
invalid_field        | /input/0/content           | {"input": [{"role": "user", "content": []}]}
invalid_field        | /input/0/content           | {"input": [{"role": "user", "content": {}}]}
invalid_field        | /input/0/content           | {"input": [{"role": "tool", "content": "42"}]}
invalid_field        | /input/0/name              | {"input": [{"role": "user", "name": "", "content": "hi"}]}
invalid_field        | /input/0/type              | {"input": [{"type": "video", "url": "x"}]}
invalid_field        | /input/0/source/url        | {"input": [{"type": "image", "source": {"kind": "url", "url": "file:///etc/passwd"}}]}
invalid_field        | /input/0/source/media_type | {"input": [{"type": "image", "source": {"kind": "base64", "media_type": "png", "data": "AAAA"}}]}
invalid_field        | /input/0/source/data       | {"input": [{"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "A"}}]}
invalid_field        | /mode                      | {"input": "hi", "mode": "batch"}
invalid_field        | /durability                | {"input": "hi", "durability": "disk"}
invalid_field        | /priority                  | {"input": "hi", "priority": 101}
invalid_field        | /priority                  | {"input": "hi", "priority": -101}
invalid_field        | /priority                  | {"input": "hi", "priority": 70000}
invalid_field        | /priority                  | {"input": "hi", "priority": 1.5}
invalid_field        | /priority                  | {"input": "hi", "priority": "high"}
invalid_field        | /thread                    | {"input": "hi", "thread": ""}
invalid_field        | /thread                    | {"input": "hi", "thread": "a b"}
invalid_field        | /thread                    | {"input": "hi", "thread": "."}
invalid_field        | /thread                    | {"input": "hi", "thread": ".."}
invalid_field        | /thread                    | {"input": "hi", "thread": "a/b"}
invalid_field        | /thread                    | {"input": "hi", "thread": "caf\u00e9"}
invalid_field        | /thread                    | {"input": "hi", "thread": 7}
invalid_field        | /thread                    | {"input": "hi", "thread": "t", "base_session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"}
invalid_field        | /if_busy                   | {"input": "hi", "thread": "t", "if_busy": "wait"}
invalid_field        | /if_busy                   | {"input": "hi", "if_busy": "queue"}
missing_field        | /webhook/url               | {"input": "hi", "webhook": {}}
invalid_field        | /webhook                   | {"input": "hi", "webhook": "https://a.example"}
invalid_field        | /webhook/url               | {"input": "hi", "webhook": {"url": "a.example"}}
invalid_field        | /webhook/url               | {"input": "hi", "webhook": {"url": "http://a.example/"}}
invalid_field        | /webhook/url               | {"input": "hi", "webhook": {"url": "https://user@a.example/"}}
invalid_field        | /webhook/url               | {"input": "hi", "webhook": {"url": "https://10.0.0.1/"}}
invalid_field        | /webhook/events/0          | {"input": "hi", "webhook": {"url": "https://a.example/", "events": ["run.started"]}}
invalid_field        | /webhook/secret            | {"input": "hi", "webhook": {"url": "https://a.example/", "secret": "none"}}
unknown_field        | /webhook/retries           | {"input": "hi", "webhook": {"url": "https://a.example/", "retries": 3}}
invalid_field        | /model                     | {"input": "hi", "model": "gpt"}
invalid_field        | /agent                     | {"input": "hi", "agent": "no spaces"}
invalid_field        | /agent                     | {"input": "hi", "agent": "."}
invalid_field        | /agent                     | {"input": "hi", "agent": ".."}
invalid_field        | /metadata/a/1              | {"input": "hi", "metadata": {"a": [1e30, 18446744073709551616]}}
invalid_field        | /variables/a               | {"input": "hi", "variables": {"a": -9223372036854775809}}
invalid_field        | /budget/deadline           | {"input": "hi", "budget": {"deadline": "-0001-01-01T00:00:00Z"}}
invalid_field        | /budget/deadline           | {"input": "hi", "budget": {"deadline": "9999-12-31T23:59:59-01:00"}}
invalid_field        | /budget/deadline           | {"input": "hi", "budget": {"deadline": "tomorrow"}}
invalid_field        | /conflict                  | {"input": "hi", "conflict": "merge"}
invalid_field        | /on_disconnect             | {"input": "hi", "on_disconnect": 1}
invalid_field        | /disconnect_grace_seconds  | {"input": "hi", "disconnect_grace_seconds": 5}
invalid_field        | /disconnect_grace_seconds  | {"input": "hi", "mode": "stream", "disconnect_grace_seconds": 0}
invalid_field        | /disconnect_grace_seconds  | {"input": "hi", "mode": "stream", "disconnect_grace_seconds": 3601}
invalid_field        | /metadata                  | {"input": "hi", "metadata": []}
invalid_field        | /response_format/type      | {"input": "hi", "response_format": {"type": "xml"}}
invalid_field        | /budget/max_steps          | {"input": "hi", "budget": {"max_steps": 0}}
invalid_field        | /budget/max_steps          | {"input": "hi", "budget": {"max_steps": -1}}
invalid_field        | /budget/max_steps          | {"input": "hi", "budget": {"max_steps": 1.5}}
invalid_field        | /budget/max_tokens         | {"input": "hi", "budget": {"max_tokens": 99999999999999999999}}
invalid_field        | /budget/max_seconds        | {"input": "hi", "budget": {"max_seconds": -0.5}}
invalid_field        | /budget/max_cost           | {"input": "hi", "budget": {"max_cost": -1}}
malformed_id         | /base_session_id           | {"input": "hi", "base_session_id": "42"}
session_not_found    |                            | {"input": "hi", "base_session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"}
agent_not_found      |                            | {"input": "hi", "agent": "dmo"}
unknown_model        |                            | {"input": "hi", "model": "nobody/gpt"}
unknown_model        |                            | {"input": "hi", "model": "mock/none"}
model_not_configured |                            | {"input": "hi", "model": "keyless/gpt"}
invalid_history      |                            | {"input": [{"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "calculator", "arguments": "{}"}]}]}
invalid_history      |                            | {"input": [{"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "calculator", "content": []}]}]}
"#;

/// The same with those that are too long to be written down.
pub(in crate::http) fn bad_runs() -> Vec<(&'static str, &'static str, String)> {
    let nested = |depth: usize| {
        format!(
            r#"{{"input": "hi", "metadata": {{"a": {}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let keys: serde_json::Map<_, _> = (0..65).map(|key| (key.to_string(), json!(0))).collect();
    let messages: Vec<_> = (0..1001).map(|_| json!({"role": "user", "content": "hi"})).collect();
    let listed = rows(BAD_RUNS).map(|[code, pointer, body]| (code, pointer, body.to_owned()));
    let mut all: Vec<_> = listed.collect();
    all.push(("json_too_deep", "", nested(63)));
    all.push(("json_too_deep", "", nested(100_000)));
    let small_objects = vec![r#"{"a":0}"#; 60_000].join(",");
    all.push((
        "json_too_large",
        "",
        format!(r#"{{"input": "hi", "variables": {{"a": [{small_objects}]}}}}"#),
    ));
    all.push((
        "invalid_field",
        "/metadata",
        json!({"input": "hi", "metadata": keys}).to_string(),
    ));
    all.push((
        "invalid_field",
        "/metadata",
        json!({"input": "hi", "metadata": {"a": "x".repeat(17_000)}}).to_string(),
    ));
    let variables: serde_json::Map<_, _> = (0..1025).map(|name| (name.to_string(), json!(0))).collect();
    for variables in [json!(variables), json!({"a": "x".repeat(263_000)})] {
        all.push((
            "invalid_field",
            "/variables",
            json!({"input": "hi", "variables": variables}).to_string(),
        ));
    }
    all.push(("too_many_messages", "/input", json!({"input": messages}).to_string()));
    all
}

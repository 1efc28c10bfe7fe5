//! Definitions of agents that are refused.

use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::hostile::endless_prompt;
use crate::support::table::rows;

on_every_store! {
    bad_definitions_are_refused,
    hooks_are_bounded_in_number_and_in_what_their_patterns_take,
}

/// The code of a problem, and the name and the definition of an agent that has it.
const BAD_AGENTS: &str = r#"
invalid_field           | a         | {}
invalid_field           | a         | {"model": "mock/echo", "models": ["mock/echo"]}
invalid_field           | a         | {"model": "mock/echo", "error_policy": {"tool": "sulk"}}
invalid_field           | a         | {"model": "mock/echo", "error_policy": {"max_consecutive": 0}}
invalid_field           | a         | {"model": "mock/echo", "parameters": {"temperature": 9}}
unknown_field           | a         | {"model": "mock/echo", "tool": []}
invalid_field           | a         | {"model": "mock/echo", "name": "b"}
invalid_field           | a%20b     | {"model": "mock/echo"}
invalid_field           | a%2Fb     | {"model": "mock/echo"}
invalid_field           | a         | {"model": "mock/echo", "budget": {"deadline": "-0001-01-01T00:00:00Z"}}
invalid_field           | a         | {"model": "mock/echo", "driver": "magic"}
invalid_field           | a         | {"model": "mock/echo", "webhook": {"url": "http://a.example/"}}
invalid_field           | a         | {"model": "mock/echo", "webhook": {"url": "https://a.example/", "secret": "none"}}
unknown_model           | a         | {"model": "mock/none"}
unknown_tool            | a         | {"model": "mock/echo", "tools": ["calcuator"]}
unknown_hook            | a         | {"model": "mock/echo", "hooks": [{"name": "audit"}]}
invalid_response_format | shapeless | {"model": "mock/echo", "response_format": {"type": "json_schema", "name": "a", "schema": {"type": "array"}}}
invalid_hook            | a         | {"model": "mock/echo", "hooks": [{"name": "limits", "config": {"max_step": 1}}]}
"#;

async fn bad_definitions_are_refused(service: &Service) {
    let table = rows(BAD_AGENTS).map(|[code, name, body]| (name, serde_json::from_str(body).unwrap(), code));
    for (name, body, code) in table.chain(bad_prompts()) {
        let answer = service.put(&format!("/v1/agents/{name}"), &body).await;
        assert_eq!(answer.code(), code, "{body}: {}", answer.text());
        answer.assert_problem(code);
    }
}

/// Agents whose prompts no run could render.
fn bad_prompts() -> impl Iterator<Item = (&'static str, Value, &'static str)> {
    let deep = endless_prompt(5_000);
    let growing = "{% set n = 'x' %}{% for i in 'xx' %}{% set n = n ~ n %}{% endfor %}";
    let prompts =
        ["{{ variables.", growing, &deep, "{{ variable.city }}"].map(|prompt| json!({"system_prompt": prompt}));
    let hooks = ["{{ nope }}", &deep]
        .map(|prompt| json!({"hooks": [{"name": "context_config", "config": {"system_prompt": prompt}}]}));
    let prompts = prompts.map(|body| (body, "invalid_prompt"));
    prompts
        .into_iter()
        .chain(hooks.map(|body| (body, "invalid_hook")))
        .map(|(mut body, code)| {
            body["model"] = json!("mock/echo");
            ("a", body, code)
        })
}

/// Clients take `..` out of addresses, so such an address is sent as it is.
#[tokio::test]
async fn dots_in_a_path_name_no_agent() {
    let service = Service::start().await;
    for name in [".", "..", "%2e%2E"] {
        let body = r#"{"model": "mock/echo"}"#;
        let request = format!(
            "PUT /v1/agents/{name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = service.send_raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("neither `.` nor `..`"), "{answer}");
        let request = format!("GET /v1/agents/{name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = service.send_raw(request.as_bytes()).await;
        assert!(answer.contains(r#""code":"agent_not_found""#), "{answer}");
    }
    service.finish().await;
}

async fn hooks_are_bounded_in_number_and_in_what_their_patterns_take(service: &Service) {
    let limits = |count: usize| vec![json!({"name": "limits", "config": {"max_steps": 1}}); count];
    let redaction = |count: usize| {
        let pattern = json!({"name": "a", "regex": r"\w{10}", "replacement": "-"});
        vec![json!({"name": "redaction", "config": {"patterns": vec![pattern; count]}})]
    };
    let agent = |hooks: Vec<Value>| json!({"model": "mock/echo", "hooks": hooks});
    let twice = [redaction(1), redaction(1)].concat();
    let nameless = vec![json!({"name": "limit"})];
    for (hooks, code, pointer) in [
        (limits(33), "invalid_field", "/hooks"),
        (redaction(5), "invalid_hook", "/hooks/0/config"),
        (twice, "invalid_hook", "/hooks/0/config"),
        ([limits(1), redaction(5)].concat(), "invalid_hook", "/hooks/1/config"),
        ([limits(1), nameless].concat(), "unknown_hook", "/hooks/1/name"),
    ] {
        let answer = service.put("/v1/agents/large", &agent(hooks)).await;
        answer.assert_problem_at(code, pointer);
    }
    for hooks in [limits(32), redaction(4)] {
        service.put("/v1/agents/large", &agent(hooks)).await.ok();
    }
}

//! Bad requests: each gets its own problem, changes nothing and never a 500. Together with the tests that `ELSEWHERE` names, they produce every code.

use std::collections::BTreeSet;

use agent_runtime::http::ProblemCode;
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::bad_reads::BAD_READS;
use super::bad_requests::{ELSEWHERE, bad_runs};
use super::service::Service;
use crate::support::answer::read;
use crate::support::hostile::endless_prompt;

async fn assert_nothing_was_written(service: &Service) {
    for path in ["/v1/runs", "/v1/sessions"] {
        assert_eq!(service.get(path).await["data"], json!([]), "{path}");
    }
}

const ID: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

on_every_store! {
    bad_bodies_of_runs,
    bad_reads,
    bad_definitions_of_agents,
    bad_imports,
    bad_histories,
}

async fn bad_bodies_of_runs(service: &Service) {
    for (body, code, pointer) in bad_runs() {
        let shown: String = body.chars().take(200).collect();
        let request = service
            .request(Method::POST, "/v1/runs")
            .header(header::CONTENT_TYPE, "application/json");
        let answer = read(request.body(body)).await;
        assert_eq!(answer.code(), code, "{shown}: {}", answer.text());
        answer.assert_problem(code);
        let given = answer.json()["errors"][0]["pointer"]
            .as_str()
            .map_or(String::new(), ToOwned::to_owned);
        assert_eq!(given, pointer, "{shown}: {}", answer.text());
    }
    assert_nothing_was_written(service).await;
    assert_eq!(service.app.runs.lifecycle.active_runs(), 0);
}

async fn bad_reads(service: &Service) {
    for (method, path, code, pointer) in BAD_READS {
        let answer = read(service.request(method.parse().unwrap(), path)).await;
        assert_eq!(answer.code(), *code, "{method} {path}: {}", answer.text());
        answer.assert_problem(code);
        assert_eq!(
            answer.json()["errors"][0]["pointer"].as_str().unwrap_or_default(),
            *pointer,
            "{method} {path}"
        );
    }
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
async fn what_other_interfaces_want_is_answered_with_what_to_write_instead() {
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

/// Clients take `..` out of addresses, so such an address is sent as it is.
#[tokio::test]
async fn steps_along_the_path_name_no_agent() {
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

#[tokio::test]
async fn an_unknown_method_gets_the_allowed_ones() {
    let service = Service::start().await;
    let answer = read(service.request(Method::DELETE, "/v1/sessions")).await;
    let mut allowed: Vec<_> = answer.header("allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    for (method, path, words) in [
        (
            Method::DELETE,
            "/v1/sessions",
            "DELETE is not allowed here; the methods of this path are GET, HEAD, POST",
        ),
        (
            Method::PATCH,
            "/v1/agents/a",
            "PATCH is not allowed here; the methods of this path are GET, HEAD, PUT, DELETE",
        ),
        (
            Method::POST,
            "/docs/",
            "POST is not allowed here; the methods of this path are GET, HEAD",
        ),
    ] {
        let answer = read(service.request(method, path)).await;
        assert_eq!(answer.json()["detail"], words);
        assert_eq!(
            answer.header("allow").split(',').count(),
            words.matches(',').count() + 1,
            "{path}"
        );
    }
    service.finish().await;
}

#[tokio::test]
async fn bodies_that_are_not_json_at_all() {
    let service = Service::start().await;
    let post = || service.request(Method::POST, "/v1/runs");
    let json = |request: reqwest::RequestBuilder| request.header(header::CONTENT_TYPE, "application/json");
    read(json(post()).body(b"{\"input\": \"caf\xe9\"}".to_vec()))
        .await
        .assert_problem("invalid_utf8");
    read(post().body("{}")).await.assert_problem("unsupported_media_type");
    read(post().header(header::CONTENT_TYPE, "text/plain").body("{}"))
        .await
        .assert_problem("unsupported_media_type");
    read(post().header(header::CONTENT_TYPE, "\u{e9}").body("{}"))
        .await
        .assert_problem("unsupported_media_type");
    read(json(post()).header(header::CONTENT_ENCODING, "gzip").body("x"))
        .await
        .assert_problem("unsupported_media_type");
    let answer = read(
        post()
            .header(header::CONTENT_TYPE, "Application/JSON; version=1; Charset=\"UTF-8\"")
            .body(r#"{"input": "hi"}"#),
    )
    .await;
    assert_eq!(answer.ok()["output_text"], "echo: hi");
    for types in [
        &["application/json; charset=utf-16"][..],
        &["application/json;charset=\"latin1\""],
        &["application/json", "application/json"],
        &["application/json", "text/plain"],
    ] {
        let request = types.iter().fold(post(), |request, media_type| {
            request.header(header::CONTENT_TYPE, *media_type)
        });
        let answer = read(request.body(r#"{"input": "hi"}"#)).await;
        answer.assert_problem("unsupported_media_type");
    }
    let encoded = post().header(header::CONTENT_ENCODING, "identity");
    read(json(encoded.header(header::CONTENT_ENCODING, "br")).body("x"))
        .await
        .assert_problem("unsupported_media_type");
    service.finish().await;
}

#[tokio::test]
async fn heads_that_are_too_large() {
    let service = Service::start_with(&[("http.max_header_bytes", "20000")]).await;
    service
        .try_get(&format!("/v1/runs?agent={}", "a".repeat(9_000)))
        .await
        .assert_problem("uri_too_long");
    let large = service
        .request(Method::GET, "/healthz")
        .header("cookie", "a".repeat(21_000));
    read(large).await.assert_problem("headers_too_large");
    let many = (0..101).fold(service.request(Method::GET, "/healthz"), |request, n| {
        request.header(format!("x-{n}"), "1")
    });
    read(many).await.assert_problem("headers_too_large");
    service.finish().await;
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

async fn bad_definitions_of_agents(service: &Service) {
    let table = [
        ("a", json!({}), "invalid_field"),
        (
            "a",
            json!({"model": "mock/echo", "models": ["mock/echo"]}),
            "invalid_field",
        ),
        (
            "a",
            json!({"model": "mock/echo", "error_policy": {"tool": "sulk"}}),
            "invalid_field",
        ),
        (
            "a",
            json!({"model": "mock/echo", "error_policy": {"max_consecutive": 0}}),
            "invalid_field",
        ),
        (
            "a",
            json!({"model": "mock/echo", "parameters": {"temperature": 9}}),
            "invalid_field",
        ),
        ("a", json!({"model": "mock/echo", "tool": []}), "unknown_field"),
        ("a", json!({"model": "mock/echo", "name": "b"}), "invalid_field"),
        ("a%20b", json!({"model": "mock/echo"}), "invalid_field"),
        ("a%2Fb", json!({"model": "mock/echo"}), "invalid_field"),
        (
            "a",
            json!({"model": "mock/echo", "budget": {"deadline": "-0001-01-01T00:00:00Z"}}),
            "invalid_field",
        ),
        ("a", json!({"model": "mock/echo", "driver": "magic"}), "invalid_field"),
        (
            "a",
            json!({"model": "mock/echo", "webhook": {"url": "http://a.example/"}}),
            "invalid_field",
        ),
        (
            "a",
            json!({"model": "mock/echo", "webhook": {"url": "https://a.example/", "secret": "none"}}),
            "invalid_field",
        ),
        ("a", json!({"model": "mock/none"}), "unknown_model"),
        (
            "a",
            json!({"model": "mock/echo", "tools": ["calcuator"]}),
            "unknown_tool",
        ),
        (
            "a",
            json!({"model": "mock/echo", "hooks": [{"name": "audit"}]}),
            "unknown_hook",
        ),
        (
            "shapeless",
            json!({"model": "mock/echo", "response_format": {"type": "json_schema", "name": "a", "schema": {"type": "array"}}}),
            "invalid_response_format",
        ),
        (
            "a",
            json!({"model": "mock/echo", "hooks": [{"name": "limits", "config": {"max_step": 1}}]}),
            "invalid_hook",
        ),
    ];
    for (name, body, code) in table.into_iter().chain(bad_prompts()) {
        let answer = service.put(&format!("/v1/agents/{name}"), &body).await;
        assert_eq!(answer.code(), code, "{body}: {}", answer.text());
        answer.assert_problem(code);
    }
}

async fn bad_imports(service: &Service) {
    let table = [
        (
            json!({"message_history_state": {"messages": [{"role": "user"}]}}),
            "missing_field",
        ),
        (json!({"messages": []}), "unknown_field"),
        (
            json!({"context_state": {"created_at": "-0001-01-01T00:00:00Z"}}),
            "invalid_field",
        ),
        (
            json!({"message_history_state": {"messages": [
                {"role": "user", "content": "x", "created_at": "+10000-01-01T00:00:00Z"}]}}),
            "invalid_field",
        ),
        (json!({"agent": ".."}), "invalid_field"),
        (json!({"agent": "dmo"}), "agent_not_found"),
        (
            json!({"context_state": {"system_prompt": format!("{{{{ a{} }}}}", ".b".repeat(10_000))}}),
            "invalid_prompt",
        ),
        (json!({"context_state": {"execution_count": -1}}), "invalid_field"),
        (json!({"context_state": {"execution_count": u64::MAX}}), "invalid_field"),
        (
            json!({"context_state": {"execution_count": (1_u64 << 53) + 1}}),
            "invalid_field",
        ),
        (json!({"context_state": {"model": "mock/none"}}), "unknown_model"),
        (json!({"environment_state": {"variables": 1}}), "invalid_field"),
        (
            json!({"environment_state": {"variables": {"a": "x".repeat(263_000)}}}),
            "invalid_field",
        ),
        (
            json!({"message_history_state": {"messages": [{"role": "assistant", "content": [
            {"type": "tool_call", "id": "c", "name": "t", "arguments": ""}]}]}}),
            "invalid_history",
        ),
        (
            json!({"message_history_state": {"messages": vec![json!({"role": "user", "content": "x"}); 20_001]}}),
            "too_many_messages",
        ),
    ];
    for (body, code) in table {
        let answer = service.post("/v1/sessions", &body).await;
        assert_eq!(answer.code(), code, "{}", answer.text());
        answer.assert_problem(code);
    }
    assert_nothing_was_written(service).await;
}

/// Histories that no provider accepts, each with words of its fault.
async fn bad_histories(service: &Service) {
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
    assert_nothing_was_written(service).await;
}

#[tokio::test]
async fn a_valid_request_id_is_used_and_another_replaced() {
    let service = Service::start().await;
    let sent = |id: &str| read(service.request(Method::GET, "/v1/runs/x").header("x-request-id", id));
    let kept = sent("req-7/a.b:c").await;
    assert_eq!(
        (kept.header("x-request-id"), kept.json()["request_id"].as_str().unwrap()),
        ("req-7/a.b:c", "req-7/a.b:c")
    );
    for bad in ["", "a b", "<script>", &"a".repeat(129)] {
        let answer = sent(bad).await;
        assert_ne!(answer.header("x-request-id"), bad);
        assert_eq!(answer.header("x-request-id").len(), ID.len());
    }
    service.finish().await;
}

#[test]
fn every_code_is_produced_by_a_test() {
    let mut produced: BTreeSet<&str> = ELSEWHERE.iter().map(|(code, _)| *code).collect();
    produced.extend(bad_runs().into_iter().map(|(_, code, _)| code));
    produced.extend(BAD_READS.iter().map(|(_, _, code, _)| *code));
    produced.extend([
        "invalid_utf8",
        "unsupported_media_type",
        "uri_too_long",
        "headers_too_large",
    ]);
    produced.extend([
        "unknown_tool",
        "unknown_hook",
        "invalid_hook",
        "invalid_prompt",
        "invalid_response_format",
        "body_too_large",
    ]);
    let all: BTreeSet<&str> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(produced, all);
    // A test must name what it claims to produce, and be one that runs.
    let read = |path: &str| {
        let file = format!("{}/tests/suite/http/{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let lines: Vec<_> = lines.map(str::trim).collect();
        format!("\n{}\n", lines.join("\n"))
    };
    for (code, module) in ELSEWHERE {
        let (folder, name) = module.rsplit_once('/').unwrap_or((".", module));
        let is_there = read(&format!("{folder}/mod.rs")).contains(&format!("\nmod {name};\n"));
        let names_it = read(&format!("{module}.rs")).contains(&format!("\"{code}\""));
        assert!(is_there && names_it, "{module} does not produce {code}");
    }
}

//! Bad requests and the problems that they deserve. Tables only.

use serde_json::json;

/// Codes that need more than one request, and the modules whose tests produce them.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("session_too_large", "session_sizes"),
    ("agent_files_invalid", "agents"),
    ("malformed_request", "unread"),
    ("unsupported_transfer_encoding", "unread"),
    ("host_not_allowed", "hosts"),
    ("origin_not_allowed", "hosts"),
    ("proxied_without_key", "hosts"),
    ("too_many_unknown_keys", "auth"),
    ("too_many_connections", "connections"),
    ("too_much_in_flight", "large_reads"),
    ("malformed_body", "connections"),
    ("request_timeout", "connections"),
    ("missing_api_key", "auth"),
    ("invalid_api_key", "auth"),
    ("missing_scope", "auth"),
    ("session_not_committed", "sessions"),
    ("base_session_conflict", "rivals"),
    ("not_allowed", "../end_to_end/limits"),
    ("above_ceiling", "../end_to_end/limits"),
    ("rate_limited", "../end_to_end/tenant_quotas"),
    ("too_many_readers", "../end_to_end/tenant_quotas"),
    ("too_many_runs", "live_runs"),
    ("invalid_header", "bad_headers"),
    ("thread_moved", "threads"),
    ("too_many_steering_messages", "../end_to_end/steering"),
    ("thread_busy", "../end_to_end/threads"),
    ("idempotency_key_reused", "../end_to_end/idempotency"),
    ("queue_full", "live_runs"),
    ("not_ready", "store_failures"),
    ("run_unreachable", "../process/replicas"),
    ("session_has_descendants", "removal"),
    ("session_in_use", "removal"),
    ("shutting_down", "shutdown"),
    ("internal_error", "store_failures"),
    ("store_unavailable", "store_failures"),
    ("answer_timeout", "store_failures"),
];

/// Bodies of `POST /v1/runs` with the code and the pointer of their problem.
const BAD_RUNS: &[(&str, &str, &str)] = &[
    ("", "empty_body", ""),
    ("{", "malformed_json", ""),
    (r#"{"input": "hi",}"#, "malformed_json", ""),
    (r#"{"input": "hi"} x"#, "malformed_json", ""),
    (
        r#"{"input": "hi", "budget": {"max_seconds": 1e999}}"#,
        "malformed_json",
        "",
    ),
    (r#"{"input": "\ud800"}"#, "malformed_json", ""),
    (r#"{"input": "a\u0000b"}"#, "nul_character", "/input"),
    (
        r#"{"input": "hi", "metadata": {"a": ["\u0000"]}}"#,
        "nul_character",
        "/metadata/a/0",
    ),
    (
        r#"{"input": "hi", "metadata": {"a\u0000": 1}}"#,
        "nul_character",
        "/metadata/a\u{fffd}",
    ),
    (r#"{"input": "hi", "input": "ho"}"#, "duplicate_key", "/input"),
    (
        r#"{"input": "hi", "metadata": {"a": 1, "a": 2}}"#,
        "duplicate_key",
        "/metadata/a",
    ),
    (r#"{"inputs": "hi"}"#, "unknown_field", "/inputs"),
    (
        r#"{"input": "hi", "budget": {"max_step": 3}}"#,
        "unknown_field",
        "/budget/max_step",
    ),
    (
        r#"{"input": [{"role": "user", "content": "hi", "txt": 1}]}"#,
        "unknown_field",
        "/input/0/txt",
    ),
    (
        r#"{"input": [{"role": "user", "content": [{"type": "text", "text": "a", "bold": true}]}]}"#,
        "unknown_field",
        "/input/0/content/0/bold",
    ),
    (
        r#"{"input": [{"type": "text", "txt": "hi"}]}"#,
        "unknown_field",
        "/input/0/txt",
    ),
    ("{}", "missing_field", "/input"),
    (r#"{"input": [{"role": "user"}]}"#, "missing_field", "/input/0/content"),
    ("[]", "invalid_field", ""),
    (r#""hi""#, "invalid_field", ""),
    (r#"{"input": 5}"#, "invalid_field", "/input"),
    (r#"{"input": null}"#, "invalid_field", "/input"),
    (r#"{"input": ""}"#, "invalid_field", "/input"),
    (r#"{"input": []}"#, "invalid_field", "/input"),
    (r#"{"input": [5]}"#, "invalid_field", "/input/0"),
    (
        r#"{"input": [{"role": "robot", "content": "hi"}]}"#,
        "invalid_field",
        "/input/0/role",
    ),
    (
        r#"{"input": [{"role": "user", "content": []}]}"#,
        "invalid_field",
        "/input/0/content",
    ),
    (
        r#"{"input": [{"role": "user", "content": {}}]}"#,
        "invalid_field",
        "/input/0/content",
    ),
    (
        r#"{"input": [{"role": "user", "name": "", "content": "hi"}]}"#,
        "invalid_field",
        "/input/0/name",
    ),
    (
        r#"{"input": [{"type": "video", "url": "x"}]}"#,
        "invalid_field",
        "/input/0/type",
    ),
    (
        r#"{"input": [{"type": "image", "source": {"kind": "url", "url": "file:///etc/passwd"}}]}"#,
        "invalid_field",
        "/input/0/source/url",
    ),
    (
        r#"{"input": [{"type": "image", "source": {"kind": "base64", "media_type": "png", "data": "AAAA"}}]}"#,
        "invalid_field",
        "/input/0/source/media_type",
    ),
    (
        r#"{"input": [{"type": "image", "source": {"kind": "base64", "media_type": "image/png", "data": "A"}}]}"#,
        "invalid_field",
        "/input/0/source/data",
    ),
    (
        r#"{"input": [{"type": "tool_call", "id": "1", "name": "calculator", "arguments": "{}"}]}"#,
        "invalid_field",
        "/input/0",
    ),
    (
        r#"{"input": [{"role": "tool", "content": "42"}]}"#,
        "invalid_field",
        "/input/0/content",
    ),
    (r#"{"input": "hi", "mode": "batch"}"#, "invalid_field", "/mode"),
    (
        r#"{"input": "hi", "durability": "disk"}"#,
        "invalid_field",
        "/durability",
    ),
    (r#"{"input": "hi", "priority": 101}"#, "invalid_field", "/priority"),
    (r#"{"input": "hi", "priority": -101}"#, "invalid_field", "/priority"),
    (r#"{"input": "hi", "priority": 70000}"#, "invalid_field", "/priority"),
    (r#"{"input": "hi", "priority": 1.5}"#, "invalid_field", "/priority"),
    (r#"{"input": "hi", "priority": "high"}"#, "invalid_field", "/priority"),
    (r#"{"input": "hi", "thread": ""}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": "a b"}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": "."}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": ".."}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": "a/b"}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": "caf\u00e9"}"#, "invalid_field", "/thread"),
    (r#"{"input": "hi", "thread": 7}"#, "invalid_field", "/thread"),
    (
        r#"{"input": "hi", "thread": "t", "base_session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"}"#,
        "invalid_field",
        "/thread",
    ),
    (
        r#"{"input": "hi", "thread": "t", "if_busy": "wait"}"#,
        "invalid_field",
        "/if_busy",
    ),
    (r#"{"input": "hi", "if_busy": "queue"}"#, "invalid_field", "/if_busy"),
    (r#"{"input": "hi", "webhook": {}}"#, "missing_field", "/webhook/url"),
    (
        r#"{"input": "hi", "webhook": "https://a.example"}"#,
        "invalid_field",
        "/webhook",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "a.example"}}"#,
        "invalid_field",
        "/webhook/url",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "http://a.example/"}}"#,
        "invalid_field",
        "/webhook/url",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "https://user@a.example/"}}"#,
        "invalid_field",
        "/webhook/url",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "https://10.0.0.1/"}}"#,
        "invalid_field",
        "/webhook/url",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "https://a.example/", "events": ["run.started"]}}"#,
        "invalid_field",
        "/webhook/events/0",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "https://a.example/", "secret": "none"}}"#,
        "invalid_field",
        "/webhook/secret",
    ),
    (
        r#"{"input": "hi", "webhook": {"url": "https://a.example/", "retries": 3}}"#,
        "unknown_field",
        "/webhook/retries",
    ),
    (r#"{"input": "hi", "model": "gpt"}"#, "invalid_field", "/model"),
    (r#"{"input": "hi", "agent": "no spaces"}"#, "invalid_field", "/agent"),
    (r#"{"input": "hi", "agent": "."}"#, "invalid_field", "/agent"),
    (r#"{"input": "hi", "agent": ".."}"#, "invalid_field", "/agent"),
    (
        r#"{"input": "hi", "metadata": {"a": [1e30, 18446744073709551616]}}"#,
        "invalid_field",
        "/metadata/a/1",
    ),
    (
        r#"{"input": "hi", "variables": {"a": -9223372036854775809}}"#,
        "invalid_field",
        "/variables/a",
    ),
    (
        r#"{"input": "hi", "budget": {"deadline": "-0001-01-01T00:00:00Z"}}"#,
        "invalid_field",
        "/budget/deadline",
    ),
    (
        r#"{"input": "hi", "budget": {"deadline": "9999-12-31T23:59:59-01:00"}}"#,
        "invalid_field",
        "/budget/deadline",
    ),
    (r#"{"input": "hi", "conflict": "merge"}"#, "invalid_field", "/conflict"),
    (
        r#"{"input": "hi", "on_disconnect": 1}"#,
        "invalid_field",
        "/on_disconnect",
    ),
    (r#"{"input": "hi", "metadata": []}"#, "invalid_field", "/metadata"),
    (
        r#"{"input": "hi", "response_format": {"type": "xml"}}"#,
        "invalid_field",
        "/response_format/type",
    ),
    (
        r#"{"input": "hi", "budget": {"max_steps": 0}}"#,
        "invalid_field",
        "/budget/max_steps",
    ),
    (
        r#"{"input": "hi", "budget": {"max_steps": -1}}"#,
        "invalid_field",
        "/budget/max_steps",
    ),
    (
        r#"{"input": "hi", "budget": {"max_steps": 1.5}}"#,
        "invalid_field",
        "/budget/max_steps",
    ),
    (
        r#"{"input": "hi", "budget": {"max_tokens": 99999999999999999999}}"#,
        "invalid_field",
        "/budget/max_tokens",
    ),
    (
        r#"{"input": "hi", "budget": {"max_seconds": -0.5}}"#,
        "invalid_field",
        "/budget/max_seconds",
    ),
    (
        r#"{"input": "hi", "budget": {"max_cost": -1}}"#,
        "invalid_field",
        "/budget/max_cost",
    ),
    (
        r#"{"input": "hi", "budget": {"deadline": "tomorrow"}}"#,
        "invalid_field",
        "/budget/deadline",
    ),
    (
        r#"{"input": "hi", "base_session_id": "42"}"#,
        "malformed_id",
        "/base_session_id",
    ),
    (
        r#"{"input": "hi", "base_session_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"}"#,
        "session_not_found",
        "",
    ),
    (r#"{"input": "hi", "agent": "dmo"}"#, "agent_not_found", ""),
    (r#"{"input": "hi", "model": "nobody/gpt"}"#, "unknown_model", ""),
    (r#"{"input": "hi", "model": "mock/none"}"#, "unknown_model", ""),
    (r#"{"input": "hi", "model": "keyless/gpt"}"#, "model_not_configured", ""),
    (
        r#"{"input": [{"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "calculator", "arguments": "{}"}]}]}"#,
        "invalid_history",
        "",
    ),
    (
        r#"{"input": [{"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "calculator", "content": []}]}]}"#,
        "invalid_history",
        "",
    ),
];

/// The same with those that are too long to be written down.
pub(super) fn bad_runs() -> Vec<(String, &'static str, &'static str)> {
    let nested = |depth: usize| {
        format!(
            r#"{{"input": "hi", "metadata": {{"a": {}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let keys: serde_json::Map<_, _> = (0..65).map(|key| (key.to_string(), json!(0))).collect();
    let messages: Vec<_> = (0..1001).map(|_| json!({"role": "user", "content": "hi"})).collect();
    let mut all: Vec<_> = BAD_RUNS
        .iter()
        .map(|(body, code, pointer)| ((*body).to_owned(), *code, *pointer))
        .collect();
    all.push((nested(63), "json_too_deep", ""));
    all.push((nested(100_000), "json_too_deep", ""));
    let small_objects = vec![r#"{"a":0}"#; 60_000].join(",");
    all.push((
        format!(r#"{{"input": "hi", "variables": {{"a": [{small_objects}]}}}}"#),
        "json_too_large",
        "",
    ));
    all.push((
        json!({"input": "hi", "metadata": keys}).to_string(),
        "invalid_field",
        "/metadata",
    ));
    all.push((
        json!({"input": "hi", "metadata": {"a": "x".repeat(17_000)}}).to_string(),
        "invalid_field",
        "/metadata",
    ));
    let variables: serde_json::Map<_, _> = (0..1025).map(|name| (name.to_string(), json!(0))).collect();
    for variables in [json!(variables), json!({"a": "x".repeat(263_000)})] {
        all.push((
            json!({"input": "hi", "variables": variables}).to_string(),
            "invalid_field",
            "/variables",
        ));
    }
    all.push((json!({"input": messages}).to_string(), "too_many_messages", "/input"));
    all
}

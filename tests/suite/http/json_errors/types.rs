//! Values of other types than their fields have: refused where they stand, in words of JSON.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::refused::assert_refused;
use crate::http::service::{NOWHERE, Service};
use crate::support::answer::read;

const RUNS: &str = "POST /v1/runs";
const STEERING: &str = "POST /v1/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/steer";
const AGENTS: &str = "PUT /v1/agents/mistaken";
const THREADS: &str = "PUT /v1/threads/mistaken";
const SESSIONS: &str = "POST /v1/sessions";

/// Requests, their bodies and the pointers to what is wrong in these.
type Faults = Vec<(&'static str, Value, String)>;

/// Arrays for objects with keys of the caller's choice.
fn arrays() -> Faults {
    owned([
        (RUNS, json!(["hi"]), ""),
        (RUNS, json!({"metadata": []}), "/metadata"),
        (RUNS, json!({"variables": []}), "/variables"),
        (
            RUNS,
            json!({"input": [{"role": "user", "content": "hi", "metadata": []}]}),
            "/input/0/metadata",
        ),
        (STEERING, json!(["1", "hi"]), ""),
        (AGENTS, json!([]), ""),
        (AGENTS, json!({"parameters": {"extra": []}}), "/parameters/extra"),
        (THREADS, json!([NOWHERE]), ""),
        (THREADS, json!({"session_id": [NOWHERE]}), "/session_id"),
        (SESSIONS, json!([]), ""),
        (
            SESSIONS,
            json!({"environment_state": {"variables": []}}),
            "/environment_state/variables",
        ),
        (
            SESSIONS,
            json!({"environment_state": {"resources": []}}),
            "/environment_state/resources",
        ),
        (
            SESSIONS,
            json!({"context_state": {"metadata": []}}),
            "/context_state/metadata",
        ),
        (
            SESSIONS,
            json!({"message_history_state": {"messages": [{"role": "user", "content": ["hi"]}]}}),
            "/message_history_state/messages/0/content/0",
        ),
    ])
}

/// Requests with values of other types than their fields have.
fn of_other_types() -> Faults {
    owned([
        (RUNS, json!({"budget": 1}), "/budget"),
        (RUNS, json!({"budget": {"max_steps": "two"}}), "/budget/max_steps"),
        (RUNS, json!({"budget": {"max_steps": -1}}), "/budget/max_steps"),
        (RUNS, json!({"budget": {"max_steps": 1.5}}), "/budget/max_steps"),
        (
            RUNS,
            json!({"budget": {"max_steps": 5_000_000_000_u64}}),
            "/budget/max_steps",
        ),
        (RUNS, json!({"budget": {"max_seconds": "long"}}), "/budget/max_seconds"),
        (RUNS, json!({"budget": {"max_cost": {}}}), "/budget/max_cost"),
        (RUNS, json!({"budget": {"deadline": 5}}), "/budget/deadline"),
        (RUNS, json!({"priority": {}}), "/priority"),
        (RUNS, json!({"webhook": "https://a.example/"}), "/webhook"),
        (
            RUNS,
            json!({"webhook": {"url": "https://a.example/", "events": {}}}),
            "/webhook/events",
        ),
        (RUNS, json!({"metadata": "a"}), "/metadata"),
        (RUNS, json!({"mode": 3}), "/mode"),
        (RUNS, json!({"mode": []}), "/mode"),
        (RUNS, json!({"response_format": 3}), "/response_format"),
        (RUNS, json!({"response_format": {"type": 3}}), "/response_format/type"),
        (RUNS, json!({"input": [{"type": "image", "source": 3}]}), "/input/0"),
        (
            AGENTS,
            json!({"parameters": {"temperature": "hot"}}),
            "/parameters/temperature",
        ),
        (AGENTS, json!({"parameters": {"stop": "END"}}), "/parameters/stop"),
        (AGENTS, json!({"tools": {}}), "/tools"),
        (RUNS, json!({"parameters": 0.5}), "/parameters"),
        (RUNS, json!({"parameters": {"stop": "END"}}), "/parameters/stop"),
        (RUNS, json!({"system_prompt": 3}), "/system_prompt"),
        (RUNS, json!({"tools": "calculator"}), "/tools"),
        (AGENTS, json!({"hooks": [3]}), "/hooks/0"),
        (
            AGENTS,
            json!({"hooks": [{"name": "limits", "priority": "high"}]}),
            "/hooks/0/priority",
        ),
        (
            AGENTS,
            json!({"compiler": {"kind": "last_n", "messages": "three"}}),
            "/compiler",
        ),
        (AGENTS, json!({"error_policy": 3}), "/error_policy"),
        (
            AGENTS,
            json!({"error_policy": {"max_consecutive": "three"}}),
            "/error_policy/max_consecutive",
        ),
        (AGENTS, json!({"parallel_tool_calls": "yes"}), "/parallel_tool_calls"),
        (
            SESSIONS,
            json!({"context_state": {"execution_count": "three"}}),
            "/context_state/execution_count",
        ),
        (
            SESSIONS,
            json!({"message_history_state": {"messages": {}}}),
            "/message_history_state/messages",
        ),
    ])
}

fn owned(faults: impl IntoIterator<Item = (&'static str, Value, &'static str)>) -> Faults {
    let faults = faults.into_iter();
    faults
        .map(|(request, body, pointer)| (request, body, pointer.to_owned()))
        .collect()
}

/// What names types of the program rather than of JSON.
const FOREIGN: &[&str] = &[
    "struct",
    "enum",
    "sequence",
    "map",
    "tuple",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f32",
    "f64",
    "digit",
    "RunWebhook",
    "ExecutionBudget",
    "ModelParameters",
    "InputPart",
    "InputSource",
    "ResponseFormat",
    "CompilerConfig",
];

#[tokio::test]
async fn a_value_of_another_type_is_refused_without_naming_a_type_of_the_program() {
    let service = Service::start().await;
    for (request, body, pointer) in arrays().into_iter().chain(of_other_types()) {
        let (method, path) = request.split_once(' ').unwrap();
        let body = whole(request, body);
        let sent = service.send_json(method.parse().unwrap(), path, body.to_string());
        let shown = format!("{request} {body}");
        assert_plain(&assert_refused(sent, "invalid_field", &pointer, &shown).await);
    }
    let table = [
        ("redaction", json!({"patterns": "[0-9]+"})),
        ("limits", json!({"max_steps": [1]})),
        ("limits", json!({"max_steps": "many"})),
        ("limits", json!({"max_cost": {}})),
        ("finish_reason", json!({"stop_on": {}})),
        ("webhook", json!({"url": 3, "points": []})),
        ("webhook", json!({"url": "https://a.example/", "points": {}})),
    ];
    for (name, config) in table {
        let body = json!({"model": "mock/echo", "hooks": [{"name": name, "config": config}]});
        let answer = service.put("/v1/agents/mistaken", &body).await;
        answer.assert_problem("invalid_hook");
        assert_plain(&answer.json());
    }
    for path in [
        "/v1/sessions?limit=many",
        "/v1/sessions?limit=-1",
        "/v1/runs?limit=99999999999999999999",
        "/v1/sessions/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/messages?from=first",
        "/v1/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/events?after=x",
    ] {
        let answer = read(service.request(Method::GET, path)).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.text());
        assert_ne!(answer.status, 404, "{path}");
        assert_plain(&answer.json());
    }
    assert_eq!(service.counts().await, (0, 0));
    assert_eq!(service.try_get("/v1/agents/mistaken").await.status, 404);
    assert_eq!(service.try_get("/v1/threads/mistaken").await.status, 404);
    service.finish().await;
}

/// Adds what a body lacks to be accepted but for its fault.
fn whole(request: &str, mut body: Value) -> Value {
    let (field, value) = match request {
        RUNS => ("input", "hi"),
        AGENTS => ("model", "mock/echo"),
        _ => return body,
    };
    if let Some(fields) = body.as_object_mut() {
        fields.entry(field).or_insert_with(|| value.into());
    }
    body
}

fn assert_plain(problem: &Value) {
    let mut reported = vec![problem["detail"].as_str().unwrap()];
    let errors = problem["errors"].as_array().into_iter().flatten();
    reported.extend(errors.map(|error| error["message"].as_str().unwrap()));
    for words in reported {
        let named = words
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| FOREIGN.contains(word));
        assert_eq!(named, None, "{words}");
    }
}

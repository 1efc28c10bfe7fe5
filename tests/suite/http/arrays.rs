//! Arrays in the place of objects, and numbers in the place of texts: refused at every depth, where they stand, in words of JSON.

use reqwest::{Method, header};
use serde_json::{Value, json};

use super::service::Service;
use crate::support::answer::read;

const ID: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

const RUNS: &str = "POST /v1/runs";
const STEERING: &str = "POST /v1/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/steer";
const AGENTS: &str = "PUT /v1/agents/positional";
const THREADS: &str = "PUT /v1/threads/positional";
const SESSIONS: &str = "POST /v1/sessions";

/// Requests, their bodies and the pointers to what is wrong in these.
type Faults = Vec<(&'static str, Value, String)>;

/// Requests for runs and steering, with an array for an object, and the pointer to it. Most would be an object by position.
fn inputs_by_position() -> Faults {
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "t", "arguments": "{}"}]});
    let result = |part: Value| {
        let result = json!({"type": "tool_result", "call_id": "c", "name": "t", "content": [part]});
        json!([call, {"role": "tool", "content": [result]}, {"role": "user", "content": "hi"}])
    };
    let message = json!({"role": "user", "content": "hi"});
    let source = json!(["url", "https://a.example/a.png"]);
    let inputs = [
        (json!([["user", null, "hi"]]), "/input/0"),
        (json!([["text", "hi"]]), "/input/0"),
        (json!([message, ["user", null, "ho"]]), "/input/1"),
        (
            json!([{"role": "user", "content": [["text", "hi"]]}]),
            "/input/0/content/0",
        ),
        (
            json!([{"role": "user", "content": "hi", "metadata": []}]),
            "/input/0/metadata",
        ),
        (json!([{"type": "image", "source": source}]), "/input/0"),
        (json!([{"type": "document", "source": source}]), "/input/0"),
        (result(json!(["text", "hi"])), "/input/1/content/0"),
        (result(json!({"type": "image", "source": source})), "/input/1/content/0"),
    ];
    let inputs = inputs.map(|(input, pointer)| (RUNS, json!({"input": input}), pointer));
    let mut faults = vec![
        (RUNS, json!(["hi"]), ""),
        (RUNS, json!({"budget": [1]}), "/budget"),
        (RUNS, json!({"webhook": ["https://a.example/", [], null]}), "/webhook"),
        (RUNS, json!({"metadata": []}), "/metadata"),
        (RUNS, json!({"variables": []}), "/variables"),
        (RUNS, json!({"response_format": ["text"]}), "/response_format"),
        (
            RUNS,
            json!({"response_format": ["json_schema", "a", {}]}),
            "/response_format",
        ),
        (STEERING, json!(["1", "hi"]), ""),
        (STEERING, json!({"id": "1", "input": [["text", "hi"]]}), "/input/0"),
        (
            STEERING,
            json!({"id": "1", "input": [["user", null, "hi"]]}),
            "/input/0",
        ),
    ];
    faults.extend(inputs);
    owned(faults)
}

/// The same of definitions of agents.
fn agents_by_position() -> Faults {
    let scripted = |step: Value| json!({"driver": "scripted", "script": [step]});
    owned([
        (AGENTS, json!([]), ""),
        (AGENTS, json!({"parameters": [0.5]}), "/parameters"),
        (AGENTS, json!({"parameters": {"extra": []}}), "/parameters/extra"),
        (AGENTS, json!({"budget": [2]}), "/budget"),
        (AGENTS, json!({"hooks": [["limits", 0, {"max_steps": 1}]]}), "/hooks/0"),
        (
            AGENTS,
            json!({"hooks": [{"name": "limits", "config": [1]}]}),
            "/hooks/0/config",
        ),
        (AGENTS, json!({"tools": [["calculator"]]}), "/tools/0"),
        (AGENTS, json!({"subagents": [["demo"]]}), "/subagents/0"),
        (
            AGENTS,
            json!({"subagents": [{"agent": "demo", "budget": [1]}]}),
            "/subagents/0/budget",
        ),
        (AGENTS, json!({"response_format": ["json_object"]}), "/response_format"),
        (AGENTS, json!({"compiler": ["last_n", 3]}), "/compiler"),
        (AGENTS, json!({"error_policy": ["stop"]}), "/error_policy"),
        (AGENTS, json!({"error_policy": []}), "/error_policy"),
        (AGENTS, json!({"webhook": ["https://a.example/"]}), "/webhook"),
        (AGENTS, scripted(json!(["hi"])), "/script/0"),
        (
            AGENTS,
            scripted(json!({"tool_calls": [["t"]]})),
            "/script/0/tool_calls/0",
        ),
        (AGENTS, scripted(json!({"error": ["model", "m"]})), "/script/0/error"),
        (AGENTS, scripted(json!({"text": "a", "usage": [1]})), "/script/0/usage"),
    ])
}

/// The same of threads and of sessions to import.
fn sessions_by_position() -> Faults {
    let user = |field: &str, value: Value| {
        let mut message = json!({"role": "user", "content": "hi"});
        message[field] = value;
        message
    };
    let messages = [
        (json!([null, "user", null, "hi"]), ""),
        (user("tags", json!([])), "/tags"),
        (user("tags", json!({"covers": [0, 1]})), "/tags/covers"),
        (user("metadata", json!([])), "/metadata"),
        (user("provider_fields", json!(["p", []])), "/provider_fields"),
        (user("content", json!([["text", "hi"]])), "/content/0"),
        (user("content", json!(["hi"])), "/content/0"),
    ];
    let messages = messages.map(|(message, pointer)| {
        let pointer = format!("/message_history_state/messages/0{pointer}");
        (
            SESSIONS,
            json!({"message_history_state": {"messages": [message]}}),
            pointer,
        )
    });
    let mut faults = owned([
        (THREADS, json!([ID]), ""),
        (THREADS, json!({"session_id": [ID]}), "/session_id"),
        (SESSIONS, json!([]), ""),
        (SESSIONS, json!({"environment_state": [{}, {}]}), "/environment_state"),
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
        (SESSIONS, json!({"context_state": []}), "/context_state"),
        (
            SESSIONS,
            json!({"context_state": {"metadata": []}}),
            "/context_state/metadata",
        ),
        (
            SESSIONS,
            json!({"context_state": {"response_format": ["text"]}}),
            "/context_state/response_format",
        ),
        (
            SESSIONS,
            json!({"message_history_state": [[]]}),
            "/message_history_state",
        ),
    ]);
    faults.extend(messages);
    faults
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
        (RUNS, json!({"parameters": [0.5]}), "/parameters"),
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
async fn an_array_is_no_object_and_no_answer_names_a_type_of_the_program() {
    let service = Service::start().await;
    let tables = [
        inputs_by_position(),
        agents_by_position(),
        sessions_by_position(),
        of_other_types(),
    ];
    for (request, body, pointer) in tables.into_iter().flatten() {
        let (method, path) = request.split_once(' ').unwrap();
        let body = whole(request, body);
        let sent = service
            .request(method.parse().unwrap(), path)
            .header(header::CONTENT_TYPE, "application/json");
        let answer = read(sent.body(body.to_string())).await;
        assert_eq!(answer.code(), "invalid_field", "{request} {body}: {}", answer.text());
        answer.assert_problem("invalid_field");
        let problem = answer.json();
        assert_eq!(
            problem["errors"][0]["pointer"].as_str().unwrap_or_default(),
            pointer,
            "{request} {body}: {problem}"
        );
        assert_plain(&problem);
    }
    let table = [
        ("redaction", json!({"patterns": [["digits", "[0-9]+"]]})),
        ("limits", json!({"max_steps": [1]})),
        ("limits", json!({"max_steps": "many"})),
        ("limits", json!({"max_cost": {}})),
        ("finish_reason", json!({"stop_on": {}})),
        ("webhook", json!({"url": 3, "points": []})),
        ("webhook", json!({"url": "https://a.example/", "points": {}})),
    ];
    for (name, config) in table {
        let body = json!({"model": "mock/echo", "hooks": [{"name": name, "config": config}]});
        let answer = service.put("/v1/agents/positional", &body).await;
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
    assert_eq!(service.try_get("/v1/agents/positional").await.status, 404);
    assert_eq!(service.try_get("/v1/threads/positional").await.status, 404);
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
    let mut told = vec![problem["detail"].as_str().unwrap()];
    let errors = problem["errors"].as_array().into_iter().flatten();
    told.extend(errors.map(|error| error["message"].as_str().unwrap()));
    for words in told {
        let named = words
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| FOREIGN.contains(word));
        assert_eq!(named, None, "{words}");
    }
}

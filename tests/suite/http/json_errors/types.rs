//! Values of other types than their fields have: refused where they stand, in words of JSON.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::refused::assert_refused;
use crate::http::service::Service;
use crate::support::answer::read;
use crate::support::table::rows;

const RUNS: &str = "POST /v1/runs";
const AGENTS: &str = "PUT /v1/agents/mistaken";

/// Requests, the pointers to what is wrong in their bodies, and the bodies: arrays for objects with
/// keys of the caller's choice, and values of other types than their fields have.
const FAULTS: &str = r#"
POST /v1/runs                                            |                                             | ["hi"]
POST /v1/runs                                            | /metadata                                   | {"metadata": []}
POST /v1/runs                                            | /variables                                  | {"variables": []}
POST /v1/runs                                            | /input/0/metadata                           | {"input": [{"role": "user", "content": "hi", "metadata": []}]}
POST /v1/runs/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/steer |                                             | ["1", "hi"]
PUT /v1/agents/mistaken                                  |                                             | []
PUT /v1/agents/mistaken                                  | /parameters/extra                           | {"parameters": {"extra": []}}
PUT /v1/threads/mistaken                                 |                                             | ["0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"]
PUT /v1/threads/mistaken                                 | /session_id                                 | {"session_id": ["0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"]}
POST /v1/sessions                                        |                                             | []
POST /v1/sessions                                        | /environment_state/variables                | {"environment_state": {"variables": []}}
POST /v1/sessions                                        | /environment_state/resources                | {"environment_state": {"resources": []}}
POST /v1/sessions                                        | /context_state/metadata                     | {"context_state": {"metadata": []}}
POST /v1/sessions                                        | /message_history_state/messages/0/content/0 | {"message_history_state": {"messages": [{"role": "user", "content": ["hi"]}]}}
POST /v1/runs                                            | /budget                                     | {"budget": 1}
POST /v1/runs                                            | /budget/max_steps                           | {"budget": {"max_steps": "two"}}
POST /v1/runs                                            | /budget/max_steps                           | {"budget": {"max_steps": -1}}
POST /v1/runs                                            | /budget/max_steps                           | {"budget": {"max_steps": 1.5}}
POST /v1/runs                                            | /budget/max_steps                           | {"budget": {"max_steps": 5000000000}}
POST /v1/runs                                            | /budget/max_seconds                         | {"budget": {"max_seconds": "long"}}
POST /v1/runs                                            | /budget/max_cost                            | {"budget": {"max_cost": {}}}
POST /v1/runs                                            | /budget/deadline                            | {"budget": {"deadline": 5}}
POST /v1/runs                                            | /priority                                   | {"priority": {}}
POST /v1/runs                                            | /webhook                                    | {"webhook": "https://a.example/"}
POST /v1/runs                                            | /webhook/events                             | {"webhook": {"url": "https://a.example/", "events": {}}}
POST /v1/runs                                            | /metadata                                   | {"metadata": "a"}
POST /v1/runs                                            | /mode                                       | {"mode": 3}
POST /v1/runs                                            | /mode                                       | {"mode": []}
POST /v1/runs                                            | /response_format                            | {"response_format": 3}
POST /v1/runs                                            | /response_format/type                       | {"response_format": {"type": 3}}
POST /v1/runs                                            | /input/0                                    | {"input": [{"type": "image", "source": 3}]}
PUT /v1/agents/mistaken                                  | /parameters/temperature                     | {"parameters": {"temperature": "hot"}}
PUT /v1/agents/mistaken                                  | /parameters/stop                            | {"parameters": {"stop": "END"}}
PUT /v1/agents/mistaken                                  | /tools                                      | {"tools": {}}
POST /v1/runs                                            | /parameters                                 | {"parameters": 0.5}
POST /v1/runs                                            | /parameters/stop                            | {"parameters": {"stop": "END"}}
POST /v1/runs                                            | /system_prompt                              | {"system_prompt": 3}
POST /v1/runs                                            | /tools                                      | {"tools": "calculator"}
PUT /v1/agents/mistaken                                  | /hooks/0                                    | {"hooks": [3]}
PUT /v1/agents/mistaken                                  | /hooks/0/priority                           | {"hooks": [{"name": "limits", "priority": "high"}]}
PUT /v1/agents/mistaken                                  | /compiler                                   | {"compiler": {"kind": "last_n", "messages": "three"}}
PUT /v1/agents/mistaken                                  | /error_policy                               | {"error_policy": 3}
PUT /v1/agents/mistaken                                  | /error_policy/max_consecutive               | {"error_policy": {"max_consecutive": "three"}}
PUT /v1/agents/mistaken                                  | /parallel_tool_calls                        | {"parallel_tool_calls": "yes"}
POST /v1/sessions                                        | /context_state/execution_count              | {"context_state": {"execution_count": "three"}}
POST /v1/sessions                                        | /message_history_state/messages             | {"message_history_state": {"messages": {}}}
"#;

/// Words that name types of the program rather than of JSON.
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
    for [request, pointer, body] in rows(FAULTS) {
        let (method, path) = request.split_once(' ').unwrap();
        let body = whole(request, serde_json::from_str(body).unwrap());
        let sent = service.send_json(method.parse().unwrap(), path, body.to_string());
        let shown = format!("{request} {body}");
        assert_plain(&assert_refused(sent, "invalid_field", pointer, &shown).await);
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

//! Agents whose hooks would take more than their share of every run are refused when they are stored.

use serde_json::{Value, json};

use super::service::Service;

on_every_store!(hooks_are_bounded_in_number_and_in_what_their_patterns_take,);

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
        answer.assert_problem(code);
        assert_eq!(answer.json()["errors"][0]["pointer"], pointer);
    }
    for hooks in [limits(32), redaction(4)] {
        service.put("/v1/agents/large", &agent(hooks)).await.ok();
    }
}

//! Tests against the golden files of queued requests: `queued_request-vN.json` is the fixture as
//! version N of the format wrote it.

use serde_json::json;

use super::{file, fixtures};
use crate::json::Value;
use crate::session::Setting;
use crate::store::codec::QueuedRequest;
use crate::store::queue::UnreadableRequest;

/// The fixture of a version. Version 1 has no overrides, version 2 no environment of another
/// session, and version 3 no answers.
fn fixture(version: u32) -> QueuedRequest {
    let id = |n: u8| format!("0190d9b4-5a00-7000-8000-0000000000{n}");
    let hash = |n: u8| format!("{n:064}");
    let mut request = json!({
        "base_session_id": id(10),
        "agent": "summer",
        "mode": "async",
        "durability": "step",
        "priority": -3,
        "thread": "ada",
        "if_busy": "interrupt",
        "webhook": {"url": "https://example.org/hook", "events": ["run.completed", "run.failed"], "secret": "hooks"},
        "idempotency": {"key": "k-1", "digest": hash(1)},
        "model": "openai/gpt-5-mini",
        "budget": {
            "max_steps": 3, "max_tokens": 1000, "max_seconds": 1.5, "max_cost": 0.25, "deadline": "2026-01-02T03:04:05.250Z",
        },
        "metadata": {"ticket": 7},
        "variables": {"mood": null, "name": "Ada"},
        "response_format": {"type": "json_schema", "name": "sum", "schema": {"type": "object"}, "strict": true},
        "conflict": "reject",
        "limits": {"max_steps": 5, "agents": ["su*"]},
        "events": {"subagents": true},
    });
    if version > 1 {
        request["overrides"] = json!({"parameters": {"temperature": 0.5}, "system_prompt": null});
    }
    if version > 2 {
        request["environment_from"] = json!(id(11));
    }
    if version > 3 {
        let answer =
            |n: u8, content: Value| json!({"call_id": format!("c{n}"), "arguments_hash": hash(n), "content": content});
        request["answers"] = json!({
            "answers": [
                answer(1, json!({"result": {"value": {"celsius": 21}, "is_error": true}})),
                answer(2, json!({"approve": {"remember": true}})),
                answer(3, json!({"edit": {"arguments": {"a": 1}}})),
                answer(4, json!({"deny": {"reason": "No."}})),
            ],
            "deny_open": true,
            "accepted_at": "2026-01-02T03:04:05Z",
        });
    }
    QueuedRequest {
        request: serde_json::from_value(request).unwrap(),
        input: vec![(*fixtures::messages()[0]).clone()],
        pinned: serde_json::from_value(json!({"agent": hash(2), "agent_id": id(16), "team": {"reader": hash(3)}}))
            .unwrap(),
    }
}

#[test]
fn what_every_version_wrote_of_a_request_is_read_and_written() {
    for version in [1, 2, 3, 4] {
        let golden = std::fs::read_to_string(file(&format!("queued_request-v{version}.json"))).unwrap();
        let expected = fixture(version);
        assert_eq!(QueuedRequest::from_json(&golden).unwrap(), expected);
        assert_eq!(expected.to_json().unwrap(), golden, "version {version}");
    }
    let overrides = fixture(2).request.overrides;
    assert_eq!(
        (overrides.system_prompt, overrides.tools),
        (Setting::Cleared, Setting::Kept)
    );
}

#[test]
fn a_request_of_the_future_is_left_to_a_newer_version() {
    let read = QueuedRequest::from_json(r#"{"version": 5, "accepted": "dreams"}"#);
    assert!(matches!(read, Err(UnreadableRequest::Newer(_))), "{read:?}");
    // Unknown fields in a known version of the format are ignored.
    let mut stored: serde_json::Value = serde_json::from_str(&fixture(1).to_json().unwrap()).unwrap();
    stored["accepted"]["request"]["zz_new"] = json!(1);
    assert_eq!(QueuedRequest::from_json(&stored.to_string()).unwrap(), fixture(1));
}

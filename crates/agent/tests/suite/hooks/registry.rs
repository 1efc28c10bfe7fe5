//! Hooks by name: what can't be attached is refused with a reason, and each execution has instances
//! of its own.

use agent::builtin_hooks;
use agent::definition::HookConfig;
use agent::hooks::{HookConfigError, HookRegistry};
use serde_json::json;
use values::json::Value;

fn hook(name: &str, config: impl Into<Value>) -> HookConfig {
    serde_json::from_value(json!({"name": name, "config": config.into()})).unwrap()
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let registry = HookRegistry::new(builtin_hooks());
    let error = registry.check(&[hook("audit", json!({}))]).unwrap_err();
    assert!(matches!(&error, HookConfigError::Unknown { name, .. } if name == "audit"));
    let message = error.to_string();
    assert!(
        message.starts_with("no hook is named \"audit\"; known are "),
        "{message}"
    );
    for name in [
        "context_config",
        "finish_reason",
        "limits",
        "redaction",
        "self_critique",
    ] {
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_wrong_configuration_is_refused_with_its_key() {
    let registry = HookRegistry::new(builtin_hooks());
    for (name, config, fault) in [
        ("limits", json!({}), "it sets no limit"),
        ("limits", json!({"max_step": 1}), "max_step: unknown field `max_step`"),
        ("limits", json!({"max_steps": 0}), "max_steps must be at least 1"),
        (
            "limits",
            json!({"max_steps": "many"}),
            "max_steps: invalid type: string",
        ),
        ("limits", json!({"deadline": "soon"}), "deadline: "),
        ("finish_reason", json!({}), "missing field `stop_on`"),
        (
            "finish_reason",
            json!({"stop_on": []}),
            "stop_on names no finish reason",
        ),
        ("finish_reason", json!({"stop_on": [""]}), "stop_on has an empty name"),
        (
            "finish_reason",
            json!({"stop_on": [1]}),
            "stop_on[0]: invalid type: integer",
        ),
        (
            "context_config",
            json!({}),
            "it sets neither system_prompt nor response_format",
        ),
        (
            "context_config",
            json!({"system_prompt": "{{"}),
            "the system prompt can't be rendered",
        ),
        (
            "context_config",
            json!({"response_format": {"type": "verse"}}),
            "response_format",
        ),
        ("self_critique", json!({}), "missing field `criteria`"),
        ("self_critique", json!({"criteria": " "}), "criteria is empty"),
        (
            "self_critique",
            json!({"criteria": "c", "max_rounds": 0}),
            "max_rounds is between 1 and 5",
        ),
        (
            "self_critique",
            json!({"criteria": "c", "max_rounds": 6}),
            "max_rounds is between 1 and 5",
        ),
        (
            "self_critique",
            json!({"criteria": "c".repeat(10_001)}),
            "criteria is longer than 10000 bytes",
        ),
        (
            "redaction",
            json!({"patterns": [{"name": "a", "regex": "("}]}),
            "the pattern \"a\" can't be used",
        ),
    ] {
        let error = registry.check(&[hook(name, config.clone())]).unwrap_err().to_string();
        let begin = format!("the configuration of the hook {name:?} is wrong: {fault}");
        assert!(error.starts_with(&begin), "{config}: {error}");
    }
}

#[test]
fn what_is_right_is_attached_as_often_as_wanted() {
    let registry = HookRegistry::new(builtin_hooks());
    let hooks = [
        hook(
            "limits",
            json!({"max_steps": 1, "max_cost": 0.5, "deadline": "2030-01-01T00:00:00Z"}),
        ),
        hook("limits", json!({"max_seconds": 1.5})),
        hook("finish_reason", json!({"stop_on": ["length", "a provider's word"]})),
        hook("context_config", json!({"response_format": {"type": "json_object"}})),
        hook("self_critique", json!({"criteria": "c"})),
        hook(
            "redaction",
            json!({"patterns": [{"name": "a", "regex": "a+", "replacement": ""}]}),
        ),
    ];
    registry.check(&hooks).unwrap();
}

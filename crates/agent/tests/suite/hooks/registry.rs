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
    let mut rows: Vec<(String, Value, String)> = serde_json::from_str(include_str!("registry.json")).unwrap();
    let long = json!({"criteria": "c".repeat(10_001)});
    rows.push((
        "self_critique".to_owned(),
        long,
        "criteria is longer than 10000 bytes".to_owned(),
    ));
    for (name, config, fault) in rows {
        let error = registry.check(&[hook(&name, config.clone())]).unwrap_err().to_string();
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

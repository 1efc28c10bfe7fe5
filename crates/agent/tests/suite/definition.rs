//! Definitions of agents that can't work are refused, in words that name the fault.

use agent::answers::ApprovalRule;
use agent::definition::AgentDefinition;
use serde_json::{Value, json};

/// Returns the faults of a definition with these fields, each after the name of its field.
fn faults(changes: &Value) -> Vec<String> {
    let tools = ["calculator", "current_time", "search_tools", "git_push", "git_pull"];
    let mut definition = json!({"name": "lead", "model": "m/m", "tools": tools});
    let fields = changes.as_object().unwrap().clone();
    definition.as_object_mut().unwrap().extend(fields);
    let definition: AgentDefinition = match serde_json::from_value(definition) {
        Ok(definition) => definition,
        Err(error) => return vec![error.to_string()],
    };
    let within = |field: &str, checked: Result<(), String>| checked.map_err(|fault| format!("{field}: {fault}"));
    let subagents = definition.check_subagents();
    let checks = [
        subagents.map_err(|(field, fault)| format!("{field}: {fault}")),
        within("client_tools", definition.check_client_tools()),
        within("approvals", ApprovalRule::check_all(&definition.approvals)),
        within("compiler", definition.compiler.check()),
        within("deferred_tools", definition.check_deferred_tools()),
        within("script", definition.check_script()),
    ];
    checks.into_iter().filter_map(Result::err).collect()
}

/// Checks that each value of a field has one fault, with these words.
#[track_caller]
fn assert_refused(field: &str, cases: &[(Value, &str)]) {
    for (value, words) in cases {
        let found = faults(&json!({field: value}));
        assert!(
            found.len() == 1 && found[0].contains(words),
            "{field} {value}: {found:?} without {words}"
        );
    }
}

#[test]
fn a_definition_that_can_work_has_no_fault() {
    let rule = json!({"tools": ["shell"], "approval": "always"});
    for changes in [
        json!({}),
        json!({"subagents": [{"agent": "a"}, {"agent": "a", "tool": "another"}, {"agent": "lead"}]}),
        json!({"subagents": [{"agent": "v1.2", "tools": ["current_time"], "budget": {"max_steps": 3}}]}),
        json!({"subagents": [{"agent": "a", "tools": []}], "max_depth": 8}),
        json!({"max_depth": 0}),
        json!({"client_tools": [{"name": "ask"}, {"name": "tell"}]}),
        json!({"approvals": vec![rule; 64]}),
        json!({"deferred_tools": ["git_*"]}),
        json!({"deferred_tools": ["git_push", "*_pull"]}),
        json!({"deferred_tools": ["*"]}),
        json!({"driver": "scripted", "script": [{"text": "x", "error": {"message": "m"}}]}),
        json!({"driver": "scripted", "script": [{"tool_calls": [{"name": "t"}]}]}),
    ] {
        assert_eq!(faults(&changes), [""; 0], "{changes}");
    }
}

#[test]
fn subagents_that_can_not_work_are_refused() {
    let many: Vec<Value> = (0..33).map(|n| json!({"agent": format!("a{n}")})).collect();
    assert_refused(
        "subagents",
        &[
            (json!([{"agent": ""}]), "subagents: "),
            (json!([{"agent": ""}]), "name of an agent"),
            (json!([{"agent": "a b"}]), "name of an agent"),
            (json!([{"agent": "a", "tool": "a.b"}]), "not \"a.b\""),
            (json!([{"agent": "a", "tool": ""}]), "1 to 64"),
            (json!([{"agent": "a", "tool": "x".repeat(65)}]), "1 to 64"),
            (
                json!([{"agent": "a"}, {"agent": "a"}]),
                "give the subagent \"a\" a `tool`",
            ),
            (
                json!([{"agent": "a", "tool": "t"}, {"agent": "b", "tool": "t"}]),
                "give the subagent \"b\" another `tool`",
            ),
            (json!([{"agent": "a.b"}, {"agent": "a_b"}]), "two tools"),
            (json!([{"agent": "calculator"}]), "two tools"),
            (json!([{"agent": "a", "tools": ["web"]}]), "\"web\""),
            (json!([{"agent": "a", "budget": {"max_steps": 0}}]), "the budget of a"),
            (json!(many), "the most are 32"),
        ],
    );
    assert_refused("max_depth", &[(json!(9), "max_depth: the most is 8")]);
}

#[test]
fn tools_that_can_not_work_are_refused() {
    let tool = |field: &str, value: Value| json!([{"name": "a", field: value}]);
    assert_refused(
        "client_tools",
        &[
            (tool("name", json!("a.b")), "not \"a.b\""),
            (
                tool("name", json!("calculator")),
                "two tools would be named \"calculator\"",
            ),
            (json!([{"name": "a"}, {"name": "a"}]), "two tools would be named \"a\""),
            (tool("parameters", json!({"type": "string"})), "its parameters"),
            (
                tool("response_schema", json!({"type": "nothing"})),
                "its response_schema",
            ),
            (tool("expires_after_seconds", json!(31_536_001)), "to 31536000"),
            (json!(vec![json!({"name": "a"}); 129]), "the most are 128"),
        ],
    );
    assert_refused(
        "deferred_tools",
        &[
            (json!(["git_*", "svn_*"]), "\"svn_*\" matches none"),
            (json!(["search_tools"]), "\"search_tools\" matches none"),
            (json!(vec!["git_push"; 257]), "the most are 256"),
        ],
    );
}

#[test]
fn rules_and_steps_that_can_not_work_are_refused() {
    let rule = |field: &str, value: Value| {
        let mut rule = json!({"tools": ["shell"], "approval": "always"});
        rule[field] = value;
        json!([rule])
    };
    let never = json!([{"tools": ["shell"], "approval": "never", "remember": true}]);
    assert_refused(
        "approvals",
        &[
            (rule("tools", json!([])), "the rule 1: "),
            (rule("tools", json!([])), "1 to 64 tools"),
            (rule("arguments", json!({"command": "x"})), "no JSON pointer"),
            (rule("arguments", json!({"/command": "x".repeat(1_001)})), "1000 bytes"),
            (rule("expires_after_seconds", json!(0)), "from 1"),
            (never, "no approval to `remember`"),
            (
                json!(vec![json!({"tools": ["shell"], "approval": "always"}); 65]),
                "the most are 64",
            ),
        ],
    );
    let error = json!({"kind": "timeout", "message": "m"});
    for (step, words) in [
        (json!({}), "a step has text, tool_calls or an error"),
        (
            json!({"tool_calls": [{"name": "t"}], "error": error}),
            "a step with an error calls no tools",
        ),
    ] {
        let found = faults(&json!({"driver": "scripted", "script": [step]}));
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }
}

#[test]
fn compilers_without_sense_are_refused() {
    assert_refused(
        "compiler",
        &[
            (json!({"kind": "magic"}), "unknown variant `magic`"),
            (json!({"messages": 3}), "missing field `kind`"),
            (
                json!({"kind": "conversation", "messages": 3}),
                "unknown field `messages`",
            ),
            (json!({"kind": "all_sections", "names": []}), "unknown field `names`"),
            (json!({"kind": "sections"}), "missing field `names`"),
            (
                json!({"kind": "sections", "names": []}),
                "without the section `messages`",
            ),
            (
                json!({"kind": "sections", "names": ["buffer"]}),
                "without the section `messages`",
            ),
            (
                json!({"kind": "sections", "names": ["messages", "a b"]}),
                "\"a b\" is no section",
            ),
            (
                json!({"kind": "sections", "names": ["messages", "messages"]}),
                "named twice",
            ),
            (json!({"kind": "last_n", "messages": 0}), "not at least 1"),
            (json!({"kind": "last_n", "messages": -1}), "invalid value"),
            (json!({"kind": "token_window", "max_tokens": 0}), "not at least 1"),
        ],
    );
}

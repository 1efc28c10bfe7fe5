//! The rules of an agent about which calls need an approval.
//!
//! The first rule that matches a call decides. A call that no rule matches needs no approval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use values::json::{Value, is_default};
use values::limits::Pattern;
use values::session::{Hash, hash_approval_rule};

/// The most rules of an agent.
const MAX_RULES: usize = 64;
/// The most patterns of a rule, for tools and for arguments.
const MAX_PATTERNS: usize = 64;
/// The longest pattern of an argument, in bytes.
const MAX_PATTERN_BYTES: usize = 1_000;
/// The longest pointer to an argument, in bytes.
const MAX_POINTER_BYTES: usize = 200;

/// Whether calls need an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// The tools that the rule is about, subagents included; `*` stands for any text.
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 64)]
    pub tools: Vec<Pattern>,
    /// Whether the calls need an approval.
    pub approval: ApprovalChoice,
    /// Patterns of arguments, by JSON pointer, such as `/command`. The rule is only about calls
    /// whose arguments match all of them. `*` stands for any text. A value other than a text is
    /// compared as JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// Whether an approval may cover later calls that this rule is about; by default not.
    #[serde(default, skip_serializing_if = "is_default")]
    pub remember: bool,
    /// How long a call waits, in seconds; by default `runs.answer_expiry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub expires_after_seconds: Option<u32>,
}

/// Whether a call needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChoice {
    /// The caller decides about each call.
    Always,
    /// The call is executed at once.
    Never,
}

impl ApprovalRule {
    /// Returns whether the rule is about a call.
    pub(super) fn matches(&self, tool: &str, arguments: &Value) -> bool {
        let is_matched = |(pointer, pattern): (&String, &String)| {
            arguments.pointer(pointer).is_some_and(|argument| match argument {
                Value::String(text) => Pattern::text_matches(pattern, text),
                other => Pattern::text_matches(pattern, &other.to_string()),
            })
        };
        self.tools.iter().any(|pattern| pattern.matches(tool)) && self.arguments.iter().all(is_matched)
    }

    /// Returns the hash by which remembered approvals name the rule.
    pub(super) fn hash(&self) -> Hash {
        hash_approval_rule(self)
    }

    /// Checks the rules of an agent. The error says what is wrong.
    pub fn check_all(rules: &[Self]) -> Result<(), String> {
        if rules.len() > MAX_RULES {
            return Err(format!("the most are {MAX_RULES}"));
        }
        let mut numbered = rules.iter().zip(1..);
        numbered.try_for_each(|(rule, number)| {
            let checked = rule.check();
            checked.map_err(|fault| format!("the rule {number}: {fault}"))
        })
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_PATTERNS).contains(&self.tools.len()) || self.arguments.len() > MAX_PATTERNS {
            return Err(format!(
                "a rule has 1 to {MAX_PATTERNS} tools, and patterns of at most {MAX_PATTERNS} arguments"
            ));
        }
        for (pointer, pattern) in &self.arguments {
            if !pointer.starts_with('/') || pointer.len() > MAX_POINTER_BYTES {
                return Err(format!(
                    "{pointer:?} is no JSON pointer to an argument, such as `/command`, of at most {MAX_POINTER_BYTES} bytes"
                ));
            }
            if pattern.len() > MAX_PATTERN_BYTES {
                return Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"));
            }
        }
        if self.remember && self.approval == ApprovalChoice::Never {
            return Err("there is no approval to `remember` where the approval is `never`".to_owned());
        }
        check_expiry(self.expires_after_seconds)
    }
}

/// Checks the time after which an open call expires.
pub(super) fn check_expiry(seconds: Option<u32>) -> Result<(), String> {
    if seconds.is_none_or(|seconds| (1..=31_536_000).contains(&seconds)) {
        Ok(())
    } else {
        Err("expires_after_seconds is from 1 to 31536000".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> ApprovalRule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_rule_matches_tools_and_all_arguments() {
        let deletes = rule(json!({"tools": ["shell", "delete_*"], "approval": "always"}));
        for (tool, expected) in [
            ("shell", true),
            ("delete_file", true),
            ("shell2", false),
            ("read", false),
        ] {
            assert_eq!(deletes.matches(tool, &json!({})), expected, "{tool}");
        }
        let commands = rule(json!({
            "tools": ["shell"], "approval": "always", "arguments": {"/command": "rm *", "/options/force": "true"},
        }));
        for (arguments, expected) in [
            (json!({"command": "rm -r a b", "options": {"force": true}}), true),
            (json!({"command": "rm -r a b", "options": {"force": "true"}}), true),
            (json!({"command": "rm -r a b", "options": {"force": false}}), false),
            (json!({"command": "rm -r a b"}), false),
            (json!({"command": "ls", "options": {"force": true}}), false),
            (json!({}), false),
        ] {
            assert_eq!(commands.matches("shell", &arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn a_changed_rule_has_another_hash() {
        let base = json!({"tools": ["shell"], "approval": "always", "remember": true});
        let hash = rule(base.clone()).hash();
        assert_eq!(rule(base.clone()).hash(), hash);
        for (field, value) in [
            ("tools", json!(["shell", "a"])),
            ("arguments", json!({"/a": "b"})),
            ("expires_after_seconds", json!(5)),
        ] {
            let mut changed = base.clone();
            changed[field] = value;
            assert_ne!(rule(changed).hash(), hash, "{field}");
        }
    }
}

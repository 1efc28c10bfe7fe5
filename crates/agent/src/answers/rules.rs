//! Decides whether a call needs an answer of the caller, at the moment when it would be executed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde::Deserialize;

use super::approval::{ApprovalChoice, ApprovalRule};
use super::client_tool::ClientTool;
use values::clock::Timestamp;
use values::json::Value;
use values::session::{Hash, PinnedTool, RememberedApproval};
use values::settings::duration;

/// The times that open calls wait for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct AnswerExpiry {
    /// The default time of a call.
    #[serde(rename = "answer_expiry", deserialize_with = "duration::<1_000, 31_536_000_000, _>")]
    pub default: Duration,
    /// The longest time of a call.
    #[serde(
        rename = "max_answer_expiry",
        deserialize_with = "duration::<1_000, 31_536_000_000, _>"
    )]
    pub max: Duration,
}

impl Default for AnswerExpiry {
    fn default() -> Self {
        Self {
            default: Duration::from_hours(24 * 7),
            max: Duration::from_hours(24 * 30),
        }
    }
}

/// The rules for the calls of an execution that need an answer of the caller.
#[derive(Debug, Clone, Default)]
pub struct AnswerRules {
    /// The rules of the agent itself, and of the ancestors of a subagent. If one of them asks for
    /// an approval, the call needs one.
    pub approvals: Vec<Arc<[ApprovalRule]>>,
    /// The tools that the caller executes.
    pub client_tools: Arc<[ClientTool]>,
    /// Whether the agent is a subagent, whose calls can't wait.
    pub is_subagent: bool,
    /// The tools of servers whose definition has changed, by name. Their calls need an approval.
    pub changed_tools: Arc<BTreeMap<String, PinnedTool>>,
    /// The times that open calls wait.
    pub expiry: AnswerExpiry,
}

/// The need of a call.
#[derive(Debug)]
pub(crate) struct Need {
    /// The kind of answer.
    pub(crate) kind: NeedKind,
    /// The time that the call waits for it.
    pub(crate) expires_after: TimeDelta,
}

/// The kind of answer that a call needs.
#[derive(Debug)]
pub(crate) enum NeedKind {
    /// A result that fits the schema.
    Result { schema: Value },
    /// A decision.
    Approval {
        /// The rule, if the approval may be remembered.
        remembers: Option<Hash>,
    },
    /// A decision, since the definition of the tool is not the one that the session has accepted.
    ChangedTool {
        /// The definition that an approval accepts.
        accepts: PinnedTool,
    },
    /// Input for the tool.
    Input {
        /// The question of the tool.
        message: String,
        /// The schema of the input.
        schema: Value,
    },
}

impl AnswerRules {
    /// Returns whether no call needs an answer.
    pub(crate) fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.client_tools.is_empty() && self.changed_tools.is_empty()
    }

    /// Returns the need of a call whose tool has another definition than the session has accepted.
    pub(crate) fn need_of_changed(&self, tool: &str) -> Option<Need> {
        let accepts = self.changed_tools.get(tool)?.clone();
        Some(Need {
            kind: NeedKind::ChangedTool { accepts },
            expires_after: self.expires_after(None),
        })
    }

    /// Returns the need of a call whose tool asks for input.
    pub(crate) fn need_of_input(&self, message: String, schema: Value) -> Need {
        Need {
            kind: NeedKind::Input { message, schema },
            expires_after: self.expires_after(None),
        }
    }

    /// Returns the need of a call; `None` if the call needs no answer.
    pub(crate) fn need(&self, tool: &str, arguments: &Value, remembered: &[RememberedApproval]) -> Option<Need> {
        let client_tool = self.client_tools.iter().find(|client_tool| client_tool.name == tool);
        if let Some(client_tool) = client_tool {
            let schema = client_tool.response_schema.clone();
            return Some(Need {
                kind: NeedKind::Result {
                    schema: schema.unwrap_or(Value::Bool(true)),
                },
                expires_after: self.expires_after(client_tool.expires_after_seconds),
            });
        }
        let mut all_rules = self.approvals.iter();
        all_rules.find_map(|rules| {
            let rule = rules.iter().find(|rule| rule.matches(tool, arguments))?;
            let hash = rule.hash();
            let is_remembered = |approval: &RememberedApproval| approval.tool == tool && approval.rule == hash;
            if rule.approval == ApprovalChoice::Never || (rule.remember && remembered.iter().any(is_remembered)) {
                return None;
            }
            Some(Need {
                kind: NeedKind::Approval {
                    remembers: rule.remember.then_some(hash),
                },
                expires_after: self.expires_after(rule.expires_after_seconds),
            })
        })
    }

    fn expires_after(&self, seconds: Option<u32>) -> TimeDelta {
        let wanted = seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let allowed = wanted.unwrap_or(self.expiry.default).min(self.expiry.max);
        TimeDelta::from_std(allowed).unwrap_or(TimeDelta::MAX)
    }
}

impl Need {
    /// Returns the time at which a call that waits from now on expires.
    pub(crate) fn expires_at(&self, now: Timestamp) -> Timestamp {
        now.checked_add_signed(self.expires_after).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(approvals: Value) -> Arc<[ApprovalRule]> {
        serde_json::from_value::<Vec<ApprovalRule>>(approvals).unwrap().into()
    }

    /// Returns whether a call needs an approval, and the rule that it may be remembered for.
    fn approved(rules: &AnswerRules, tool: &str, remembered: &[RememberedApproval]) -> (bool, Option<Hash>) {
        match rules.need(tool, &json!({}), remembered).map(|need| need.kind) {
            None => (false, None),
            Some(NeedKind::Approval { remembers }) => (true, remembers),
            Some(other) => panic!("an approval is expected, not {other:?}"),
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = AnswerRules {
            approvals: vec![rules(json!([
                {"tools": ["read_*"], "approval": "never"},
                {"tools": ["*"], "approval": "always"},
            ]))],
            ..AnswerRules::default()
        };
        assert_eq!(approved(&rules, "read_file", &[]), (false, None));
        assert_eq!(approved(&rules, "shell", &[]), (true, None));
    }

    #[test]
    fn an_approval_is_needed_if_one_of_the_agents_asks_for_it() {
        let never = rules(json!([{"tools": ["*"], "approval": "never"}]));
        let always = rules(json!([{"tools": ["shell"], "approval": "always"}]));
        for approvals in [vec![never.clone(), always.clone()], vec![always, never]] {
            let rules = AnswerRules {
                approvals,
                ..AnswerRules::default()
            };
            assert_eq!(approved(&rules, "shell", &[]), (true, None));
            assert_eq!(approved(&rules, "other", &[]), (false, None));
        }
    }

    #[test]
    fn a_remembered_approval_covers_its_tool_under_its_rule() {
        let own = rules(json!([{"tools": ["*"], "approval": "always", "remember": true}]));
        let hash = own[0].hash();
        let of = |approvals| AnswerRules {
            approvals: vec![approvals],
            ..AnswerRules::default()
        };
        let remembered = [RememberedApproval {
            tool: "shell".to_owned(),
            rule: hash,
        }];
        let first = of(own);
        assert_eq!(approved(&first, "shell", &[]), (true, Some(hash)));
        assert_eq!(approved(&first, "shell", &remembered), (false, None));
        assert_eq!(approved(&first, "other", &remembered), (true, Some(hash)));
        let forgetful = of(rules(json!([{"tools": ["*"], "approval": "always"}])));
        assert_eq!(approved(&forgetful, "shell", &remembered), (true, None));
    }

    #[test]
    fn a_call_waits_no_longer_than_the_service_allows() {
        let rules = AnswerRules {
            expiry: AnswerExpiry {
                default: Duration::from_mins(1),
                max: Duration::from_secs(100),
            },
            ..AnswerRules::default()
        };
        for (wanted, expected) in [(None, 60), (Some(5), 5), (Some(1_000), 100)] {
            assert_eq!(rules.expires_after(wanted), TimeDelta::seconds(expected));
        }
    }
}

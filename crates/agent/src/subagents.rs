//! The rules for the subagents of a definition. Does not check whether they exist.

use std::collections::BTreeSet;

use super::definition::{AgentDefinition, SubagentConfig};
use super::ports::ToolSpec;

/// The most other agents that one definition may name.
const MAX_SUBAGENTS: usize = 32;
/// The most levels of agents below an agent.
const MAX_DEPTH: u32 = 8;

impl AgentDefinition {
    /// Checks the references to other agents. The error names the field and what is wrong.
    pub fn check_subagents(&self) -> Result<(), (&'static str, String)> {
        if self.max_depth > MAX_DEPTH {
            return Err(("max_depth", format!("the most is {MAX_DEPTH}")));
        }
        if self.subagents.len() > MAX_SUBAGENTS {
            return Err(("subagents", format!("the most are {MAX_SUBAGENTS}")));
        }
        let mut names: BTreeSet<String> = self.tools.iter().cloned().collect();
        for subagent in &self.subagents {
            let in_field = |message| ("subagents", message);
            self.check_subagent(subagent).map_err(in_field)?;
            let name = subagent.tool_name();
            if names.contains(&name) {
                let advice = match subagent.tool {
                    Some(_) => "another `tool`",
                    None => "a `tool`",
                };
                return Err(in_field(format!(
                    "two tools would be named {name:?}; give the subagent {:?} {advice}",
                    subagent.agent
                )));
            }
            names.insert(name);
        }
        Ok(())
    }

    fn check_subagent(&self, subagent: &SubagentConfig) -> Result<(), String> {
        let SubagentConfig { agent, tools, .. } = subagent;
        if !Self::is_valid_name(agent) {
            return Err(format!("{agent:?} can't be the name of an agent"));
        }
        let tool = subagent.tool_name();
        if !ToolSpec::is_valid_name(&tool) {
            let rule = "a tool is named by 1 to 64 letters, digits, `-` and `_`";
            return Err(format!("{rule}, not {tool:?}"));
        }
        let foreign = tools.iter().flatten().find(|tool| !self.tools.contains(tool));
        if let Some(foreign) = foreign {
            return Err(format!(
                "{agent} can't be given the tool {foreign:?}, which this agent does not have"
            ));
        }
        let budget = subagent.budget.check();
        budget.map_err(|(field, rule)| format!("the budget of {agent}: {field} {rule}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use values::json::Value;

    fn check(changes: &[(&str, Value)]) -> Result<(), (&'static str, String)> {
        let mut definition = json!({"name": "lead", "model": "m/m", "tools": ["calculator", "current_time"]});
        for (field, value) in changes {
            definition[*field] = value.clone();
        }
        let definition: AgentDefinition = serde_json::from_value(definition).unwrap();
        definition.check_subagents()
    }

    #[test]
    fn what_can_work_is_accepted() {
        let good = [
            json!([]),
            json!([{"agent": "a"}, {"agent": "a", "tool": "another"}, {"agent": "lead"}]),
            json!([{"agent": "v1.2", "tools": ["current_time"], "budget": {"max_steps": 3}}]),
            json!([{"agent": "a", "tools": []}]),
        ];
        for subagents in good {
            check(&[("subagents", subagents.clone())]).unwrap_or_else(|fault| panic!("{subagents}: {fault:?}"));
        }
        for depth in [0, 3, 8] {
            check(&[("max_depth", json!(depth))]).unwrap();
        }
    }

    #[test]
    fn what_can_not_work_is_refused_with_its_field() {
        let many: Vec<Value> = (0..33).map(|n| json!({"agent": format!("a{n}")})).collect();
        for (subagents, words) in [
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
        ] {
            let (field, message) = check(&[("subagents", subagents.clone())]).unwrap_err();
            assert_eq!(field, "subagents", "{subagents}");
            assert!(message.contains(words), "{subagents}: {message}");
        }
        let (field, message) = check(&[("max_depth", json!(9))]).unwrap_err();
        assert_eq!((field, message.as_str()), ("max_depth", "the most is 8"));
    }
}

//! The rules for the subagents of a definition. Does not check whether they exist.

use std::collections::BTreeSet;

use super::agent::{AgentDefinition, SubagentConfig};
use crate::ports::ToolSpec;

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

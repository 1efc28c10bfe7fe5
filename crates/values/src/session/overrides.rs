//! Overrides: the settings of a session that replace its agent's definition (document 001, "Session
//! Data": `llmConfig`).
//!
//! They apply until a request changes them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::json::{Object, Value};
use crate::model_parameters::ModelParameters;

/// The most tools.
const MAX_TOOLS: usize = 1024;

/// The settings of a session that override its agent's definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// How the model shall answer; a parameter that is absent is the agent's.
    #[serde(skip_serializing_if = "ModelParameters::is_empty")]
    pub parameters: ModelParameters,
    /// Instructions above the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools of the agent that the model may call, and no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl Overrides {
    /// Returns whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the overrides in an `Arc`, or `None` if nothing is overridden.
    pub fn into_shared(self) -> Option<Arc<Self>> {
        (!self.is_empty()).then(|| Arc::new(self))
    }

    /// Returns the parameters in force.
    pub fn parameters_over(&self, agent: &Arc<ModelParameters>) -> Arc<ModelParameters> {
        if self.parameters.is_empty() {
            Arc::clone(agent)
        } else {
            Arc::new(self.parameters.over(agent))
        }
    }

    /// Returns the agent's tools that the model may call, in the agent's order.
    pub fn tools_of(&self, agent: &[String]) -> Vec<String> {
        let is_chosen = |tool: &&String| self.tools.as_ref().is_none_or(|chosen| chosen.contains(tool));
        agent.iter().filter(is_chosen).cloned().collect()
    }

    /// Checks the parameters and the tools without the agent. The error names the field and what is
    /// wrong with it.
    pub fn check(&self) -> Result<(), (Cow<'static, str>, String)> {
        let parameters = self.parameters.check();
        parameters.map_err(|(field, rule)| (format!("parameters.{field}").into(), rule.to_owned()))?;
        // Callers may not set these fields, since they can use everything that the operator's key
        // allows.
        if !self.parameters.extra.is_empty() {
            let words = "extra fields are the agent's alone";
            return Err(("parameters.extra".into(), words.to_owned()));
        }
        if self.tools.as_ref().is_some_and(|tools| tools.len() > MAX_TOOLS) {
            return Err(("tools".into(), format!("at most {MAX_TOOLS} tools are allowed")));
        }
        Ok(())
    }
}

/// Reads the overrides of a stored session. An override that this version can't read is dropped, so
/// the agent's value applies.
pub fn stored_overrides<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Overrides>>, D::Error> {
    let mut stored = object(Value::deserialize(deserializer)?);
    let parameters = object(stored.remove("parameters").unwrap_or_default());
    let known = parameters
        .into_iter()
        .filter_map(|field| read::<ModelParameters>(Value::Object(Object::from_iter([field]))));
    let overrides = Overrides {
        parameters: known.fold(ModelParameters::default(), |read, one| one.over(&read)),
        system_prompt: stored.remove("system_prompt").and_then(read),
        tools: stored.remove("tools").and_then(read),
    };
    Ok(overrides.into_shared())
}

fn object(stored: Value) -> Object {
    match stored {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

fn read<T: DeserializeOwned>(stored: Value) -> Option<T> {
    serde_json::from_value(stored).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_session_may_not_set_is_named() {
        for (overrides, field) in [
            (json!({"parameters": {"temperature": 3}}), "parameters.temperature"),
            (json!({"parameters": {"extra": {"seed": 1}}}), "parameters.extra"),
            (json!({"tools": vec!["x"; 1025]}), "tools"),
        ] {
            let overrides: Overrides = serde_json::from_value(overrides).unwrap();
            assert_eq!(overrides.check().unwrap_err().0, field);
        }
        assert_eq!(Overrides::default().check(), Ok(()));
    }

    #[test]
    fn what_is_not_read_is_the_agents_and_nothing_else() {
        let read = |stored: Value| stored_overrides(stored).unwrap().map(Arc::unwrap_or_clone);
        let known = json!({"parameters": {"temperature": 0.5}, "system_prompt": "", "tools": ["a"]});
        let known: Overrides = serde_json::from_value(known).unwrap();
        let stored = json!({
            "parameters": {"temperature": 0.5, "heat": 1, "tool_choice": {"one_of": ["a"]}}, "system_prompt": "",
            "tools": ["a"], "mood": "fine",
        });
        assert_eq!(read(stored), Some(known.clone()));
        let tools = Overrides {
            tools: known.tools.clone(),
            ..Overrides::default()
        };
        assert_eq!(
            read(json!({"parameters": 1, "system_prompt": {}, "tools": ["a"]})),
            Some(tools)
        );
        for nothing in [json!([]), json!({}), json!(null)] {
            assert_eq!(read(nothing.clone()), None, "{nothing}");
        }
    }
}

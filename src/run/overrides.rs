//! The overrides of a run: what the request changes of the session's deviations from its agent's
//! definition.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::Refusal;
use crate::agent::{AgentDefinition, check_prompt};
use crate::model_parameters::ModelParameters;
use crate::off_thread::off_thread;
use crate::session::{Bundle, Overrides};
use crate::tenant::TenantId;

/// What a request says of one thing that its session may set. In JSON, `null` clears it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// It stays as it is.
    #[default]
    Kept,
    /// The agent's is in force again.
    Cleared,
    /// This is in force from now on.
    Set(T),
}

impl<T> Setting<T> {
    /// Tells whether nothing changes.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Kept)
    }

    /// Reads the stored form: nothing leaves it as it is, and `None` clears it.
    pub(super) fn from_stored(stored: Option<Option<T>>) -> Self {
        match stored {
            None => Self::Kept,
            Some(None) => Self::Cleared,
            Some(Some(value)) => Self::Set(value),
        }
    }

    /// Returns the stored form.
    pub(super) fn into_stored(self) -> Option<Option<T>> {
        match self {
            Self::Kept => None,
            Self::Cleared => Some(None),
            Self::Set(value) => Some(Some(value)),
        }
    }

    fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Kept | Self::Cleared => None,
        }
    }

    fn onto(self, base: Option<T>) -> Option<T> {
        match self {
            Self::Kept => base,
            Self::Cleared => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<T: Serialize> Serialize for Setting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::deserialize(deserializer)?;
        Ok(value.map_or(Self::Cleared, Self::Set))
    }
}

/// What a request says of all that its session may set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OverrideChanges {
    /// How the model shall answer.
    pub parameters: Setting<ModelParameters>,
    /// Instructions above the conversation.
    pub system_prompt: Setting<String>,
    /// The tools of the agent that the model may call.
    pub tools: Setting<Vec<String>>,
}

impl OverrideChanges {
    /// Tells whether nothing changes.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn onto(self, base: Overrides) -> Overrides {
        let parameters = self.parameters.onto(Some(base.parameters));
        Overrides {
            parameters: parameters.unwrap_or_default(),
            system_prompt: self.system_prompt.onto(base.system_prompt),
            tools: self.tools.onto(base.tools),
        }
    }
}

/// Returns what the session of a run sets. A request can leave out tools and add none: which ones an agent has is its author's choice.
pub(super) async fn overrides_of(
    tenant: &TenantId,
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    changes: &OverrideChanges,
) -> Result<Option<Arc<Overrides>>, Refusal> {
    let unknown = changes
        .tools
        .value()
        .and_then(|tools| tools.iter().find(|tool| !agent.tools.contains(tool)));
    if let Some(unknown) = unknown {
        // It names none: what an agent of a file has is its operator's to tell.
        let message = format!("the agent {:?} has no tool {unknown:?}", agent.name);
        return Err(Refusal::invalid("tools", message));
    }
    if let Some(prompt) = changes.system_prompt.value().cloned() {
        off_thread(tenant, move || check_prompt(&prompt)).await?;
    }
    let base = bundle.and_then(|bundle| bundle.context.overrides.clone());
    let overrides = if changes.is_empty() {
        base
    } else {
        let base = base.map(Arc::unwrap_or_clone).unwrap_or_default();
        changes.clone().onto(base).into_shared()
    };
    let nothing = Overrides::default();
    let set = overrides.as_deref().unwrap_or(&nothing);
    let checked = set.check();
    checked.map_err(|(field, message)| Refusal::invalid(field, message))?;
    let parameters = set.parameters.over(&agent.parameters);
    agent
        .check_tool_choice_of(&parameters, &set.tools_of(&agent.tools))
        .map_err(|message| {
            // The choice, or else the tools that it has to choose from.
            let is_chosen = changes.parameters.value().is_some_and(|set| set.tool_choice.is_some());
            Refusal::invalid(if is_chosen { "parameters.tool_choice" } else { "tools" }, message)
        })?;
    Ok(overrides)
}

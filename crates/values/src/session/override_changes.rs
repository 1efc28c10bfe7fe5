//! Changes of a session's overrides.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::overrides::Overrides;
use crate::model_parameters::ModelParameters;

/// The change of one override. In JSON, `null` clears it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// The override stays as it is.
    #[default]
    Kept,
    /// The agent's value applies again.
    Cleared,
    /// This value applies from now on.
    Set(T),
}

impl<T> Setting<T> {
    /// Returns whether nothing changes.
    pub fn is_retained(&self) -> bool {
        matches!(self, Self::Kept)
    }

    /// Returns the new value, if one is set.
    pub fn value(&self) -> Option<&T> {
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

/// The changes of all overrides of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverrideChanges {
    /// The model parameters.
    #[serde(skip_serializing_if = "Setting::is_retained")]
    pub parameters: Setting<ModelParameters>,
    /// Instructions above the conversation.
    #[serde(skip_serializing_if = "Setting::is_retained")]
    pub system_prompt: Setting<String>,
    /// The tools of the agent that the model may call.
    #[serde(skip_serializing_if = "Setting::is_retained")]
    pub tools: Setting<Vec<String>>,
}

impl OverrideChanges {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the changes.
    pub fn onto(self, base: Overrides) -> Overrides {
        let parameters = self.parameters.onto(Some(base.parameters));
        Overrides {
            parameters: parameters.unwrap_or_default(),
            system_prompt: self.system_prompt.onto(base.system_prompt),
            tools: self.tools.onto(base.tools),
        }
    }
}

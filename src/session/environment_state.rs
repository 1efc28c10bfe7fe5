//! The environment in a bundle: variables and opaque, keyed resources. Unknown keys are retained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{Object, Value};

/// What an environment is restored from and exported to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct EnvironmentState {
    /// Values that tools and prompts can read, by name.
    pub variables: BTreeMap<String, Value>,
    /// What a resource needs to be restored, by its key; opaque to all but the resource.
    pub resources: BTreeMap<String, Value>,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: Object,
}

impl EnvironmentState {
    /// Returns the state with variables set; a `null` removes its variable.
    #[must_use]
    pub fn with_variables(mut self, changes: BTreeMap<String, Value>) -> Self {
        for (name, value) in changes {
            if value.is_null() {
                self.variables.remove(&name);
            } else {
                self.variables.insert(name, value);
            }
        }
        self
    }
}

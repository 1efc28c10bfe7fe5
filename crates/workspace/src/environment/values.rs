//! Variables and resources as tools, hooks and prompts see them at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::EnvironmentError;
use values::json::Value;
use values::session::{change_values, check_resources, check_variables};

/// The variables and resources of an environment. Clones are cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnvironmentValues {
    /// Values that tools and prompts can read, by name.
    pub variables: Arc<BTreeMap<String, Value>>,
    /// The stored form of each resource, by its key; opaque to all but the resource.
    pub resources: Arc<BTreeMap<String, Value>>,
}

impl EnvironmentValues {
    /// Returns the values with variables set; a `null` removes its variable.
    #[must_use]
    pub fn with_variables(mut self, changes: BTreeMap<String, Value>) -> Self {
        apply(&mut self.variables, changes);
        self
    }

    /// Returns the values with resources set; a `null` removes its resource.
    #[must_use]
    pub fn with_resources(mut self, changes: BTreeMap<String, Value>) -> Self {
        apply(&mut self.resources, changes);
        self
    }

    /// Returns the changes that lead from these variables to others; `null` for a removed one.
    pub fn changed_variables(&self, after: &Self) -> BTreeMap<String, Value> {
        changes(&self.variables, &after.variables)
    }

    /// Applies the changes that lead from `before` to `after`, and no others. So changes that were
    /// made since `before` survive.
    #[must_use]
    pub(super) fn with_changes(self, before: &Self, after: &Self) -> Self {
        self.with_variables(before.changed_variables(after))
            .with_resources(changes(&before.resources, &after.resources))
    }

    /// Checks the limits of those values that differ from `before`.
    pub(super) fn check_changes(&self, before: &Self) -> Result<(), EnvironmentError> {
        if self.variables != before.variables {
            check_variables(&self.variables).map_err(EnvironmentError::Variables)?;
        }
        if self.resources != before.resources {
            check_resources(&self.resources).map_err(EnvironmentError::Resources)?;
        }
        Ok(())
    }
}

fn apply(values: &mut Arc<BTreeMap<String, Value>>, changes: BTreeMap<String, Value>) {
    if !changes.is_empty() {
        change_values(Arc::make_mut(values), changes);
    }
}

/// Returns the changes that lead from one map to another; a removed value is `null`.
fn changes(before: &Arc<BTreeMap<String, Value>>, after: &Arc<BTreeMap<String, Value>>) -> BTreeMap<String, Value> {
    if Arc::ptr_eq(before, after) {
        return BTreeMap::new();
    }
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let set = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    let set = set.map(|(name, value)| (name.clone(), value.clone()));
    removed.map(|name| (name.clone(), Value::Null)).chain(set).collect()
}

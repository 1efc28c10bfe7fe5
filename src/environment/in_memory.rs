//! Environments in memory: variables to read, and resources and unknown keys that pass through
//! unchanged.
//!
//! A runtime with more state, such as a workspace of files, restores it from its own key in
//! `resources` and exports it there.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::agent::ports::{Environment, EnvironmentError, EnvironmentRuntime};
use crate::json::{Object, Value};
use crate::session::EnvironmentState;

/// Restores environments that live in memory only.
#[derive(Debug, Clone, Copy, Default)]
pub struct InMemoryEnvironments;

#[derive(Debug)]
struct InMemoryEnvironment {
    variables: Arc<BTreeMap<String, Value>>,
    resources: BTreeMap<String, Value>,
    other: Object,
}

impl EnvironmentRuntime for InMemoryEnvironments {
    fn restore<'a>(
        &'a self,
        state: &'a EnvironmentState,
    ) -> BoxFuture<'a, Result<Box<dyn Environment>, EnvironmentError>> {
        let EnvironmentState {
            variables,
            resources,
            other,
        } = state.clone();
        Box::pin(ready(Ok(Box::new(InMemoryEnvironment {
            variables: Arc::new(variables),
            resources,
            other,
        }) as Box<dyn Environment>)))
    }
}

impl Environment for InMemoryEnvironment {
    fn variables(&self) -> Arc<BTreeMap<String, Value>> {
        Arc::clone(&self.variables)
    }

    fn export(&self) -> BoxFuture<'_, Result<EnvironmentState, EnvironmentError>> {
        Box::pin(ready(Ok(EnvironmentState {
            variables: (*self.variables).clone(),
            resources: self.resources.clone(),
            other: self.other.clone(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,8}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn named() -> impl Strategy<Value = BTreeMap<String, Value>> {
        prop::collection::btree_map(".{0,8}", any_json(), 0..4)
    }

    proptest! {
        #[test]
        fn an_exported_state_equals_the_restored_one(variables in named(), resources in named(), other in named()) {
            let mut stored = Object::from_iter(other);
            stored.insert("variables".to_owned(), serde_json::to_value(&variables).unwrap());
            stored.insert("resources".to_owned(), serde_json::to_value(&resources).unwrap());
            let state: EnvironmentState = serde_json::from_value(Value::Object(stored.clone())).unwrap();

            let environment = InMemoryEnvironments.restore(&state).now_or_never().unwrap().unwrap();
            prop_assert_eq!(&*environment.variables(), &variables);
            let exported = environment.export().now_or_never().unwrap().unwrap();

            prop_assert_eq!(&exported, &state);
            prop_assert_eq!(serde_json::to_value(&exported).unwrap(), Value::Object(stored));
        }
    }
}

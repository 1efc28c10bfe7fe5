//! The differences between two bundles: messages after the last shared one, and keys of the two
//! states.

use std::sync::Arc;

use serde::Serialize;

use super::bundle::Bundle;
use crate::json::{Object, Value, escape_token};
use crate::message::Message;

/// How one bundle differs from another.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct BundleDiff {
    /// How many messages both begin with.
    pub shared_messages: u64,
    /// The messages that only the left bundle has after those.
    pub left_messages: Vec<Arc<Message>>,
    /// The messages that only the right bundle has after those.
    pub right_messages: Vec<Arc<Message>>,
    /// Keys of the contexts that differ.
    pub context: Vec<ValueChange>,
    /// Keys of the environments that differ.
    pub environment: Vec<ValueChange>,
}

/// The differences between the states of two bundles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatesDiff {
    /// Keys of the contexts that differ.
    pub context: Vec<ValueChange>,
    /// Keys of the environments that differ.
    pub environment: Vec<ValueChange>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ValueChange {
    /// A JSON pointer (RFC 6901) to the value.
    pub path: String,
    /// The left value; absent when only the right one has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Value>,
    /// The right value; absent when only the left one has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Value>,
}

/// Compares two bundles. Their histories must be whole, since messages that are not loaded count as
/// shared or absent.
pub fn diff_bundles(left: &Bundle, right: &Bundle) -> Result<BundleDiff, serde_json::Error> {
    let pairs = left.history.iter().zip(right.history.iter());
    let shared = pairs
        .take_while(|(left, right)| Arc::ptr_eq(left, right) || left == right)
        .count();
    let states = diff_states(left, right)?;
    Ok(BundleDiff {
        shared_messages: shared as u64,
        left_messages: left.history.iter_from(shared).cloned().collect(),
        right_messages: right.history.iter_from(shared).cloned().collect(),
        context: states.context,
        environment: states.environment,
    })
}

/// Compares the states of two bundles.
pub fn diff_states(left: &Bundle, right: &Bundle) -> Result<StatesDiff, serde_json::Error> {
    let mut diff = StatesDiff::default();
    let states = (
        serde_json::to_value(left.context_state())?,
        serde_json::to_value(right.context_state())?,
    );
    diff_values("", Some(&states.0), Some(&states.1), &mut diff.context);
    let states = (
        serde_json::to_value(&left.environment)?,
        serde_json::to_value(&right.environment)?,
    );
    diff_values("", Some(&states.0), Some(&states.1), &mut diff.environment);
    Ok(diff)
}

/// Adds the differences of two values. Descends into objects only, no deeper than the stored JSON.
fn diff_values(path: &str, left: Option<&Value>, right: Option<&Value>, changes: &mut Vec<ValueChange>) {
    match (left, right) {
        (Some(left), Some(right)) if left == right => (),
        (Some(Value::Object(left)), Some(Value::Object(right))) => diff_objects(path, left, right, changes),
        _ => changes.push(ValueChange {
            path: path.to_owned(),
            left: left.cloned(),
            right: right.cloned(),
        }),
    }
}

fn diff_objects(path: &str, left: &Object, right: &Object, changes: &mut Vec<ValueChange>) {
    let only_right = right.keys().filter(|key| !left.contains_key(*key));
    for key in left.keys().chain(only_right) {
        let path = format!("{path}/{}", escape_token(key));
        diff_values(&path, left.get(key), right.get(key), changes);
    }
}

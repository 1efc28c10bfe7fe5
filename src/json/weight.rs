//! About how much memory values take.

use super::{Object, Value};

/// What an entry of an object or an array weighs besides its text.
const ENTRY_BYTES: usize = 64;

/// Estimates how many bytes of memory an object takes.
pub fn object_weight(object: &Object) -> usize {
    let entries = object.iter();
    entries
        .map(|(key, value)| ENTRY_BYTES + key.len() + value_weight(value))
        .sum()
}

/// Estimates how many bytes of memory a value takes.
pub fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| ENTRY_BYTES + value_weight(item)).sum(),
        Value::Object(object) => object_weight(object),
    }
}

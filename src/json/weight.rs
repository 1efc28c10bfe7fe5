//! Estimates the memory that JSON values take.

use super::{Object, Value};

/// What an entry of an object, an array or a message weighs besides its text.
pub const ENTRY_BYTES: usize = 64;

/// Estimates how many bytes of memory an object takes.
pub fn object_weight(object: &Object) -> usize {
    weigh_object(object, str::len)
}

/// Estimates how many bytes of memory a value takes.
pub fn value_weight(value: &Value) -> usize {
    weigh_value(value, str::len)
}

/// Estimates how many bytes an object takes, given those of a text.
pub fn weigh_object(object: &Object, text: fn(&str) -> usize) -> usize {
    let entries = object.iter();
    entries
        .map(|(key, value)| ENTRY_BYTES + text(key) + weigh_value(value, text))
        .sum()
}

/// Estimates how many bytes a value takes, given those of a text.
pub fn weigh_value(value: &Value, text: fn(&str) -> usize) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(words) => text(words),
        Value::Array(items) => items.iter().map(|item| ENTRY_BYTES + weigh_value(item, text)).sum(),
        Value::Object(object) => weigh_object(object, text),
    }
}

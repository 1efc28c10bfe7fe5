//! Estimates the memory that JSON values take, and counts them.

use super::{Object, Value};

/// The memory of an entry of an object, an array or a message without its text.
pub const ENTRY_BYTES: usize = 64;

/// Estimates how many bytes of memory an object takes.
pub fn object_weight(object: &Object) -> usize {
    weigh_object(object, str::len)
}

/// Estimates how many bytes of memory a value takes.
pub fn value_weight(value: &Value) -> usize {
    weigh_value(value, str::len)
}

/// Estimates the bytes of an object; `text` returns the bytes of a text.
pub fn weigh_object(object: &Object, text: fn(&str) -> usize) -> usize {
    let entries = object.iter();
    entries
        .map(|(key, value)| ENTRY_BYTES + text(key) + weigh_value(value, text))
        .sum()
}

/// Estimates the bytes of a value; `text` returns the bytes of a text.
pub fn weigh_value(value: &Value, text: fn(&str) -> usize) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(words) => text(words),
        Value::Array(items) => items.iter().map(|item| ENTRY_BYTES + weigh_value(item, text)).sum(),
        Value::Object(object) => weigh_object(object, text),
    }
}

/// Counts the values: the value itself and all inside it.
pub fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count_values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

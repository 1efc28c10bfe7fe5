//! Estimates what the library copies of a schema: when it compiles the schema, and into each error.

use crate::json::Value;

/// What an entry of an object takes beside its name, with the node of the tree that it may have to
/// itself.
const ENTRY_BYTES: usize = 640;
/// The digits of an index, and the `/` before it.
const INDEX_BYTES: usize = 6;
/// What describes a schema and is never quoted.
const ANNOTATIONS: [&str; 4] = ["title", "description", "default", "$comment"];

/// Bytes that the library copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// When it compiles the schema: each part holds the pointer to itself, and each `not` what it
    /// denies.
    pub(super) compiled: usize,
    /// The longest pointer.
    pub(super) pointer: usize,
    /// The longest text that an error may quote.
    pub(super) text: usize,
    /// The largest schema that a `not` denies.
    pub(super) denied: usize,
}

impl Held {
    /// Adds the value at a pointer of this length. Its depth is bounded before.
    pub(super) fn add(&mut self, value: &Value, pointer: usize) {
        self.pointer = self.pointer.max(pointer);
        match value {
            Value::Object(entries) => {
                for (name, value) in entries {
                    // Each `~` and `/` of a name takes two bytes.
                    let pointer = pointer + 1 + name.len() + name.matches(['~', '/']).count();
                    self.compiled = self.compiled.saturating_add(pointer);
                    if name == "not" {
                        let denied = memory(value);
                        self.denied = self.denied.max(denied);
                        self.compiled = self.compiled.saturating_add(denied);
                    }
                    if !(value.is_string() && ANNOTATIONS.contains(&name.as_str())) {
                        self.add(value, pointer);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if !item.is_string() && !item.is_number() {
                        self.compiled = self.compiled.saturating_add(pointer + INDEX_BYTES);
                    }
                    self.add(item, pointer + INDEX_BYTES);
                }
            }
            Value::String(text) => self.text = self.text.max(text.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
    }
}

/// Returns about how many bytes a copy of the value takes.
fn memory(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Array(items) => items.iter().map(memory).sum(),
            Value::Object(entries) => entries
                .iter()
                .map(|(name, value)| ENTRY_BYTES + name.len() + memory(value))
                .sum(),
            Value::String(text) => text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

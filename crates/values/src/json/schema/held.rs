//! Estimates the parts of a schema that the library copies when it compiles the schema, and into
//! each error.

use crate::json::Value;

/// The memory of an object's entry without its name, including a tree node that it may occupy
/// alone.
const ENTRY_BYTES: usize = 640;
/// The digits of an index, and the `/` before it.
const INDEX_BYTES: usize = 6;
/// Keywords that describe a schema. Errors never quote them.
const ANNOTATIONS: [&str; 4] = ["title", "description", "default", "$comment"];

/// Bytes that the library copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Copies at compilation: each part has the pointer to itself, and each `not` has its schema.
    pub(super) compiled: usize,
    /// The longest pointer.
    pub(super) pointer: usize,
    /// The longest text that an error may quote.
    pub(super) text: usize,
    /// The size of the largest schema in a `not`.
    pub(super) denied: usize,
}

impl Held {
    /// Adds the value at a pointer of this length. The caller must bound the depth first.
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

//! The values that a template reads, with the cost of reading them.
//!
//! The engine counts its instructions, but one instruction can touch a whole value, for example to
//! compare two lists. So lists and objects charge each item that they return to an allowance. Once
//! the allowance is spent they are empty, and the rendering is discarded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::value::{Enumerator, Object, ObjectExt as _, ObjectRepr, Value};

use values::json;

/// The cost of an item in addition to its bytes.
const ITEM: usize = 16;

/// The bytes that a rendering may still read.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Allowance {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(bytes)))
    }

    /// Returns whether the allowance is spent. If so, the rendered text may be wrong.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Charges and returns an item. Returning an error would be simpler, but the engine can't
    /// compare one.
    fn hand_out(&self, value: Option<&Value>) -> Option<Value> {
        let bytes = value.and_then(Value::as_str).map_or(0, str::len).saturating_add(ITEM);
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes as u64);
        // Only one thread renders, so no other charge happens between the load and the store.
        self.0.store(left.unwrap_or(0), Ordering::Relaxed);
        left.and_then(|_| value.cloned())
    }
}

/// Returns the value as the engine reads it.
pub(super) fn value_of(value: &json::Value, allowance: &Arc<Allowance>) -> Value {
    use json::Value as J;
    match value {
        J::Null => Value::from(()),
        J::Bool(value) => Value::from(*value),
        J::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        J::String(text) => Value::from(text.as_str()),
        J::Array(items) => Value::from_object(List {
            items: items.iter().map(|item| value_of(item, allowance)).collect(),
            allowance: Arc::clone(allowance),
        }),
        J::Object(entries) => object_of(entries, allowance),
    }
}

/// Returns an object as the engine reads it.
pub(super) fn object_of<'a>(
    entries: impl IntoIterator<Item = (&'a String, &'a json::Value)>,
    allowance: &Arc<Allowance>,
) -> Value {
    let entries = entries.into_iter();
    Value::from_object(Entries {
        entries: entries
            .map(|(key, value)| (Arc::from(key.as_str()), value_of(value, allowance)))
            .collect(),
        allowance: Arc::clone(allowance),
    })
}

/// Returns the length of the longest text within a value, keys included, in bytes.
pub(super) fn longest_text(value: &json::Value) -> usize {
    use json::Value as J;
    match value {
        J::String(text) => text.len(),
        J::Array(items) => items.iter().map(longest_text).max().unwrap_or(0),
        J::Object(entries) => longest_entry(entries),
        J::Null | J::Bool(_) | J::Number(_) => 0,
    }
}

/// Returns the length of the longest text within an object, in bytes.
pub(super) fn longest_entry<'a>(entries: impl IntoIterator<Item = (&'a String, &'a json::Value)>) -> usize {
    let lengths = entries
        .into_iter()
        .map(|(key, value)| key.len().max(longest_text(value)));
    lengths.max().unwrap_or(0)
}

#[derive(Debug)]
struct List {
    items: Vec<Value>,
    allowance: Arc<Allowance>,
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.allowance
            .hand_out(key.as_usize().and_then(|index| self.items.get(index)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.allowance.is_spent() {
            return Enumerator::Empty;
        }
        Enumerator::Seq(self.items.len())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

#[derive(Debug)]
struct Entries {
    entries: BTreeMap<Arc<str>, Value>,
    allowance: Arc<Allowance>,
}

impl Object for Entries {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.allowance.hand_out(self.entries.get(key))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.allowance.is_spent() {
            return Enumerator::Empty;
        }
        self.mapped_enumerator(|this| Box::new(this.entries.keys().map(|key| Value::from(Arc::clone(key)))))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }
}

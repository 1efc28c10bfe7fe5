//! Retains the parts of stored JSON that this version can't read: fields and names from a later
//! version.
//!
//! An [`Unread`] next to a value is the difference between the stored JSON and the JSON that the
//! value serialises to. It is written back with the value. So unknown fields survive in every
//! object. An unknown name, for example of a stop reason, loads as `Unknown` and retains its text
//! until the value changes.
//!
//! To detect unknown parts in a list of messages, the list is serialised again and compared. So a
//! new field must not be written if it has its default value.
//!
//! This module does not know what values mean.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Object, Value};

/// The part of stored JSON that this version can't read. It is empty for JSON that this version
/// wrote.
///
/// Changes since the read take precedence. A name is restored only if its value has not changed.
/// The unread part of a list's item is restored only if the item is the same. Unknown fields of an
/// object are restored unless its `type` has changed.
#[derive(Clone, Default, PartialEq)]
pub struct Unread(Option<Arc<Patch>>);

#[derive(Clone, PartialEq)]
enum Patch {
    /// A value of an unknown form, and the value that was read instead.
    Value { read: Value, stored: Value },
    /// Unknown fields, and fields that are only partly read.
    Object {
        kind: Option<Value>,
        unknown: Object,
        partly: BTreeMap<String, Patch>,
    },
    /// Items that are only partly read.
    Array(Vec<Item>),
}

#[derive(Clone, PartialEq)]
struct Item {
    index: usize,
    read: Value,
    patch: Patch,
}

/// The field with the kind of an object.
const TYPE: &str = "type";

/// Reads a value, and the part of the JSON that the value can't hold.
pub fn read_open<T: DeserializeOwned + Serialize>(stored: &Value) -> Result<(T, Unread), serde_json::Error> {
    let value = T::deserialize(stored)?;
    let unread = Unread::between(&serde_json::to_value(&value)?, stored);
    Ok((value, unread))
}

/// Writes a value with its unread part.
pub fn write_open<T: Serialize>(value: &T, unread: &Unread) -> Result<Value, serde_json::Error> {
    let mut written = serde_json::to_value(value)?;
    unread.restore(&mut written);
    Ok(written)
}

impl Unread {
    /// Returns the part of the stored JSON that is missing in `read`, the JSON of the value that
    /// was read.
    pub fn between(read: &Value, stored: &Value) -> Self {
        Self(patch(read, stored).map(Arc::new))
    }

    /// Returns whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds the unread part to the JSON of a value.
    pub fn restore(&self, written: &mut Value) {
        if let Some(patch) = &self.0 {
            patch.apply(written);
        }
    }
}

impl fmt::Debug for Unread {
    /// Hides the content, which may be as private as a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() {
            "Unread(nothing)"
        } else {
            "Unread(..)"
        })
    }
}

fn patch(read: &Value, stored: &Value) -> Option<Patch> {
    match (read, stored) {
        (Value::Object(read), Value::Object(stored)) => patch_object(read, stored),
        (Value::Array(read), Value::Array(stored)) if read.len() == stored.len() => patch_array(read, stored),
        (read, stored) => (read != stored).then(|| Patch::Value {
            read: read.clone(),
            stored: stored.clone(),
        }),
    }
}

fn patch_object(read: &Object, stored: &Object) -> Option<Patch> {
    let mut unknown = Object::new();
    let mut partly = BTreeMap::new();
    for (name, stored) in stored {
        match read.get(name) {
            None => {
                unknown.insert(name.clone(), stored.clone());
            }
            Some(read) => partly.extend(patch(read, stored).map(|patch| (name.clone(), patch))),
        }
    }
    let is_whole = unknown.is_empty() && partly.is_empty();
    (!is_whole).then(|| Patch::Object {
        kind: read.get(TYPE).cloned(),
        unknown,
        partly,
    })
}

fn patch_array(read: &[Value], stored: &[Value]) -> Option<Patch> {
    let pairs = read.iter().zip(stored).enumerate();
    let items: Vec<Item> = pairs
        .filter_map(|(index, (read, stored))| {
            let patch = patch(read, stored)?;
            let read = read.clone();
            Some(Item { index, read, patch })
        })
        .collect();
    (!items.is_empty()).then_some(Patch::Array(items))
}

impl Patch {
    fn apply(&self, written: &mut Value) {
        match (self, written) {
            (Self::Value { read, stored }, written) if read == written => *written = stored.clone(),
            (Self::Object { kind, unknown, partly }, Value::Object(written)) if written.get(TYPE) == kind.as_ref() => {
                for (name, patch) in partly {
                    if let Some(written) = written.get_mut(name) {
                        patch.apply(written);
                    }
                }
                for (name, value) in unknown {
                    written.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            (Self::Array(items), Value::Array(written)) => {
                for item in items {
                    if let Some(written) = written.get_mut(item.index).filter(|written| **written == item.read) {
                        item.patch.apply(written);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        Red,
        #[serde(other)]
        Unknown,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Known {
        colour: Colour,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inner: Option<Inner>,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Inner {
        n: u8,
    }

    fn read(stored: &Value) -> (Known, Unread) {
        read_open(stored).unwrap()
    }

    #[test]
    fn all_that_was_read_leaves_nothing() {
        for stored in [
            json!({"colour": "red"}),
            json!({"colour": "red", "inner": {"n": 1}, "list": [{"n": 2}]}),
        ] {
            assert!(read(&stored).1.is_empty(), "{stored}");
        }
    }

    #[test]
    fn unknown_fields_and_names_are_written_again() {
        let stored = json!({
            "colour": "blue", "list": [{"n": 1}, {"n": 2, "m": [1, {}]}], "inner": {"n": 3, "x": null}, "new": {"a": 1},
        });
        let (known, unread) = read(&stored);
        assert_eq!(known.colour, Colour::Unknown);
        assert_eq!(write_open(&known, &unread).unwrap(), stored);
    }

    #[test]
    fn what_has_changed_takes_nothing_old_along() {
        let stored = json!({"colour": "blue", "list": [{"n": 1, "m": 1}, {"n": 2, "m": 2}], "inner": {"n": 3, "x": 4}, "new": 5});
        let (known, unread) = read(&stored);
        let changed = Known {
            colour: Colour::Red,
            list: vec![Inner { n: 7 }, Inner { n: 2 }, Inner { n: 8 }],
            inner: Some(Inner { n: 9 }),
        };
        let written = write_open(&changed, &unread).unwrap();
        let expected = json!({
            "colour": "red", "list": [{"n": 7}, {"n": 2, "m": 2}, {"n": 8}], "inner": {"n": 9, "x": 4}, "new": 5,
        });
        assert_eq!(written, expected);
        let without = Known {
            inner: None,
            list: Vec::new(),
            ..known
        };
        assert_eq!(
            write_open(&without, &unread).unwrap(),
            json!({"colour": "blue", "list": [], "new": 5})
        );
        let unread = Unread::between(&json!({"type": "text"}), &json!({"type": "hologram", "depth": 3}));
        let mut written = json!({"type": "table"});
        unread.restore(&mut written);
        assert_eq!(written, json!({"type": "table"}));
    }

    #[test]
    fn debug_shows_no_content() {
        let (_, unread) = read(&json!({"colour": "red", "new": "secret"}));
        assert_eq!(
            format!("{unread:?} {:?}", Unread::default()),
            "Unread(..) Unread(nothing)"
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Checks for every type of stored JSON that an unchanged value is written back completely.
        #[test]
        fn nothing_stored_is_lost(read in values(), stored in values()) {
            let mut written = read.clone();
            Unread::between(&read, &stored).restore(&mut written);
            let lost = Unread::between(&written, &stored);
            prop_assert!(lost.is_empty(), "{read} {stored} {written}");
        }
    }
}

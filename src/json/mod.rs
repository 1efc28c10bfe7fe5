//! JSON as data: objects, verbatim fragments, canonical bytes, strict reading and schemas, and what a value could not hold of what it
//! was read from. No IO.

mod objects;
mod same;
mod schema;
mod strict;
mod unread;
mod weight;
mod words;

use std::borrow::Borrow;
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
pub use serde_json::Value;

pub use self::objects::{Objects, from_objects};
pub use self::same::is_same;
pub use self::schema::{JsonSchema, SchemaError, SchemaViolations};
pub use self::strict::{parse_strict, parse_strict_prefix};
pub use self::unread::{Unread, read_open, write_open};
pub use self::weight::{object_weight, value_weight};
pub use self::words::plain_words;

/// A JSON object; keys are kept in sorted order.
pub type Object = serde_json::Map<String, Value>;

/// Reads a field that may be absent; unlike serde's own reading of an option, `null` is a value.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The text of a JSON value exactly as it came, so that it can be sent back byte for byte.
///
/// Serialises as a JSON string that holds the text: a nested value would lose spacing, key order and long numbers.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Keeps the text of a value.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RawJson {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({})", self.0)
    }
}

/// Encodes a value so that equal values give equal bytes: keys sorted, no spacing.
pub fn canonical_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&serde_json::to_value(value)?)
}

/// Counts the bytes of a value as JSON, without keeping them.
pub fn json_length<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut count = Count(0);
    // Counting never fails; a value without a form in JSON is found when it is written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Estimates the bytes of a value as JSON by its texts and the number of its parts. Cheaper than [`json_length`], which writes it.
pub fn estimated_length(value: &Value) -> usize {
    const PUNCTUATION: usize = 4;
    PUNCTUATION
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(estimated_length).sum(),
            Value::Object(entries) => {
                let entries = entries.iter();
                entries
                    .map(|(key, value)| key.len() + PUNCTUATION + estimated_length(value))
                    .sum()
            }
        }
}

/// Counts the items up to the one with which their bytes together reach so many.
pub fn count_reaching(bytes: usize, sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut sum = 0_usize;
    let is_short = |size: &usize| {
        let before = sum;
        sum = sum.saturating_add(*size);
        before < bytes
    };
    sizes.into_iter().take_while(is_short).count()
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tells whether a key or a string of the object has a NUL character, which PostgreSQL's text can't hold.
///
/// Objects come from parsers that bound their depth.
pub fn contains_nul(object: &Object) -> bool {
    object
        .iter()
        .any(|(key, value)| key.contains('\0') || value_contains_nul(value))
}

fn value_contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(value_contains_nul),
        Value::Object(object) => contains_nul(object),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_bytes_do_not_depend_on_the_order_of_keys() {
        let left: Value = serde_json::from_str(r#"{"b": 1, "a": {"d": [1, 2], "c": null}}"#).unwrap();
        let right: Value = serde_json::from_str(r#"{"a":{"c":null,"d":[1,2]},"b":1}"#).unwrap();
        assert_eq!(canonical_bytes(&left).unwrap(), canonical_bytes(&right).unwrap());
        assert_eq!(canonical_bytes(&left).unwrap(), br#"{"a":{"c":null,"d":[1,2]},"b":1}"#);
    }

    #[test]
    fn a_length_is_estimated_within_a_factor_of_three() {
        let schema = serde_json::json!({
            "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": {"city": {"type": "string", "description": "Where?"}, "days": {"minimum": 1, "maximum": 14}},
        });
        let long = "x".repeat(1_000);
        for value in [
            schema,
            serde_json::json!({}),
            serde_json::json!([null, true, 1.5]),
            serde_json::json!(vec![0; 1_000]),
            serde_json::json!({"deep": [[{"a": long}]]}),
            serde_json::json!({long: 1}),
        ] {
            let (length, estimated) = (json_length(&value), estimated_length(&value));
            assert!(
                (length / 3..=3 * length).contains(&estimated),
                "{estimated}, {length}: {value}"
            );
        }
    }

    #[test]
    fn numbers_keep_their_ordinary_semantics() {
        // `arbitrary_precision` and `preserve_order` would change hashes; another crate could turn them on.
        let value: Value = serde_json::from_str("[12345678901234567890123, 1.0]").unwrap();
        assert_eq!(value.to_string(), "[1.2345678901234568e+22,1.0]");
    }
}

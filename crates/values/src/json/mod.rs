//! JSON as data: objects, verbatim fragments, canonical bytes, strict parsing, schemas, and unknown
//! fields of stored values. No IO.

mod same;
mod scan;
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

pub use self::same::is_same;
pub use self::scan::{ScanFault, escape_token, scan_json};
pub use self::schema::{JsonSchema, SchemaError, SchemaViolations, WITH_NAMED_SCHEMAS, WITH_SCHEMAS, modernise_limits};
pub use self::strict::{parse_strict, parse_strict_prefix};
pub use self::unread::{Unread, read_open, write_open};
pub use self::weight::{count_values, weight};
pub use self::words::plain_words;

/// A JSON object; keys are sorted.
pub type Object = serde_json::Map<String, Value>;

/// Reads a field that may be absent. Unlike in serde's own handling of options, `null` is a value.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns JSON without a byte order mark, which RFC 8259 lets a reader ignore.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns whether a field has its default value, so that it can be omitted.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns `true`, the default of a field.
pub fn yes() -> bool {
    true
}

/// Returns whether a field has the default `true`, so that it can be omitted.
pub fn is_yes(value: &bool) -> bool {
    *value
}

/// The text of a JSON value exactly as it came, so that it can be sent back byte for byte.
///
/// Serialises as a JSON string that holds the text: a nested value would lose spacing, key order
/// and long numbers.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Stores the text of a value.
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

/// Counts the bytes of a value as JSON without storing them.
pub fn json_length<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut count = Count::up_to(usize::MAX);
    // Counting never fails. A value that JSON can't represent fails when it is written.
    let _ = serde_json::to_writer(&mut count, value);
    count.bytes
}

/// Counts the bytes of a value as JSON, if there are at most `most`. Reads not much more of a
/// larger value.
pub fn json_length_within<T: Serialize + ?Sized>(value: &T, most: usize) -> Option<usize> {
    let mut count = Count::up_to(most);
    serde_json::to_writer(&mut count, value).ok()?;
    Some(count.bytes)
}

/// Counts the bytes of a text as a JSON string without quotes. Cheaper than [`json_length`], which
/// writes the text.
pub fn escaped_length(text: &str) -> usize {
    // So few bytes that any sum fits in a byte. Such sums are computed for many bytes at once.
    const PIECE: usize = 48;
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | b'\x08' | b'\x0c' => 1,
        0..=0x1f => 5,
        _ => 0_u8,
    };
    let pieces = text.as_bytes().chunks(PIECE);
    let added = pieces.map(|piece| usize::from(piece.iter().map(|byte| more(*byte)).sum::<u8>()));
    text.len() + added.sum::<usize>()
}

/// Counts the items until the sum of their sizes reaches `bytes`.
pub fn count_reaching(bytes: usize, sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut sum = 0_usize;
    let is_short = |size: &usize| {
        let before = sum;
        sum = sum.saturating_add(*size);
        before < bytes
    };
    sizes.into_iter().take_while(is_short).count()
}

struct Count {
    bytes: usize,
    most: usize,
}

impl Count {
    fn up_to(most: usize) -> Self {
        Self { bytes: 0, most }
    }
}

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a key or a string of the object contains NUL, which PostgreSQL can't store as
/// text.
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
    fn a_length_is_counted_up_to_a_bound() {
        let value: Value = serde_json::from_str(r#"{"a": [1, "x\n"]}"#).unwrap();
        let length = value.to_string().len();
        assert_eq!(json_length(&value), length);
        assert_eq!(json_length_within(&value, length), Some(length));
        assert_eq!(json_length_within(&value, length - 1), None);
    }

    #[test]
    fn the_length_of_a_text_is_that_of_its_json() {
        let controls: String = (0..=0x7f_u8).map(char::from).collect();
        for text in [
            "",
            "plain",
            "a \"b\" \\ c\n",
            "Grüße ☕",
            &controls,
            &"\u{1}".repeat(1_000),
        ] {
            assert_eq!(escaped_length(text) + 2, json_length(text), "{text:?}");
        }
    }

    #[test]
    fn numbers_have_their_ordinary_semantics() {
        // Another crate could enable `arbitrary_precision` or `preserve_order`, which would change
        // hashes.
        let value: Value = serde_json::from_str("[12345678901234567890123, 1.0]").unwrap();
        assert_eq!(value.to_string(), "[1.2345678901234568e+22,1.0]");
    }
}

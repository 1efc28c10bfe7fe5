//! Parses JSON from others strictly: an object with a repeated key is an error. Repairs nothing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Object, Value};

/// Reads a text that is one JSON value.
pub fn parse_strict(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).map(|StrictValue(value)| value)
}

/// Reads the JSON value that a text begins with; returns it with the byte after its end.
pub fn parse_strict_prefix(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let StrictValue(value) = values
        .next()
        .unwrap_or_else(|| Err(serde_json::Error::custom("there is no value")))?;
    Ok((value, values.byte_offset()))
}

/// A JSON value in which no object has a key twice: `serde_json` alone would keep the last one silently.
struct StrictValue(Value);

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(StrictValue(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} appears twice")));
            }
            let StrictValue(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_from_the_beginning_of_a_text() {
        let (value, end) = parse_strict_prefix(r#" {"a": [1]} and more"#).unwrap();
        assert_eq!((value, end), (json!({"a": [1]}), 11));
        for text in ["", "  ", r#"{"a": 1, "a": 2}"#, r#"{"a": 1"#, "and {}"] {
            assert!(parse_strict_prefix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_whole_text_is_one_value() {
        assert_eq!(parse_strict(" [1] ").unwrap(), json!([1]));
        assert!(parse_strict("[1] 2").is_err());
        assert!(parse_strict(r#"[{"a": 1, "a": 1}]"#).is_err());
    }
}

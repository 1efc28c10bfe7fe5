//! Parses foreign JSON strictly. A repeated key is an error, and nothing is repaired.

use serde::de::Error as _;

use super::Value;
use super::scan::check_keys;

/// Parses a text that is one JSON value.
pub fn parse_strict(text: &str) -> Result<Value, serde_json::Error> {
    let value = serde_json::from_str(text)?;
    check_keys(text)?;
    Ok(value)
}

/// Parses the JSON value at the beginning of a text. Returns the value and the byte index after it.
pub fn parse_strict_prefix(text: &str) -> Result<(Value, usize), serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let none = || Err(serde_json::Error::custom("there is no value"));
    let value = values.next().unwrap_or_else(none)?;
    let end = values.byte_offset();
    check_keys(&text[..end])?;
    Ok((value, end))
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

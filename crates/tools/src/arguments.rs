//! Parses the arguments of a call strictly, from the model's text to a JSON object. Repairs
//! nothing.

use values::json::{Object, Value, parse_strict};

/// Reads the arguments of a call. A blank text means no arguments, as several models write it. The
/// error is for the model.
pub(super) fn parse_arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Object::new()));
    }
    let value = parse_strict(text)
        .map_err(|error| format!("the arguments are not valid JSON: {error}; write one JSON object"))?;
    let kind = match value {
        Value::Object(_) => return Ok(value),
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    Err(format!("the arguments are {kind}; they must be a JSON object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_and_nothing_means_no_arguments() {
        assert_eq!(parse_arguments("").unwrap(), json!({}));
        assert_eq!(parse_arguments(" \n").unwrap(), json!({}));
        let text = r#" {"a": [1, -2, 3.5, null, true, "x"], "b": {"a": 18446744073709551615}} "#;
        assert_eq!(
            parse_arguments(text).unwrap(),
            json!({"a": [1, -2, 3.5, null, true, "x"], "b": {"a": u64::MAX}})
        );
    }

    #[test]
    fn everything_else_is_refused() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let cases = [
            (r#"{"a": 1, "a": 2}"#, "the key \"a\" appears twice"),
            (r#"{"x": [{"a": 1, "a": 2}]}"#, "the key \"a\" appears twice"),
            (r#"{"a": 1"#, "EOF"),
            (r#"{"a": 1} {"b": 2}"#, "trailing characters"),
            ("{'a': 1}", "key must be a string"),
            (r#"{"a": 1e999}"#, "number out of range"),
            (&deep, "recursion limit"),
            ("null", "are null;"),
            ("[1]", "are an array;"),
            (r#""{}""#, "are a string;"),
            ("7", "are a number;"),
            ("false", "are a boolean;"),
        ];
        for (text, expected) in cases {
            let message = parse_arguments(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}

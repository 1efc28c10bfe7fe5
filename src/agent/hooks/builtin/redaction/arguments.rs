//! Arguments of tool calls: JSON before and JSON after.

use super::patterns::Patterns;
use crate::json::{Object, Value};

/// The only member of arguments of which nothing can be kept.
const WHOLE: &str = "redacted";

impl Patterns {
    /// Returns arguments without what the patterns find, in their text or in the values that it stands for. What was JSON stays JSON,
    /// and what holds nothing to remove stays the same bytes.
    pub(super) fn arguments(&self, text: &str) -> String {
        let replaced = self.text(text);
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return replaced.into_owned();
        };
        // Matches that reach over several members are found in the text alone, escaped ones in the values alone.
        let base = serde_json::from_str::<Value>(&replaced).unwrap_or_else(|_| value.clone());
        let redacted = self.value(base.clone());
        let text = if redacted != base {
            redacted.to_string()
        } else if base != value {
            replaced.into_owned()
        } else {
            text.to_owned()
        };
        if self.finds_in(&text) {
            let whole = Object::from_iter([(WHOLE.to_owned(), Value::Bool(true))]);
            return Value::Object(whole).to_string();
        }
        text
    }

    /// Returns a value without what the patterns find in its strings, keys and numbers.
    pub(super) fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text).into_owned()),
            Value::Number(number) => {
                let text = number.to_string();
                if self.finds_in(&text) {
                    Value::String(self.text(&text).into_owned())
                } else {
                    Value::Number(number)
                }
            }
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(object) => Value::Object(self.object(object)),
            value @ (Value::Null | Value::Bool(_)) => value,
        }
    }

    /// Does the same for an object.
    pub(super) fn object(&self, object: Object) -> Object {
        let redacted = object
            .into_iter()
            .map(|(key, value)| (self.text(&key).into_owned(), self.value(value)));
        redacted.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_lose_the_secret_and_stay_json() {
        let config = json!({"patterns": [
            {"name": "key", "regex": r"sk-\d+", "replacement": "[k]"},
            {"name": "card", "regex": r"\d{16}", "replacement": "[c]"},
            {"name": "password", "regex": r#""password"\s*:\s*"[^"]*""#, "replacement": "\"password_removed\":\"\""},
            {"name": "quoted", "regex": r#"secret""#, "replacement": "[q]"},
        ]});
        let Value::Object(config) = config else {
            panic!("no object")
        };
        let patterns = Patterns::read(&config).unwrap();
        for (given, redacted) in [
            (r#"{"a": "x"}"#, r#"{"a": "x"}"#),
            (r#"{"a": "sk-1", "b":  1e2}"#, r#"{"a": "[k]", "b":  1e2}"#),
            (r#"{"a": "sk\u002d1"}"#, r#"{"a":"[k]"}"#),
            (r#"{"sk-1": [["sk-2"]]}"#, r#"{"[k]": [["[k]"]]}"#),
            (r#"{"n": 4111111111111111}"#, r#"{"n":"[c]"}"#),
            (r#"{"n": "4111111111111111"}"#, r#"{"n": "[c]"}"#),
            (r#"{"password" : "hunter2"}"#, r#"{"password_removed":""}"#),
            // The text alone has a match, and without it there is no JSON.
            (r#"{"a": "secret"}"#, r#"{"redacted":true}"#),
            ("sk-1 is no JSON", "[k] is no JSON"),
            ("", ""),
        ] {
            assert_eq!(patterns.arguments(given), redacted, "{given}");
        }
    }
}

//! Redacts the arguments of tool calls: JSON before and JSON after.

use super::redactor::Redactor;
use values::json::{Object, Value};

/// The only member of arguments that were removed completely.
const WHOLE: &str = "redacted";

impl Redactor<'_> {
    /// Redacts matches in the text of arguments and in their parsed values. JSON stays JSON.
    /// Returns `None` if there are no matches.
    pub(super) fn arguments(&self, text: &str) -> Option<String> {
        if !self.finds_in_json(text) {
            return None;
        }
        let replaced = self.text(text);
        let replaced = replaced.as_deref().unwrap_or(text);
        // Only the text shows matches across several members, and only the values show escaped
        // matches.
        let parsed = [replaced, text]
            .into_iter()
            .find_map(|text| Some((serde_json::from_str::<Value>(text).ok()?, text)));
        let Some((mut value, base)) = parsed else {
            return Some(replaced.to_owned());
        };
        let redacted = if self.value(&mut value) {
            value.to_string()
        } else {
            base.to_owned()
        };
        // Of several members with the same key, the value has only the last, but the text has all.
        Some(if self.finds_in_json(&redacted) {
            whole()
        } else {
            redacted
        })
    }

    /// Redacts matches in the strings, keys and numbers of a value. Returns whether there were any.
    pub(super) fn value(&self, value: &mut Value) -> bool {
        let redacted = match value {
            Value::String(text) => self.text(text),
            Value::Number(number) => self.text(&number.to_string()),
            Value::Array(values) => return values.iter_mut().fold(false, |found, value| self.value(value) | found),
            Value::Object(object) => return self.object(object),
            Value::Null | Value::Bool(_) => None,
        };
        let found = redacted.is_some();
        if let Some(redacted) = redacted {
            *value = Value::String(redacted);
        }
        found
    }

    /// Does the same for an object.
    pub(super) fn object(&self, object: &mut Object) -> bool {
        let in_values = object
            .values_mut()
            .fold(false, |found, value| self.value(value) | found);
        let in_keys = object.keys().any(|key| self.finds_in(key));
        if in_keys {
            let entries = std::mem::take(object).into_iter();
            *object = entries
                .map(|(key, value)| (self.text(&key).unwrap_or(key), value))
                .collect();
        }
        in_values || in_keys
    }
}

fn whole() -> String {
    let whole = Object::from_iter([(WHOLE.to_owned(), Value::Bool(true))]);
    Value::Object(whole).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patterns::{Patterns, RedactionConfig};
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
        let patterns = Patterns::of(&RedactionConfig::read(&config).unwrap()).unwrap();
        for (given, redacted) in [
            (r#"{"a": "x"}"#, r#"{"a": "x"}"#),
            (r#"{"a": "sk-1", "b":  1e2}"#, r#"{"a": "[k]", "b":  1e2}"#),
            (r#"{"a": "sk\u002d1"}"#, r#"{"a":"[k]"}"#),
            // The first of two members with the same key is only in the text.
            (r#"{"a": "sk\u002d1", "a": "x"}"#, r#"{"redacted":true}"#),
            (r#"{"a": "sk-1", "a": "x"}"#, r#"{"a": "[k]", "a": "x"}"#),
            (r#"{"sk-1": [["sk-2"]]}"#, r#"{"[k]": [["[k]"]]}"#),
            (r#"{"n": 4111111111111111}"#, r#"{"n":"[c]"}"#),
            (r#"{"n": "4111111111111111"}"#, r#"{"n": "[c]"}"#),
            (r#"{"password" : "hunter2"}"#, r#"{"password_removed":""}"#),
            // Only the text matches, and the redacted text is not JSON.
            (r#"{"a": "secret"}"#, r#"{"redacted":true}"#),
            ("sk-1 is no JSON", "[k] is no JSON"),
            ("", ""),
        ] {
            let arguments = Redactor::new(&patterns, &|| false).arguments(given);
            assert_eq!(arguments.as_deref(), (given != redacted).then_some(redacted), "{given}");
        }
    }
}

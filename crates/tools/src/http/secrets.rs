//! The secrets of HTTP tools, and their removal from texts. No secret is shown here.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;
use secrecy::{ExposeSecret, SecretSlice, SecretString};

use crate::fault::DefinitionFault;
use values::json::Value;
use values::secret_forms::{MIN_FORM, begun_at_end, encoded_forms, find, longest_first, unescaped};

/// The replacement of a secret.
const REDACTED: &str = "[secret]";
/// How many of the secrets that were added later are remembered, the last ones.
const MAX_ADDED: usize = 8;

/// The secrets that definitions may name. `None` stands for a secret that the operator has not set.
pub type ToolSecrets = BTreeMap<String, Option<SecretString>>;

/// A secret with its prefix, such as `Bearer `.
#[derive(Debug, Clone)]
pub(crate) struct SecretValue {
    prefix: String,
    secret: SecretString,
}

impl SecretValue {
    /// Finds the secret of a name.
    pub(crate) fn find(secrets: &ToolSecrets, key: &str, name: &str, prefix: &str) -> Result<Self, DefinitionFault> {
        let fault = |problem: String| DefinitionFault::new(key, problem);
        let secret = secrets.get(name);
        let secret =
            secret.ok_or_else(|| fault(format!("no secret is named {name:?}: add `[tools.secrets.{name}]`")))?;
        let secret = secret.as_ref();
        let secret = secret.ok_or_else(|| fault(format!("the secret {name:?} is not set")))?;
        if secret.expose_secret().len() < MIN_FORM {
            return Err(fault(format!("the secret {name:?} has less than {MIN_FORM} bytes")));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            secret: secret.clone(),
        })
    }

    /// Returns the whole value. It must not be logged.
    pub(crate) fn exposed(&self) -> String {
        format!("{}{}", self.prefix, self.secret.expose_secret())
    }
}

/// Removes secrets from texts. Clones share their secrets, also later ones.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<RwLock<Known>>);

struct Known {
    /// The secrets that were there from the beginning.
    first: Vec<SecretString>,
    /// The secrets that were added, the oldest first.
    added: VecDeque<SecretString>,
    forms: Forms,
}

/// The forms in which a server may repeat the secrets, without escapes, longest first.
type Forms = Arc<[SecretSlice<u8>]>;

impl Redactor {
    /// Makes a redactor of these secrets.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let first: Vec<_> = secrets.into_iter().map(|value| value.secret.clone()).collect();
        Self(Arc::new(RwLock::new(Known {
            forms: forms_of(&first),
            first,
            added: VecDeque::new(),
        })))
    }

    /// Adds a secret that was not known before, such as an access token. Forgets the oldest added
    /// one if there are too many.
    pub(crate) fn add(&self, secret: &SecretString) {
        let mut known = self.0.write();
        known
            .added
            .retain(|other| other.expose_secret() != secret.expose_secret());
        known.added.push_back(secret.clone());
        if known.added.len() > MAX_ADDED {
            known.added.pop_front();
        }
        known.forms = forms_of(known.first.iter().chain(&known.added));
    }

    /// Returns the text without secrets. If it was cut at its end, a possible beginning of a secret
    /// there is left out.
    pub(crate) fn redacted(&self, text: String, is_cut: bool) -> String {
        let forms = self.forms();
        let mut text = without(&forms, text);
        if is_cut {
            let begun = begun_at_end(&text, forms.iter().map(ExposeSecret::expose_secret));
            text.truncate(text.floor_char_boundary(begun.unwrap_or(text.len())));
        }
        text
    }

    /// Removes the secrets from all texts and numbers of a value, and from the names of its fields.
    pub(crate) fn redact(&self, value: &mut Value) {
        let forms = self.forms();
        if !forms.is_empty() {
            redact(&forms, value);
        }
    }

    fn forms(&self) -> Forms {
        Arc::clone(&self.0.read().forms)
    }
}

fn forms_of<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Forms {
    let encoded = secrets
        .into_iter()
        .flat_map(|secret| encoded_forms(secret.expose_secret()));
    let forms = encoded.map(|form| unescaped(&form).into_owned()).collect();
    let forms = longest_first::<Vec<u8>>(forms);
    forms.into_iter().map(|form| SecretSlice::new(form.into())).collect()
}

fn found(forms: &Forms, text: &str) -> Vec<Range<usize>> {
    find(text, forms.iter().map(ExposeSecret::expose_secret))
}

fn without(forms: &Forms, mut text: String) -> String {
    for Range { start, end } in found(forms, &text).into_iter().rev() {
        let (start, end) = (text.floor_char_boundary(start), text.ceil_char_boundary(end));
        text.replace_range(start..end, REDACTED);
    }
    text
}

fn redact(forms: &Forms, value: &mut Value) {
    let has_secret = |text: &str| !found(forms, text).is_empty();
    match value {
        Value::String(text) => *text = without(forms, std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(forms, item)),
        Value::Object(fields) => {
            if fields.keys().any(|name| has_secret(name)) {
                let renamed = std::mem::take(fields).into_iter();
                *fields = renamed.map(|(name, value)| (without(forms, name), value)).collect();
            }
            fields.values_mut().for_each(|value| redact(forms, value));
        }
        Value::Number(number) => {
            let text = number.to_string();
            if has_secret(&text) {
                *value = Value::String(without(forms, text));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(secret: &str) -> SecretValue {
        SecretValue {
            prefix: "Bearer ".to_owned(),
            secret: secret.into(),
        }
    }

    #[test]
    fn a_secret_is_removed_in_every_form() {
        let secret = "p\"ss w/rd+%";
        let redactor = Redactor::new([&value(secret)]);
        assert!(!format!("{redactor:?}").contains("ss"));
        for text in [
            secret,
            "Bearer p\"ss w/rd+%",
            "{\"a\": \"p\\\"ss w/rd+%\"}",
            "?key=p%22ss%20w%2Frd%2B%25&b",
            "?key=p%22ss+w%2Frd%2B%25&b",
            r#"{"a": "p\"ss w\/rd+%"}"#,
            r#"{"a": "\u0070\u0022\u0073\u0073\u0020w\u002Frd\u002b%"}"#,
            r#"{"a": "{\"b\": \"p\\\"ss w\\/rd+%\"}"}"#,
            "<p>p&quot;ss w&#47;rd&#x2b;&#37;</p>",
            "Basic bWU6cCJzcyB3L3JkKyU=",
        ] {
            let redacted = redactor.redacted(text.to_owned(), false);
            assert!(redacted.contains(REDACTED) && !redacted.contains("ss"), "{redacted}");
        }
        assert_eq!(redactor.redacted("other text".to_owned(), false), "other text");
    }

    #[test]
    fn a_secret_is_removed_from_every_text_and_name_of_a_value() {
        let redactor = Redactor::new([&value("hunter2hunter2"), &value("48151623")]);
        let mut seen = serde_json::json!({
            "a": ["x hunter2hunter2", 1, null, 48_151_623, 481],
            "hunter2hunter2": {"b": "Bearer hunter2hunter2"},
        });
        redactor.redact(&mut seen);
        let expected = serde_json::json!({
            "a": ["x [secret]", 1, null, "[secret]", 481],
            "[secret]": {"b": "Bearer [secret]"},
        });
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_last_secrets_that_were_added_are_removed_by_all_clones() {
        let redactor = Redactor::new([&value("hunter2")]);
        let clone = redactor.clone();
        let token = |number: usize| format!("hunter2-token-{number:02}");
        for number in 0..20 {
            redactor.add(&token(number).into());
            redactor.add(&token(number).into());
        }
        for number in 0..20 {
            let expected = if number < 20 - MAX_ADDED {
                format!("[secret]-token-{number:02}.")
            } else {
                "[secret].".to_owned()
            };
            assert_eq!(clone.redacted(format!("{}.", token(number)), false), expected);
        }
    }

    #[test]
    fn a_text_that_was_cut_shows_no_part_of_a_secret() {
        let redactor = Redactor::new([&value("hunter2hunter2")]);
        for end in 0.."hunter2hunter2".len() {
            let text = format!("a long response {}", &"hunter2hunter2"[..end]);
            assert!(!redactor.redacted(text, true).contains('u'), "{end}");
        }
    }

    #[test]
    fn a_missing_secret_is_a_mistake() {
        let secrets = ToolSecrets::from([
            ("set".to_owned(), Some("long enough".into())),
            ("unset".to_owned(), None),
            ("short".to_owned(), Some("abc".into())),
        ]);
        assert_eq!(
            SecretValue::find(&secrets, "headers.a", "set", "x ").unwrap().exposed(),
            "x long enough"
        );
        for (name, expected) in [
            ("unset", "is not set"),
            ("short", "less than"),
            ("none", "[tools.secrets.none]"),
        ] {
            let fault = SecretValue::find(&secrets, "headers.a", name, "")
                .unwrap_err()
                .to_string();
            assert!(
                fault.starts_with("`headers.a`: ") && fault.contains(expected),
                "{fault}"
            );
            assert!(!fault.contains("abc"), "{fault}");
        }
    }
}

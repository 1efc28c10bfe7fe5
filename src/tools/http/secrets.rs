//! The secrets of HTTP tools, and their removal from texts. No secret is shown here.

use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};

use super::fault::HttpToolFault;

/// The replacement of a secret.
const REDACTED: &str = "[secret]";
/// The shortest secret, in bytes. A shorter one would also remove other text.
const MIN_LENGTH: usize = 6;

/// The secrets that definitions may name. `None` stands for one that the operator has not set.
pub type ToolSecrets = BTreeMap<String, Option<SecretString>>;

/// A secret with what comes before it, such as `Bearer `.
#[derive(Debug, Clone)]
pub struct SecretValue {
    prefix: String,
    secret: SecretString,
}

impl SecretValue {
    /// Finds the secret of a name.
    pub fn find(secrets: &ToolSecrets, key: &str, name: &str, prefix: &str) -> Result<Self, HttpToolFault> {
        let fault = |problem: String| HttpToolFault::new(key, problem);
        let secret = secrets.get(name);
        let secret =
            secret.ok_or_else(|| fault(format!("no secret is named {name:?}: add `[tools.secrets.{name}]`")))?;
        let secret = secret.as_ref();
        let secret = secret.ok_or_else(|| fault(format!("the secret {name:?} is not set")))?;
        if secret.expose_secret().len() < MIN_LENGTH {
            return Err(fault(format!("the secret {name:?} has less than {MIN_LENGTH} bytes")));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
            secret: secret.clone(),
        })
    }

    /// Returns the whole value. It must not be logged.
    pub fn exposed(&self) -> String {
        format!("{}{}", self.prefix, self.secret.expose_secret())
    }
}

/// Removes secrets from texts.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The forms in which a server may repeat the secrets, longest first.
    forms: Vec<SecretString>,
}

impl Redactor {
    /// Makes a redactor of these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let mut forms: Vec<String> = secrets.into_iter().flat_map(forms).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self {
            forms: forms.into_iter().map(SecretString::from).collect(),
        }
    }

    /// Returns the text without secrets. If it was cut at its end, a part of a secret may be there,
    /// so that as many bytes are left out.
    pub fn redacted(&self, mut text: String, is_cut: bool) -> String {
        for form in &self.forms {
            if text.contains(form.expose_secret()) {
                text = text.replace(form.expose_secret(), REDACTED);
            }
        }
        let longest = self.forms.first().map_or(0, |form| form.expose_secret().len());
        if is_cut {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(longest)));
        }
        text
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

/// Returns a secret as it is, as JSON writes it, and as a URL does.
fn forms(value: &SecretValue) -> Vec<String> {
    let secret = value.secret.expose_secret();
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let mut forms = vec![secret.to_owned(), json, encoded.to_lowercase(), encoded, form];
    forms.retain(|form| form.len() >= MIN_LENGTH);
    forms
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
        ] {
            let redacted = redactor.redacted(text.to_owned(), false);
            assert!(redacted.contains(REDACTED) && !redacted.contains("ss"), "{redacted}");
        }
        assert_eq!(redactor.redacted("other text".to_owned(), false), "other text");
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

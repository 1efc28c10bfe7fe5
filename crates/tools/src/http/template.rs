//! Texts with parameters, such as `/v1/cities/{city}`. `{{` stands for `{`, and `}}` for `}`. No
//! IO.

use std::borrow::Cow;
use std::collections::BTreeSet;

use values::json::{Object, Value};

/// A text with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Parameter(String),
}

impl Template {
    /// Parses a text. The error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            literal.push_str(before);
            if after.starts_with("{{") || after.starts_with("}}") {
                literal.push_str(&after[..1]);
                rest = &after[2..];
                continue;
            }
            let name = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let Some((name, after)) = name.filter(|(name, _)| is_name(name)) else {
                return Err(format!(
                    "{text:?} has a brace that begins no parameter such as {{city}}; write {{{{ for a brace"
                ));
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Parameter(name.to_owned()));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self(parts))
    }

    /// Replaces the names of parameters.
    pub(super) fn renamed(self, new_name: impl Fn(&str) -> String) -> Self {
        let parts = self.0.into_iter().map(|part| match part {
            Part::Parameter(name) => Part::Parameter(new_name(&name)),
            text @ Part::Text(_) => text,
        });
        Self(parts.collect())
    }

    /// Returns the parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Parameter(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Returns the parameter if the text has nothing else.
    pub(super) fn only_parameter(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Parameter(name)] => Some(name),
            _ => None,
        }
    }

    /// Fills in the arguments; `None` if one of them is absent.
    pub(super) fn filled(&self, arguments: &Object) -> Option<String> {
        self.filled_by(arguments, |text| text)
    }

    /// Fills in the arguments, each changed by the function.
    pub(super) fn filled_by(&self, arguments: &Object, change: impl Fn(String) -> String) -> Option<String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Parameter(name) => filled.push_str(&change(text_of(arguments.get(name)?)?.into_owned())),
            }
        }
        Some(filled)
    }
}

/// Adds the parameters of a template to the used ones.
pub(super) fn add_parameters(template: &Template, used: &mut BTreeSet<String>) {
    used.extend(template.parameters().map(str::to_owned));
}

/// Returns the text of a value; `None` for `null`. The elements of an array are joined by commas.
/// An object, and an array with other elements, is written as JSON.
pub(super) fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(elements) if elements.iter().all(is_scalar) => {
            let texts: Vec<_> = elements.iter().filter_map(text_of).collect();
            Some(Cow::Owned(texts.join(",")))
        }
        other => Some(Cow::Owned(other.to_string())),
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_control() || c.is_whitespace() || "{}/?#".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_filled_in() {
        let arguments = json!({"a": "x y", "n": 7, "b": true, "z": null, "l": [1, "two"], "o": {"k": [1]}});
        for (text, expected) in [
            ("plain", Some("plain")),
            ("", Some("")),
            ("{a}", Some("x y")),
            ("-{a}-{n}{b}-", Some("-x y-7true-")),
            ("{l}", Some("1,two")),
            ("{o}", Some("{\"k\":[1]}")),
            ("{{{a}}} {{}}", Some("{x y} {}")),
            ("{missing}", None),
            ("{z}", None),
        ] {
            let template = Template::parse(text).unwrap();
            assert_eq!(
                template.filled(arguments.as_object().unwrap()).as_deref(),
                expected,
                "{text}"
            );
        }
        assert_eq!(Template::parse("{a}").unwrap().only_parameter(), Some("a"));
        assert_eq!(Template::parse("{a}{b}").unwrap().only_parameter(), None);
    }

    #[test]
    fn other_braces_are_mistakes() {
        for text in ["{", "}", "{}", "{a", "a}", "{a b}", "{a{b}}", "{a/b}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}

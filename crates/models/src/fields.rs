//! Reads a provider's JSON defensively: fields stay raw until needed, and a field of the wrong type
//! counts as absent.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use values::json::Value;

/// The most fields of an object and the most items of a list. A larger one counts as absent, since
/// each small item takes many times its bytes in memory.
const MOST: usize = 1 << 16;
/// The most unknown fields of a call or a message that some protocols retain. Further fields are
/// dropped.
pub(super) const MOST_UNKNOWN: usize = 16;

/// The fields of a JSON object, raw and in the order of arrival.
///
/// Names and values are parts of the text. Nearly all objects of a stream fit without an
/// allocation.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(SmallVec<[(Borrowed<'a>, &'a RawValue); 8]>);

/// The items of a JSON list. They are parts of its text, and lists of one or two need no
/// allocation.
pub(super) type Items<'a> = SmallVec<[&'a RawValue; 2]>;

impl<'a> Fields<'a> {
    /// Reads an object; `None` if the text is anything else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns a field that is present and not null. Of two with the same name, returns the last.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(key, _)| key.0 == name);
        found.map(|(_, raw)| *raw).filter(|raw| !is_null(raw))
    }

    /// Returns whether there is a field of this name, null or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.0 == name)
    }

    /// Returns whether all fields are null.
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns whether there is an error. An empty error does not count, since some servers send
    /// one with each completion.
    pub(super) fn has_error(&self) -> bool {
        let error = self.get("error");
        error.is_some_and(|error| !matches!(error.get(), "\"\"" | "{}" | "false"))
    }

    /// Returns whether the object is an error, by a field or by its own type.
    pub(super) fn is_error(&self) -> bool {
        let says = |name: &str| self.borrowed_text(name).as_deref() == Some("error");
        // MiniMax sends this with each completion; zero is success.
        let status = self.object("base_resp").and_then(|status| status.count("status_code"));
        self.has_error() || says("object") || says("type") || status.is_some_and(|status| status != 0)
    }

    /// Returns a text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text)
    }

    /// Returns a text, borrowed unless it has escaped characters.
    pub(super) fn borrowed_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(borrowed_text)
    }

    /// Returns a text that is not empty.
    pub(super) fn filled(&self, name: &str) -> Option<String> {
        self.borrowed_filled(name).map(Cow::into_owned)
    }

    /// Returns a text that is not empty, borrowed unless it has escaped characters.
    pub(super) fn borrowed_filled(&self, name: &str) -> Option<Cow<'a, str>> {
        self.borrowed_text(name).filter(|text| !text.is_empty())
    }

    /// Returns an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.get(name).and_then(object)
    }

    /// Returns a text. Any other value becomes its JSON, so that nothing is lost.
    pub(super) fn words(&self, name: &str) -> Option<String> {
        self.get(name).map(words)
    }

    /// Returns the items of a list. Any other value is the only item.
    pub(super) fn items(&self, name: &str) -> Items<'a> {
        self.get(name).map(items).unwrap_or_default()
    }

    /// Returns the items of a list.
    pub(super) fn list(&self, name: &str) -> Option<Items<'a>> {
        self.get(name).and_then(list)
    }

    /// Returns a count. Truncates fractions, and returns `None` for negative numbers.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(count)
    }

    /// Iterates over the fields that are not null.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0
            .iter()
            .map(|(key, raw)| (key.0.as_ref(), *raw))
            .filter(|(_, raw)| !is_null(raw))
    }
}

/// Returns up to `most` unknown fields as the text of one object; `None` if there are none.
pub(super) fn unknown_fields(fields: &Fields<'_>, known: &[&str], most: usize) -> Option<String> {
    let mut unknown = fields.iter().filter(|(name, _)| !known.contains(name)).peekable();
    unknown.peek()?;
    Some(object_text(unknown.take(most)))
}

/// Returns the text of an object with these fields. The values are JSON texts.
pub(super) fn object_text<'n, V: fmt::Display>(fields: impl IntoIterator<Item = (&'n str, V)>) -> String {
    let fields = fields.into_iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{}:{value}", Value::from(name)))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// A string, borrowed from the text unless it has escaped characters.
#[derive(Debug, serde::Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object to be written, in their order.
pub(super) struct Map<'a>(pub(super) &'a [(&'a str, Box<RawValue>)]);

impl Serialize for Map<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Reads a text.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// Reads a text. Any other value becomes its JSON.
pub(super) fn words(raw: &RawValue) -> String {
    text(raw).unwrap_or_else(|| raw.get().to_owned())
}

/// Reads a list. Any other value is the only item.
pub(super) fn items(raw: &RawValue) -> Items<'_> {
    list(raw).unwrap_or_else(|| Items::from_slice(&[raw]))
}

/// Reads a text, borrowed unless it has escaped characters.
pub(super) fn borrowed_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text: Borrowed<'_> = serde_json::from_str(raw.get()).ok()?;
    Some(text.0)
}

/// Reads an object.
pub(super) fn object(raw: &RawValue) -> Option<Fields<'_>> {
    Fields::parse(raw.get())
}

/// Reads a list.
pub(super) fn list(raw: &RawValue) -> Option<Items<'_>> {
    parse_list(raw.get())
}

/// Reads a list from its text.
pub(super) fn parse_list(text: &str) -> Option<Items<'_>> {
    read_list(text).ok()
}

/// Reads a list from its text.
pub(super) fn read_list(text: &str) -> Result<Items<'_>, serde_json::Error> {
    let list: List<'_> = serde_json::from_str(text)?;
    Ok(list.0)
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and counts are not negative"
)]
fn count(raw: &RawValue) -> Option<u64> {
    let number: serde_json::Number = serde_json::from_str(raw.get()).ok()?;
    let fraction = || {
        number
            .as_f64()
            .filter(|number| *number >= 0.0)
            .map(|number| number as u64)
    };
    number.as_u64().or_else(fraction)
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = SmallVec::new();
                while let Some(entry) = map.next_entry()? {
                    if fields.len() == MOST {
                        return Err(A::Error::custom("too many fields"));
                    }
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

struct List<'a>(Items<'a>);

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Items::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == MOST {
                        return Err(A::Error::custom("too many items"));
                    }
                    items.push(item);
                }
                Ok(List(items))
            }
        }

        deserializer.deserialize_seq(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_wrong_type_are_absent() {
        let text = r#"{"a": null, "b": "x", "c": [1, {"d": 2}], "n": -1, "f": 2.9, "big": 1e300, "b": "y", "e": ""}"#;
        let fields = Fields::parse(text).unwrap();
        assert!(fields.has("a") && fields.get("a").is_none() && !fields.has("z"));
        assert_eq!(fields.text("b").as_deref(), Some("y"), "the last of two");
        assert_eq!((fields.text("c"), fields.filled("e")), (None, None));
        assert_eq!(fields.list("c").unwrap()[1].get(), r#"{"d": 2}"#);
        assert_eq!(
            (fields.count("n"), fields.count("f"), fields.count("big")),
            (None, Some(2), Some(u64::MAX))
        );
        assert!(Fields::parse("[1]").is_none() && Fields::parse("{").is_none());
    }

    #[test]
    fn a_borrowed_text_is_copied_if_it_is_escaped() {
        let fields = Fields::parse(r#"{"plain": "x", "\u0061b": "y\nz", "n": 1}"#).unwrap();
        let plain = fields.borrowed_text("plain").unwrap();
        assert!(matches!(plain, Cow::Borrowed("x")), "{plain:?}");
        assert_eq!(
            fields.borrowed_text("ab").as_deref(),
            Some("y\nz"),
            "its name is escaped, too"
        );
        assert_eq!((fields.borrowed_text("n"), fields.borrowed_text("none")), (None, None));
    }

    #[test]
    fn an_object_or_a_list_with_too_much_in_it_is_none() {
        let fields = |count: usize| format!("{{{}}}", vec!["\"\":0"; count].join(","));
        let items = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert!(Fields::parse(&fields(MOST)).is_some() && Fields::parse(&fields(MOST + 1)).is_none());
        assert_eq!(parse_list(&items(MOST)).map(|items| items.len()), Some(MOST));
        assert!(parse_list(&items(MOST + 1)).is_none());
    }

    #[test]
    fn deep_nesting_is_harmless() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        let fields = Fields::parse(&deep).unwrap();
        assert!(list(fields.get("a").unwrap()).is_some());
    }
}

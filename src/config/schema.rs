//! Finds out which keys exist, from the section structs themselves.
//!
//! A probe deserialises [`Config`] along one path and notes what the type at its end expects. It
//! then stops with an error, so it never builds a value. So the structs are the only list of keys.
//! Checks for typos, environment names and the completeness test all use it.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize as _, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Config;
use super::settings::{KeyPath, dotted};
use crate::spelling::nearest;

/// Stands for the names of a table that the operator chooses.
pub(super) const ANY: &str = "NAME";

/// What stands at a path of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table whose keys are these.
    Section(&'static [&'static str]),
    /// A table whose keys the operator chooses, as in `providers`.
    Named,
    /// A value written as a string.
    Text,
    /// A number, a boolean or a list.
    Other,
}

impl Shape {
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Self::Section(_) | Self::Named)
    }
}

/// Looks up a path; `None` when no such key exists.
pub(super) fn shape(path: &[String]) -> Option<Shape> {
    let found = RefCell::new(None);
    let probe = Probe { path, found: &found };
    // The probe always ends in an error: its finding is in `found`.
    drop(Config::deserialize(probe));
    found.into_inner()
}

/// Proposes the key that an unknown one may stand for: a like one beside it, or the same elsewhere.
pub(super) fn suggestion(path: &[String]) -> Option<String> {
    let name = path.last()?;
    // The separators of variables are mistaken most often: HTTP_LISTEN for HTTP__LISTEN.
    let mut others = known_keys()
        .into_iter()
        .filter(|key| !key.iter().any(|name| name == ANY));
    if let Some(key) = others.find(|key| letters(key) == letters(path)) {
        return Some(dotted(&key));
    }
    if let Some(key) = nearest_key(path) {
        return Some(dotted(&key));
    }
    let mut same = known_keys().into_iter().filter(|key| key.last() == Some(name));
    same.next().map(|key| dotted(&key))
}

/// Finds the key of the innermost known section that is most like what stands below it.
fn nearest_key(path: &[String]) -> Option<KeyPath> {
    let known = (0..path.len()).rev().find(|end| shape(&path[..*end]).is_some())?;
    let (table, unknown) = path.split_at(known);
    let Some(Shape::Section(keys)) = shape(table) else {
        return None;
    };
    let below = |key: &str| [table, &[key.to_owned()]].concat();
    // One separator too many: BASE__URL for BASE_URL.
    let whole = nearest(&unknown.join("_"), keys.iter().copied());
    let sections = keys
        .iter()
        .filter(|key| shape(&below(key)).is_some_and(|shape| shape.is_table()));
    whole
        .or_else(|| nearest(unknown.first()?, sections.copied()))
        .map(below)
}

/// Returns the letters and digits of a key.
fn letters(path: &[String]) -> String {
    path.concat().replace(|c: char| !c.is_alphanumeric(), "").to_lowercase()
}

/// Lists every key, with [`ANY`] for a name that the operator chooses.
pub(super) fn known_keys() -> Vec<KeyPath> {
    let mut keys = Vec::new();
    collect_keys(&mut KeyPath::new(), &mut keys);
    keys
}

fn collect_keys(path: &mut KeyPath, keys: &mut Vec<KeyPath>) {
    let below = match shape(path) {
        Some(Shape::Section(names)) => names,
        Some(Shape::Named) => &[ANY],
        _ => return keys.push(path.clone()),
    };
    for &name in below {
        path.push(name.to_owned());
        collect_keys(path, keys);
        path.pop();
    }
}

#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [String],
    found: &'a RefCell<Option<Shape>>,
}

impl Probe<'_> {
    /// Notes the shape if the path ends here.
    fn end(&self, shape: Shape) -> Error {
        if self.path.is_empty() {
            self.found.replace(Some(shape));
        }
        Error::custom("probed")
    }
}

impl<'de> Deserializer<'de> for Probe<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(self.end(Shape::Other))
    }

    fn deserialize_str<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(self.end(Shape::Text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(self.end(Shape::Text))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(self.end(Shape::Text))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.path {
            [key, ..] if fields.contains(&key.as_str()) => visitor.visit_map(Descent(self)),
            _ => Err(self.end(Shape::Section(fields))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.path.is_empty() {
            return Err(self.end(Shape::Named));
        }
        visitor.visit_map(Descent(self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// A table with the single key that leads down the path.
struct Descent<'a>(Probe<'a>);

impl<'de> MapAccess<'de> for Descent<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let key = self.0.path.first().map_or("", String::as_str);
        seed.deserialize(StrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Probe { path, found } = self.0;
        seed.deserialize(Probe {
            path: path.get(1..).unwrap_or_default(),
            found,
        })
    }
}

impl fmt::Debug for Probe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_structs() {
        for (path, wanted) in [
            ("http.listen", Some(Shape::Text)),
            ("http.max_connections", Some(Shape::Other)),
            ("http.request_timeout", Some(Shape::Text)),
            ("providers", Some(Shape::Named)),
            ("providers.x.kind", Some(Shape::Text)),
            ("providers.x.models", Some(Shape::Other)),
            ("providers.x.headers", Some(Shape::Named)),
            ("providers.x.headers.y", Some(Shape::Text)),
            ("runs.budget.max_cost", Some(Shape::Other)),
            ("http.lisen", None),
            ("http.listen.deeper", None),
            ("nothing", None),
        ] {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(shape(&path), wanted, "at {path:?}");
        }
        assert!(matches!(shape(&[]), Some(Shape::Section(names)) if names.contains(&"store")));
    }
}

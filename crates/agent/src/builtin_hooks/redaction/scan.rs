//! Checks whether JSON has anything to redact, without copying it.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::redactor::Redactor;
use values::json::{Object, RawJson, Value};

impl Redactor<'_> {
    /// Scans the text and its parsed values.
    pub(super) fn finds_in_raw(&self, raw: &RawJson) -> bool {
        self.finds_in_json(raw.as_str())
    }

    /// Scans the text and, if it is JSON, its values.
    pub(super) fn finds_in_json(&self, text: &str) -> bool {
        self.finds_in(text) || self.finds_in_values(text)
    }

    fn finds_in_values(&self, text: &str) -> bool {
        let scan = Scan {
            redactor: self,
            found: &Cell::new(false),
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let read = scan.deserialize(&mut json).and_then(|()| json.end());
        read.is_ok() && scan.found.get()
    }

    /// Scans the strings, keys and numbers of a value.
    pub(super) fn finds_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.finds_in(text),
            Value::Number(number) => self.finds_in(&number.to_string()),
            Value::Array(values) => values.iter().any(|value| self.finds_in_value(value)),
            Value::Object(object) => self.finds_in_object(object),
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Scans the keys and values of an object.
    pub(super) fn finds_in_object(&self, object: &Object) -> bool {
        let mut entries = object.iter();
        entries.any(|(key, value)| self.finds_in(key) || self.finds_in_value(value))
    }
}

/// Scans values while they are parsed. Retaining them would take many times the memory of their
/// text.
#[derive(Clone, Copy)]
struct Scan<'a> {
    redactor: &'a Redactor<'a>,
    found: &'a Cell<bool>,
}

impl Scan<'_> {
    fn at(self, text: &str) {
        if !self.found.get() {
            self.found.set(self.redactor.finds_in(text));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.at(&number.to_string());
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.at(&number.to_string());
        Ok(())
    }

    /// Scans the number as `Value` formats it.
    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.at(&Value::from(number).to_string());
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.at(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_key_seed(self)?.is_some() {
            entries.next_value_seed(self)?;
        }
        Ok(())
    }
}

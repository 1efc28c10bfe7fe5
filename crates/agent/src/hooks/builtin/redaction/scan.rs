//! Checks whether there is anything to redact, without copying the text. A text without a match
//! stays as it is.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::redactor::Redactor;
use values::json::{Object, RawJson, Value};
use values::message::{ContentPart, MediaSource, Message, ProviderFields};

impl Redactor<'_> {
    /// Scans a message.
    pub(super) fn finds_in_message(&self, message: &Message) -> bool {
        message.name.as_ref().is_some_and(|name| self.finds_in(name))
            || self.finds_in_content(&message.content)
            || message
                .provider_fields
                .as_ref()
                .is_some_and(|fields| self.finds_in_fields(fields))
            || self.finds_in_object(&message.metadata)
    }

    /// Scans parts, including matches that span several texts.
    pub(super) fn finds_in_content(&self, content: &[ContentPart]) -> bool {
        content.iter().any(|part| self.finds_in_part(part)) || self.finds_across(content)
    }

    /// Scans the texts of parts as one text, if there are several.
    pub(super) fn finds_across(&self, content: &[ContentPart]) -> bool {
        let texts = || content.iter().filter_map(ContentPart::as_text);
        texts().nth(1).is_some() && self.finds_in(&texts().collect::<String>())
    }

    /// Scans opaque fields.
    pub(super) fn finds_in_fields(&self, fields: &ProviderFields) -> bool {
        fields.fields.iter().any(|(_, raw)| self.finds_in_raw(raw))
    }

    fn finds_in_part(&self, part: &ContentPart) -> bool {
        match part {
            ContentPart::Text(part) => {
                self.finds_in(&part.text) || part.citations.iter().any(|citation| self.finds_in_raw(&citation.0))
            }
            ContentPart::Refusal { text } => self.finds_in(text),
            ContentPart::Reasoning(part) => self.finds_in(&part.text),
            ContentPart::ToolCall(call) => self.finds_in(&call.name) || self.finds_in_json(&call.arguments),
            ContentPart::ToolResult(result) => self.finds_in(&result.name) || self.finds_in_content(&result.content),
            ContentPart::Image(image) => self.finds_in_source(&image.source),
            ContentPart::Document(document) => {
                let name = document.name.as_ref();
                name.is_some_and(|name| self.finds_in(name)) || self.finds_in_source(&document.source)
            }
            ContentPart::Opaque(part) => self.finds_in_raw(&part.raw),
            ContentPart::Unknown(value) => self.finds_in_value(value),
        }
    }

    fn finds_in_source(&self, source: &MediaSource) -> bool {
        match source {
            MediaSource::Url { url } => self.finds_in(url),
            MediaSource::Base64 { .. } | MediaSource::ProviderFile { .. } => false,
        }
    }

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

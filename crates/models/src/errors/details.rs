//! Reads an error of any form: an object, a list, a text, JSON in a text, or an event of a stream.
//!
//! Reads named fields only. Some servers repeat the prompt in other fields, and its words say
//! nothing about the error.

use std::time::Duration;

use super::words::WORDS;
use values::json::{Object, Value};

/// The most levels of objects, lists and JSON in texts that are read.
const MAX_DEPTH: usize = 8;

/// The parts of an error that are known.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The words for people.
    pub(super) message: Option<String>,
    /// Codes, types and numbers, as they came.
    pub(super) codes: Vec<String>,
    /// All words of the error, in lower case.
    pub(super) words: String,
    /// The field of the request that the error names.
    pub(super) field: Option<String>,
    /// The status in the body.
    pub(super) status: Option<u16>,
    /// The pause that the provider requests in the body, if any.
    pub(super) retry_after: Option<Duration>,
}

impl Details {
    /// Parses an error.
    pub(super) fn parse(text: &str) -> Self {
        let event = || {
            text.lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .find_map(json)
        };
        let mut details = Self::default();
        match serde_json::from_str(text).ok().or_else(event) {
            Some(value) => details.read(&value, 0),
            None => details.add_words(&readable(text).unwrap_or_default()),
        }
        details
    }

    fn read(&mut self, value: &Value, depth: usize) {
        match value {
            _ if depth > MAX_DEPTH => {}
            Value::String(text) => {
                if let Some(inner) = json(text) {
                    self.read(&inner, depth + 1);
                } else {
                    self.message = self.message.take().or_else(|| filled(text));
                    self.add_words(text);
                }
            }
            Value::Array(items) => {
                for item in items {
                    let mut nested = Self::default();
                    nested.read(item, depth + 1);
                    let message = self.add(nested);
                    self.message = self.message.take().or(message);
                }
            }
            Value::Object(fields) => self.read_object(fields, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn read_object(&mut self, fields: &Object, depth: usize) {
        let number = |name: &str| {
            let number = fields.get(name)?;
            let number = number.as_u64().or_else(|| number.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        };
        self.status = ["status_code", "code", "status"].into_iter().find_map(number);
        self.retry_after = retry_delay(fields);
        let path = fields.get("loc").and_then(Value::as_array).map(|path| {
            let steps: Vec<_> = path
                .iter()
                .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
                .collect();
            steps.join(".")
        });
        self.field = fields
            .get("param")
            .and_then(Value::as_str)
            .and_then(filled)
            .or_else(|| path.clone());
        for code in WORDS.code_fields.iter().filter_map(|name| fields.get(name)) {
            match code {
                Value::String(code) => self.codes.push(code.clone()),
                Value::Number(code) => self.codes.push(code.to_string()),
                _ => {}
            }
        }
        let mut message = None;
        for (name, value) in WORDS
            .word_fields
            .iter()
            .filter_map(|name| Some((name, fields.get(name)?)))
        {
            let Value::String(text) = value else { continue };
            if json(text).is_none() {
                message = message.or_else(|| filled(text));
                self.add_words(text);
            } else if !WORDS.nested_fields.contains(name) {
                self.add_words(text);
            }
        }
        let mut passed_on = None;
        for name in &WORDS.nested_fields {
            let Some(value) = fields.get(name) else { continue };
            // Words that are not JSON are read already.
            if WORDS.word_fields.contains(name) && value.as_str().is_some_and(|text| json(text).is_none()) {
                continue;
            }
            let mut inner = Self::default();
            inner.read(value, depth + 1);
            let inner = self.add(inner);
            passed_on = passed_on.or(inner);
        }
        // A gateway that forwards another server's error has only a vague message of its own.
        let is_gateway = fields.contains_key("metadata");
        let message = match (message, path) {
            (Some(message), Some(path)) => Some(format!("{path}: {message}")),
            (message, _) => message,
        };
        self.message = match (message, passed_on) {
            (Some(message), Some(inner)) if is_gateway => Some(format!("{message}: {inner}")),
            (message, inner) => message.or(inner),
        };
    }

    /// Adds the details of an inner error, and returns its message.
    fn add(&mut self, inner: Self) -> Option<String> {
        self.codes.extend(inner.codes);
        self.words.push_str(&inner.words);
        self.field = self.field.take().or(inner.field);
        self.status = self.status.or(inner.status);
        self.retry_after = self.retry_after.or(inner.retry_after);
        inner.message
    }

    /// Adds words, and the codes within them, such as `rate_limit_exceeded` and
    /// `ThrottlingException`.
    fn add_words(&mut self, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let is_error = |word: &str| {
            let word = word.to_ascii_lowercase();
            word.len() == text.trim().len() || WORDS.code_ends.iter().any(|end| word.ends_with(end))
        };
        let is_code = |word: &&str| {
            let bytes = word.as_bytes();
            let has_hump = bytes
                .windows(2)
                .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
            (has_hump || word.contains('_')) && is_error(word)
        };
        let codes = text.split(|c| !is_part(c)).filter(is_code).map(str::to_owned);
        self.codes.extend(codes);
        self.words.push_str(&text.to_lowercase());
        self.words.push('\n');
    }
}

/// Reads the JSON of a text. A text that is not an object or a list is words.
fn json(text: &str) -> Option<Value> {
    let text = text.trim();
    text.starts_with(['{', '['])
        .then(|| serde_json::from_str(text).ok())
        .flatten()
}

/// Reads Google's `RetryInfo`, whose delay is a text such as `"33.5s"`.
fn retry_delay(error: &Object) -> Option<Duration> {
    let mut details = error.get("details")?.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Returns a text if people can read it. Markup and data are not readable.
pub(super) fn readable(text: &str) -> Option<String> {
    let text = text.trim();
    let json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let plain = !json && !text.is_empty() && !text.starts_with(['<', '{', '[']) && !text.contains('\u{FFFD}');
    plain.then(|| text.to_owned())
}

fn filled(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

//! The fields of a body, taken one after the other. Fields that nobody takes are unknown.
//!
//! Frameworks add fields of their own, so an unknown field is no error. A field that asks for
//! something else than the client would get is one.

use serde::de::DeserializeOwned;

use crate::http::codes::ProblemCode;
use crate::http::json_errors::{decode_problem, type_fault};
use crate::http::problem::Problem;
use values::json::{Object, Value};

/// The most unknown fields that the log names, and the longest of their names in bytes.
const MAX_LOGGED: usize = 8;
const MAX_NAME: usize = 64;

/// The fields of a body that are not taken yet.
#[derive(Debug)]
pub(in crate::http::faces) struct Fields(Object);

impl Fields {
    pub(in crate::http::faces) fn new(body: Object) -> Self {
        Self(body)
    }

    /// Takes a field. Null is the same as no field.
    pub(in crate::http::faces) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Problem> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => decode(value, &format!("/{name}")).map(Some),
        }
    }

    /// Takes a field that must be there.
    pub(in crate::http::faces) fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Problem> {
        self.take(name)?.ok_or_else(|| missing("", name))
    }

    /// Takes fields that have no effect here.
    pub(in crate::http::faces) fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.0.remove(*name);
        }
    }

    /// Refuses fields that the service does not support, unless they have a value that asks for
    /// nothing.
    pub(in crate::http::faces) fn refuse(&mut self, names: &[&str]) -> Result<(), Problem> {
        for name in names {
            let value = self.0.remove(*name);
            if value.is_some_and(|value| !asks_for_nothing(&value)) {
                return Err(unsupported(format!("/{name}"), format!("`{name}` is not supported")));
            }
        }
        Ok(())
    }

    /// Logs the fields that are left.
    pub(in crate::http::faces) fn finish(self) {
        let is_name = |name: &&String| {
            let is_word = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
            is_word && name.len() <= MAX_NAME
        };
        let unknown: Vec<&str> = self
            .0
            .keys()
            .filter(is_name)
            .map(String::as_str)
            .take(MAX_LOGGED)
            .collect();
        if !unknown.is_empty() {
            tracing::info!(fields = unknown.join(", "), "unknown fields of a request are ignored");
        }
    }
}

/// Decodes a part of a body; `pointer` is the JSON pointer to it.
pub(in crate::http::faces) fn decode<T: DeserializeOwned>(value: Value, pointer: &str) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| match type_fault(pointer, &error) {
        Some((pointer, message)) => wrong_type(pointer, message),
        None => decode_problem(pointer, &error),
    })
}

/// Returns the type of an object, which its field `type` names; `pointer` is the JSON pointer to
/// the object.
pub(in crate::http::faces) fn type_of<'v>(value: &'v Value, pointer: &str) -> Result<&'v str, Problem> {
    let Some(fields) = value.as_object() else {
        return Err(wrong_type(pointer, "not an object"));
    };
    match fields.get("type") {
        None | Some(Value::Null) => Err(missing(pointer, "type")),
        Some(Value::String(kind)) => Ok(kind),
        Some(_) => Err(wrong_type(format!("{pointer}/type"), "not a string")),
    }
}

/// Makes the problem of a field that an object lacks; `pointer` is the JSON pointer to the object.
pub(in crate::http::faces) fn missing(pointer: &str, field: &str) -> Problem {
    let words = format!("missing field `{field}`");
    Problem::of_field(ProblemCode::MissingField, format!("{pointer}/{field}"), words)
}

/// Makes the problem of a value of another JSON type than is needed.
pub(in crate::http::faces) fn wrong_type(pointer: impl Into<String>, words: impl Into<String>) -> Problem {
    Problem::of_field(ProblemCode::InvalidType, pointer, words)
}

/// Makes the problem of something that the service does not support.
pub(in crate::http::faces) fn unsupported(pointer: impl Into<String>, words: impl Into<String>) -> Problem {
    Problem::of_field(ProblemCode::UnsupportedParameter, pointer, words)
}

fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::String(_) => false,
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() < f64::EPSILON),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

//! Turns a schema of OpenAPI into a JSON Schema without references.

use serde_json::json;

use super::references::Document;
use values::json::{Object, Value, WITH_NAMED_SCHEMAS, WITH_SCHEMAS, count_values, modernise_limits};

/// The most levels of a schema. A reference is a level, too.
const MAX_DEPTH: usize = 40;

/// Keywords that arguments of a tool do not need.
const DROPPED: [&str; 14] = [
    "$ref",
    "$defs",
    "$id",
    "$schema",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "definitions",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "nullable",
    "xml",
];

/// Copies a schema with the schemas that it refers to. A schema within itself becomes a schema that
/// allows everything.
pub(super) fn inlined<'d>(schema: &'d Value, document: &Document<'d>) -> Result<Value, String> {
    Inliner {
        document,
        open: Vec::new(),
    }
    .schema(schema, 0)
}

struct Inliner<'a, 'd> {
    document: &'a Document<'d>,
    /// The references that lead to the current schema.
    open: Vec<&'d str>,
}

impl<'d> Inliner<'_, 'd> {
    fn schema(&mut self, schema: &'d Value, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("a schema has more than {MAX_DEPTH} levels"));
        }
        let Some(members) = schema.as_object() else {
            self.document.count(count_values(schema))?;
            return Ok(schema.clone());
        };
        self.document.count(1)?;
        let mut output = Object::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            if self.open.contains(&reference) {
                return Ok(json!({}));
            }
            let target = self.document.target(reference)?;
            self.open.push(reference);
            let target = self.schema(target, depth + 1)?;
            self.open.pop();
            match target {
                Value::Object(target) => output = target,
                other => return Ok(other),
            }
        }
        for (keyword, value) in members {
            if DROPPED.contains(&keyword.as_str()) || keyword.starts_with("x-") {
                continue;
            }
            let value = self.keyword(keyword, value, depth)?;
            output.insert(keyword.clone(), value);
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut output);
        }
        modernise_limits(&mut output);
        drop_read_only(&mut output);
        Ok(Value::Object(output))
    }

    fn keyword(&mut self, keyword: &str, value: &'d Value, depth: usize) -> Result<Value, String> {
        match value {
            Value::Array(schemas) if WITH_SCHEMAS.contains(&keyword) => {
                schemas.iter().map(|schema| self.schema(schema, depth + 1)).collect()
            }
            schema if WITH_SCHEMAS.contains(&keyword) => self.schema(schema, depth + 1),
            Value::Object(schemas) if WITH_NAMED_SCHEMAS.contains(&keyword) => {
                let schemas = schemas.iter();
                let schemas = schemas.map(|(name, schema)| Ok((name.clone(), self.schema(schema, depth + 1)?)));
                schemas.collect::<Result<Object, String>>().map(Value::Object)
            }
            other => {
                self.document.count(count_values(other))?;
                Ok(other.clone())
            }
        }
    }
}

/// Adds `null` to the types, as version 3.0 means with `nullable`.
fn allow_null(schema: &mut Object) {
    if let Some(kind) = schema.get("type").filter(|kind| kind.is_string()).cloned() {
        schema.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// Removes the properties that only responses have.
fn drop_read_only(schema: &mut Object) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let is_read_only = |property: &Value| property.get("readOnly") == Some(&Value::Bool(true));
    let dropped: Vec<String> = properties
        .iter()
        .filter(|(_, property)| is_read_only(property))
        .map(|(name, _)| name.clone())
        .collect();
    properties.retain(|name, _| !dropped.contains(name));
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !dropped.iter().any(|dropped| name == dropped));
    }
}

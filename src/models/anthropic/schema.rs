//! Reduces schemas to what the protocol accepts for structured output. Each response is later
//! checked against the whole schema.
//!
//! Constraints that the protocol rejects move into the description, so that the model still knows
//! them (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>, "JSON Schema
//! limitations").

use crate::json::{Object, Value};

/// Keywords that the protocol rejects.
const REFUSED: [&str; 13] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];
/// Keywords whose value is a schema or a list of schemas.
const NESTED: [&str; 6] = ["items", "anyOf", "allOf", "oneOf", "prefixItems", "not"];
/// Keywords whose value is schemas by name.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// Returns the schema that is sent.
pub(super) fn accepted(schema: &Value) -> Value {
    match schema {
        Value::Object(schema) => Value::Object(accepted_object(schema)),
        Value::Array(schemas) => schemas.iter().map(accepted).collect(),
        other => other.clone(),
    }
}

fn accepted_object(schema: &Object) -> Object {
    let mut fitting = Object::new();
    let mut reported = Vec::new();
    for (keyword, value) in schema {
        let name = keyword.as_str();
        // The protocol supports only 0 and 1 for `minItems`.
        let too_many = name == "minItems" && value.as_u64().is_some_and(|count| count > 1);
        if REFUSED.contains(&name) || too_many {
            reported.push(format!("{name}: {value}"));
            continue;
        }
        let value = match value {
            Value::Object(schemas) if NAMED.contains(&name) => schemas
                .iter()
                .map(|(name, schema)| (name.clone(), accepted(schema)))
                .collect(),
            value if NESTED.contains(&name) => accepted(value),
            value => value.clone(),
        };
        fitting.insert(keyword.clone(), value);
    }
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object") || schema.contains_key("properties");
    if is_object && !schema.contains_key("additionalProperties") {
        fitting.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if !reported.is_empty() {
        let description = schema.get("description").and_then(Value::as_str);
        let parts = description.into_iter().map(str::to_owned).chain([reported.join(", ")]);
        let description = parts.collect::<Vec<_>>().join("\n");
        fitting.insert("description".to_owned(), Value::from(description));
    }
    fitting
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_protocol_refuses_becomes_words() {
        for (schema, expected) in [
            (json!({"type": "string"}), json!({"type": "string"})),
            (
                json!({"type": "integer", "minimum": 1, "description": "How many."}),
                json!({"type": "integer", "description": "How many.\nminimum: 1"}),
            ),
            (
                json!({"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "maxLength": 5}}),
                json!({"type": "array", "minItems": 1, "description": "maxItems: 3",
                    "items": {"type": "string", "description": "maxLength: 5"}}),
            ),
            (
                json!({"type": "array", "minItems": 2}),
                json!({"type": "array", "description": "minItems: 2"}),
            ),
            (
                json!({"type": "object", "properties": {"minimum": {"type": "object"}}, "$defs": {"d": {"multipleOf": 2}}}),
                json!({"type": "object", "additionalProperties": false,
                    "properties": {"minimum": {"type": "object", "additionalProperties": false}},
                    "$defs": {"d": {"description": "multipleOf: 2"}}}),
            ),
            (
                json!({"type": "object", "additionalProperties": true}),
                json!({"type": "object", "additionalProperties": true}),
            ),
            (
                json!({"anyOf": [{"properties": {}}, {"type": "null"}], "enum": [{"minimum": 1}]}),
                json!({"anyOf": [{"properties": {}, "additionalProperties": false}, {"type": "null"}], "enum": [{"minimum": 1}]}),
            ),
            (json!(true), json!(true)),
        ] {
            assert_eq!(accepted(&schema), expected, "{schema}");
        }
    }
}

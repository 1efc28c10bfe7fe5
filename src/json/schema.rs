//! JSON Schema behind one wrapper: the only file that names the library. A schema never reads a file or an address.

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};

use super::Value;

/// The largest schema, in bytes of its JSON.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The most memory that one pattern of a schema may compile to, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// Violations that are told; more would not help.
const MAX_VIOLATIONS: usize = 5;
/// The longest description of a violation, in characters: it may quote the value.
const MAX_VIOLATION_LENGTH: usize = 300;

/// A compiled schema.
#[derive(Debug)]
pub struct JsonSchema {
    validator: Validator,
}

/// A schema that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too large.
    #[error("the schema has {bytes} bytes; the most are {MAX_SCHEMA_BYTES}")]
    TooLarge {
        /// Its size as JSON.
        bytes: usize,
    },
    /// It does not describe an object.
    #[error("the schema must have \"type\": \"object\"")]
    NotOfObject,
    /// It is no valid schema, or it refers to what lies outside of it.
    #[error("the schema is not valid: {message}")]
    Invalid {
        /// What is wrong.
        message: String,
    },
}

/// What of a value does not fit a schema, in words for the one who wrote the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SchemaViolations {
    violations: Vec<String>,
    left_out: usize,
}

impl JsonSchema {
    /// Compiles a schema; draft 2020-12 unless it says otherwise.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLarge { bytes });
        }
        // The linear engine: with backtracking, a value could make a pattern run for ever.
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_draft(draft(schema))
            .with_pattern_options(patterns)
            .offline()
            .build(schema)
            .map_err(|error| SchemaError::Invalid {
                message: shortened(&error.to_string()),
            })?;
        Ok(Self { validator })
    }

    /// Compiles a schema of objects, as providers demand of arguments.
    pub fn compile_object(schema: &Value) -> Result<Self, SchemaError> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::NotOfObject);
        }
        Self::compile(schema)
    }

    /// Checks a value.
    pub fn check(&self, value: &Value) -> Result<(), SchemaViolations> {
        let mut errors = self.validator.iter_errors(value);
        let violations: Vec<_> = errors
            .by_ref()
            .take(MAX_VIOLATIONS)
            .map(|error| {
                let pointer = error.instance_path().as_str();
                let place = if pointer.is_empty() { "(root)" } else { pointer };
                format!("{place}: {}", shortened(&error.to_string()))
            })
            .collect();
        if violations.is_empty() {
            return Ok(());
        }
        Err(SchemaViolations {
            violations,
            left_out: errors.count(),
        })
    }
}

impl fmt::Display for SchemaViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.violations.join("; "))?;
        match self.left_out {
            0 => Ok(()),
            count => write!(f, "; and {count} more"),
        }
    }
}

/// A schema that names no known draft is read as the newest.
fn draft(schema: &Value) -> Draft {
    match Draft::Draft202012.detect(schema) {
        Draft::Unknown => Draft::Draft202012,
        draft => draft,
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_VIOLATION_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        let schema = JsonSchema::compile(schema).unwrap();
        schema.check(value).map_err(|violations| violations.to_string())
    }

    #[test]
    fn violations_name_the_place() {
        let schema = json!({
            "type": "object",
            "properties": {"x": {}, "a": {"type": "object", "properties": {"b/c": {"type": "integer"}}}},
            "required": ["x"],
            "additionalProperties": false,
        });
        let message = check(&schema, &json!({"a": {"b/c": "one"}, "y": 1})).unwrap_err();
        assert!(
            message.contains("/a/b~1c: \"one\" is not of type \"integer\""),
            "{message}"
        );
        assert!(message.contains("(root): \"x\" is a required property"), "{message}");
        assert!(message.contains("'y' was unexpected"), "{message}");
        assert_eq!(check(&schema, &json!({"x": 1, "a": {"b/c": 1}})), Ok(()));
    }

    #[test]
    fn many_and_long_violations_are_cut_short() {
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        let values = json!(vec!["é".repeat(10_000); 9]);
        let message = check(&schema, &values).unwrap_err();
        assert!(message.len() < 5_000, "{}", message.len());
        assert!(message.ends_with("; and 4 more"), "{message}");
    }

    #[test]
    fn a_schema_stays_within_itself_and_within_its_limits() {
        for reference in [
            "https://example.org/s.json",
            "file:///etc/passwd",
            "other.json",
            "#/missing",
        ] {
            let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
            let error = JsonSchema::compile(&schema).unwrap_err();
            assert!(matches!(error, SchemaError::Invalid { .. }), "{reference}: {error:?}");
        }
        let large = json!({"type": "object", "description": "x".repeat(70_000)});
        assert!(matches!(JsonSchema::compile(&large), Err(SchemaError::TooLarge { .. })));
        let greedy = json!({"type": "string", "pattern": "(((a{1000}){1000}){1000}){1000}"});
        assert!(matches!(JsonSchema::compile(&greedy), Err(SchemaError::Invalid { .. })));
        let array = json!({"type": "array"});
        assert_eq!(
            JsonSchema::compile_object(&array).unwrap_err(),
            SchemaError::NotOfObject
        );
    }

    #[test]
    fn other_drafts_are_read_as_such_and_unknown_ones_as_the_newest() {
        // In draft 7 a list of `items` is a tuple; in 2020-12 it is no valid schema.
        let tuple = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]});
        assert!(check(&tuple, &json!(["one"])).is_err());
        let unknown = json!({"$schema": "https://example.org/own", "prefixItems": [{"type": "integer"}]});
        assert!(check(&unknown, &json!(["one"])).is_err());
    }

    #[test]
    fn a_pattern_can_not_run_for_ever() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let hostile = format!("{}!", "a".repeat(50_000));
        assert!(check(&schema, &json!(hostile)).is_err());
    }

    #[test]
    fn a_schema_that_is_itself_does_not_exhaust_the_stack() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"not": {"$ref": "#"}}),
        ] {
            if let Ok(schema) = JsonSchema::compile(&schema) {
                let _ = schema.check(&json!({"a": 1}));
            }
        }
    }

    #[test]
    fn a_recursive_schema_is_fine() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
        assert_eq!(check(&schema, &json!({"next": {"next": {}}})), Ok(()));
        assert!(check(&schema, &json!({"next": {"last": {}}})).is_err());
    }
}

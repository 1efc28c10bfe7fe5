//! JSON Schema behind one wrapper. No other module names the library, and a schema never reads a
//! file or an address.
//!
//! Schemas and values come from callers and models, so both are bounded. A schema is measured
//! before it is compiled (`measure.rs`). A check counts the parts of a value that it reads
//! (`counted.rs`).

mod counted;
mod drafts;
mod error;
mod keywords;
mod measure;
mod unchecked;

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};

use self::counted::{Allowance, Counted, CountedJson};
pub use self::drafts::modernise_limits;
pub use self::error::SchemaError;
use self::error::{quoted, shortened};
pub use self::keywords::{WITH_NAMED_SCHEMAS, WITH_SCHEMAS};
use self::measure::{Measure, measure};
use self::unchecked::without_patterns;
use super::Value;

/// The most memory of all compiled patterns of a schema, in bytes. Each pattern may take an equal
/// share.
const MAX_PATTERNS_SIZE: usize = 1024 * 1024;
/// The most memory of one compiled pattern, in bytes.
const MAX_PATTERN_SIZE: usize = 256 * 1024;
/// The most checks of one value. They take less than a second.
const MAX_CHECKS: usize = 20_000_000;
/// The most checks to describe violations. Each error counts by its memory.
const MAX_DESCRIBED_CHECKS: usize = 200_000;
/// The most bytes of text that patterns are matched against. A member's name counts once for each
/// pattern.
const MAX_MATCHED_BYTES: usize = 32 * 1024;
/// The most levels of a value times levels of the schema, since the library recurses for each.
const MAX_LEVELS: usize = 600;
/// The most violations that are reported. More would not help.
const MAX_VIOLATIONS: usize = 5;

/// A compiled schema.
#[derive(Debug)]
pub struct JsonSchema {
    validator: Validator<CountedJson>,
    measure: Measure,
}

/// The parts of a value that do not fit a schema, described for the author of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SchemaViolations {
    violations: Vec<String>,
    /// The number of further violations; `None` if they are not counted.
    left_out: Option<usize>,
}

impl JsonSchema {
    /// Checks that a schema of objects is small enough to compile and use. Only compilation shows
    /// whether it is valid.
    pub fn check_size_of_object(schema: &Value) -> Result<(), SchemaError> {
        check_type(schema)?;
        measure(schema).map(drop)
    }

    /// Compiles a schema, by default of draft 2020-12. This may take a noticeable part of a second.
    ///
    /// Patterns that can't be compiled are not checked, for example those with look-around.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let measured = measure(schema)?;
        // Uses the linear engine, since with backtracking a pattern could run forever on some
        // values.
        let share = MAX_PATTERNS_SIZE / measured.patterns.max(1);
        let patterns = || PatternOptions::regex().size_limit(share.min(MAX_PATTERN_SIZE));
        let build = |part: &Value| {
            jsonschema::options_for::<CountedJson>()
                .with_draft(draft(schema))
                .with_pattern_options(patterns())
                .offline()
                .build(part)
                .map_err(|error| SchemaError::Invalid {
                    message: shortened(&error.to_string()),
                })
        };
        let validator = build(schema).or_else(|error| {
            let is_compilable = |pattern: &str| build(&serde_json::json!({"pattern": pattern})).is_ok();
            match without_patterns(schema, &is_compilable) {
                Some(relaxed) => build(&relaxed),
                None => Err(error),
            }
        })?;
        Ok(Self {
            validator,
            measure: measured,
        })
    }

    /// Compiles a schema of objects, which providers require for arguments.
    pub fn compile_object(schema: &Value) -> Result<Self, SchemaError> {
        check_type(schema)?;
        Self::compile(schema)
    }

    /// Checks a value. This may take a noticeable part of a second.
    pub fn check(&self, value: &Value) -> Result<(), SchemaViolations> {
        if depth(value).saturating_mul(self.measure.height) > MAX_LEVELS {
            return Err(SchemaViolations::one("it nests too deep to be checked"));
        }
        let allowance = Allowance::new(MAX_CHECKS, MAX_MATCHED_BYTES, &self.measure);
        match allowance.spend(|allowance| self.validator.is_valid(Counted::new(value, allowance))) {
            None => Err(SchemaViolations::one(
                "it takes too much work to check it: make it smaller",
            )),
            Some(true) => Ok(()),
            Some(false) => Err(self.violations(value)),
        }
    }

    fn violations(&self, value: &Value) -> SchemaViolations {
        let allowance =
            || Allowance::new(MAX_DESCRIBED_CHECKS, MAX_MATCHED_BYTES, &self.measure).with_errors_of_names();
        let all = allowance().spend(|allowance| {
            let mut errors = self.validator.iter_errors(Counted::new(value, allowance));
            SchemaViolations {
                violations: errors
                    .by_ref()
                    .take(MAX_VIOLATIONS)
                    .map(|error| described(&error, value))
                    .collect(),
                left_out: Some(errors.count()),
            }
        });
        let first = || {
            allowance().spend(|allowance| {
                let error = self.validator.validate(Counted::new(value, allowance)).err()?;
                Some(SchemaViolations {
                    violations: vec![described(&error, value)],
                    left_out: None,
                })
            })
        };
        all.or_else(|| first().flatten())
            .unwrap_or_else(|| SchemaViolations::one("it does not fit, in more ways than can be named"))
    }
}

impl SchemaViolations {
    fn one(words: &str) -> Self {
        Self {
            violations: vec![format!("(root): {words}")],
            left_out: Some(0),
        }
    }
}

impl fmt::Display for SchemaViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.violations.join("; "))?;
        match self.left_out {
            Some(0) => Ok(()),
            None => f.write_str("; there may be more"),
            Some(count) => write!(f, "; and {count} more"),
        }
    }
}

fn check_type(schema: &Value) -> Result<(), SchemaError> {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_object {
        Ok(())
    } else {
        Err(SchemaError::NotOfObject)
    }
}

/// Returns the nesting depth of a value. Parsers bound the depth, so this ends.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Returns the draft of a schema; the newest one if it names no known draft.
fn draft(schema: &Value) -> Draft {
    match Draft::Draft202012.detect(schema) {
        Draft::Unknown => Draft::Draft202012,
        draft => draft,
    }
}

/// Describes which part of a value does not fit. The error itself does not contain the value.
fn described(error: &ValidationError<'_>, value: &Value) -> String {
    let pointer = error.instance_path().as_str();
    let location = if pointer.is_empty() { "(root)" } else { pointer };
    let quoted = quoted(&value.pointer(pointer).unwrap_or(&Value::Null).to_string());
    let words = match error.kind() {
        ValidationErrorKind::AdditionalItems { limit } => format!("{quoted} has more than {limit} items"),
        ValidationErrorKind::UnevaluatedItems { .. } => error.to_string(),
        _ => error.masked_with(quoted).to_string(),
    };
    format!("{}: {}", shortened(location), shortened(&words))
}

#[cfg(test)]
mod worst_case;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        let schema = JsonSchema::compile(schema).unwrap();
        schema.check(value).map_err(|violations| violations.to_string())
    }

    #[test]
    fn violations_name_the_location() {
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
        // The reason follows after the quote.
        assert!(message.contains("é… is not of type \"integer\"; "), "{message}");
        assert!(message.ends_with("; and 4 more"), "{message}");
    }

    #[test]
    fn a_schema_stays_within_itself_and_within_its_limits() {
        for reference in "https://example.org/s.json file:///etc/passwd other.json #/missing".split(' ') {
            let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
            let error = JsonSchema::compile(&schema).unwrap_err();
            assert!(matches!(error, SchemaError::Invalid { .. }), "{reference}: {error:?}");
        }
        let large = json!({"type": "object", "description": "x".repeat(70_000)});
        assert!(matches!(JsonSchema::compile(&large), Err(SchemaError::TooLarge { .. })));
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
    fn how_deep_a_value_may_nest_depends_on_its_schema() {
        // Together with the innermost schema, 21 schemas apply to each value inside the value.
        let schema = (0..20).fold(json!({}), |inner, _| json!({"allOf": [inner]}));
        let value = |levels: usize| (1..levels).fold(json!(1), |value, _| json!([value]));
        assert_eq!(check(&schema, &value(MAX_LEVELS / 21)), Ok(()));
        let described = check(&schema, &value(MAX_LEVELS / 21 + 1)).unwrap_err();
        assert_eq!(described, "(root): it nests too deep to be checked");
    }

    #[test]
    fn patterns_that_can_not_be_compiled_are_not_checked() {
        let hard = "^(?!admin)[a-z]+$";
        let greedy = "(((a{1000}){1000}){1000}){1000}";
        for (schema, fits, others) in [
            (json!({"type": "string", "pattern": hard}), json!("admin"), json!(1)),
            (json!({"type": "string", "pattern": greedy}), json!("b"), json!(1)),
            (json!({"type": "string", "pattern": "(a)\\1"}), json!("b"), json!(1)),
            (
                json!({"type": "object", "properties": {"pattern": {"pattern": "^a"}, "b": {"pattern": hard}}}),
                json!({"pattern": "a", "b": "admin"}),
                json!({"pattern": "b"}),
            ),
            (
                json!({"type": "object", "patternProperties": {hard: {}, "^x": {"type": "null"}}, "additionalProperties": false}),
                json!({"admin": 1, "x": null}),
                json!({"x": 1}),
            ),
            (
                json!({"type": "string", "not": {"pattern": hard}}),
                json!("b"),
                json!(1),
            ),
            (
                json!({"oneOf": [{"type": "string", "pattern": hard}, {"type": "string"}]}),
                json!("admin"),
                json!(1),
            ),
            (
                json!({"not": {"$ref": "#/$defs/a"}, "type": "string", "$defs": {"a": {"pattern": hard}}}),
                json!("admin"),
                json!(1),
            ),
            (
                json!({"if": {"pattern": hard}, "then": {"minLength": 100}, "type": "string"}),
                json!("admin"),
                json!(1),
            ),
            (
                json!({"enum": [{"pattern": hard}], "pattern": hard}),
                json!({"pattern": hard}),
                json!({}),
            ),
        ] {
            assert_eq!(check(&schema, &fits), Ok(()), "{schema}");
            assert!(check(&schema, &others).is_err(), "{schema}");
        }
    }

    #[test]
    fn names_of_members_and_data_may_be_names_of_keywords() {
        let schema = json!({
            "properties": {"$id": {"type": "string"}, "enum": {"pattern": "^a"}, "not": {"const": {"$ref": "other", "$id": "a"}}},
            "default": {"$dynamicRef": "#a"},
        });
        let value = json!({"$id": "a", "enum": "ab", "not": {"$ref": "other", "$id": "a"}});
        assert_eq!(check(&schema, &value), Ok(()));
        assert!(check(&schema, &json!({"enum": "b"})).is_err());
    }
}

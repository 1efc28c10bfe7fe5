//! The shape of final responses: what a response format demands, and where a response violates it.
//!
//! Does not call a model.

use std::sync::{Arc, Mutex, PoisonError};

use crate::json::{JsonSchema, SchemaError, Value, parse_strict};
use crate::model_ref::ResponseFormat;
use crate::off_thread::off_thread;
use crate::tenant::TenantId;

/// The longest name of a schema that every provider takes, in bytes.
const MAX_NAME_LENGTH: usize = 64;
/// Surrounds a block of code in Markdown; models like to put JSON into one.
const FENCE: &str = "```";

/// A response format, ready to check answers.
#[derive(Debug)]
pub struct AnswerShape {
    demand: Demand,
}

#[derive(Debug)]
enum Demand {
    Words,
    Object,
    Schema(JsonSchema),
}

/// A response format that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerShapeError {
    /// Providers refuse the schema's name.
    #[error("a schema of answers is named by 1 to 64 letters, digits, - and _, not {name:?}")]
    Name {
        /// The name.
        name: String,
    },
    /// The schema is invalid, or describes no object, which providers demand.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl AnswerShape {
    /// Makes the shape that the format demands. Compiling a schema may take a noticeable part of a
    /// second.
    pub fn of(format: &ResponseFormat) -> Result<Self, AnswerShapeError> {
        let demand = match format {
            ResponseFormat::Text => Demand::Words,
            ResponseFormat::JsonObject => Demand::Object,
            ResponseFormat::JsonSchema { name, schema, .. } => {
                check_name(name)?;
                Demand::Schema(JsonSchema::compile_object(schema)?)
            }
        };
        Ok(Self { demand })
    }

    /// Checks a format without compiling its schema.
    pub fn check_size(format: &ResponseFormat) -> Result<(), AnswerShapeError> {
        if let ResponseFormat::JsonSchema { name, schema, .. } = format {
            check_name(name)?;
            JsonSchema::check_size_of_object(schema)?;
        }
        Ok(())
    }

    /// Returns whether plain text is wanted.
    pub fn is_words(&self) -> bool {
        matches!(self.demand, Demand::Words)
    }

    /// Returns whether completions are checked by a schema, which may take a noticeable part of a
    /// second.
    pub fn has_schema(&self) -> bool {
        matches!(self.demand, Demand::Schema(_))
    }

    /// Reads a completion: no value for plain text, else its value, or an error message for the
    /// model.
    pub fn read(&self, answer: &str) -> Result<Option<Value>, String> {
        if self.is_words() {
            return Ok(None);
        }
        let value = parse_strict(unfenced(answer)).map_err(|error| format!("it is not valid JSON: {error}"))?;
        match &self.demand {
            Demand::Schema(schema) => schema.check(&value).map_err(|violations| violations.to_string())?,
            Demand::Object if !value.is_object() => return Err("it is not a JSON object".to_owned()),
            Demand::Object | Demand::Words => (),
        }
        Ok(Some(value))
    }
}

/// Makes the shapes of an execution, off the async workers. Hooks may change the format between two
/// steps, so the last one is cached.
#[derive(Debug, Default)]
pub struct AnswerShapes {
    last: Mutex<Option<(ResponseFormat, Arc<AnswerShape>)>>,
}

impl AnswerShapes {
    /// Returns the shape that the format demands.
    pub async fn shape(
        &self,
        tenant: &TenantId,
        format: &ResponseFormat,
    ) -> Result<Arc<AnswerShape>, AnswerShapeError> {
        if !matches!(format, ResponseFormat::JsonSchema { .. }) {
            return AnswerShape::of(format).map(Arc::new);
        }
        if let Some(shape) = self.known(format) {
            return Ok(shape);
        }
        let (format, shape) = {
            let format = format.clone();
            off_thread(tenant, move || {
                let shape = AnswerShape::of(&format);
                (format, shape)
            })
            .await
        };
        let shape = Arc::new(shape?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((format, Arc::clone(&shape)));
        Ok(shape)
    }

    fn known(&self, format: &ResponseFormat) -> Option<Arc<AnswerShape>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, shape) = last.as_ref().filter(|(known, _)| known == format)?;
        Some(Arc::clone(shape))
    }
}

fn check_name(name: &str) -> Result<(), AnswerShapeError> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    if (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(AnswerShapeError::Name { name: name.to_owned() })
}

/// Returns the text without a fence around it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    // The rest of the opening line names the language.
    inside
        .and_then(|inside| inside.split_once('\n'))
        .map_or(text, |(_, block)| block)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(name: &str, schema: Value) -> ResponseFormat {
        ResponseFormat::JsonSchema {
            name: name.to_owned(),
            schema,
            strict: false,
        }
    }

    #[test]
    fn answers_fit_or_say_what_does_not() {
        let weather = json!({
            "type": "object",
            "properties": {"celsius": {"type": "number"}},
            "required": ["celsius"],
            "additionalProperties": false,
        });
        let weather = schema("weather", weather);
        let fits = |value: Value| Ok(Some(value));
        let fails = |words: &str| Err(words.to_owned());
        let cases = [
            (&ResponseFormat::Text, "anything", Ok(None)),
            (&ResponseFormat::JsonObject, r#" {"a": 1} "#, fits(json!({"a": 1}))),
            (&ResponseFormat::JsonObject, "[1]", fails("it is not a JSON object")),
            (&weather, r#"{"celsius": 21}"#, fits(json!({"celsius": 21}))),
            (
                &weather,
                "```json\n{\"celsius\": 21}\n```",
                fits(json!({"celsius": 21})),
            ),
            (&weather, "```\n{\"celsius\": 21}```\n", fits(json!({"celsius": 21}))),
            (
                &weather,
                r#"{"celsius": "warm"}"#,
                fails(r#"/celsius: "warm" is not of type "number""#),
            ),
            (&weather, "{}", fails(r#"(root): "celsius" is a required property"#)),
            (
                &weather,
                "Warm.",
                fails("it is not valid JSON: expected value at line 1 column 1"),
            ),
            (
                &weather,
                r#"{"celsius": 1, "celsius": 2}"#,
                fails("it is not valid JSON: the key \"celsius\" appears twice at line 1 column 24"),
            ),
            (
                &weather,
                "```",
                fails("it is not valid JSON: expected value at line 1 column 1"),
            ),
            (
                &weather,
                "",
                fails("it is not valid JSON: EOF while parsing a value at line 1 column 0"),
            ),
        ];
        for (format, answer, expected) in cases {
            assert_eq!(AnswerShape::of(format).unwrap().read(answer), expected, "{answer}");
        }
    }

    #[tokio::test]
    async fn a_shape_is_compiled_once_and_beside_other_tasks() {
        let patterns: Vec<Value> = (0..40)
            .map(|at| json!({"pattern": format!("^{at}[a-z]{{1,100}}$")}))
            .collect();
        let slow = schema(
            "slow",
            json!({"type": "object", "properties": {"a": {"anyOf": patterns}}}),
        );
        let (shapes, tenant) = (AnswerShapes::default(), TenantId::anonymous());
        let mut turns = 0_u64;
        let others = async {
            loop {
                tokio::task::yield_now().await;
                turns += 1;
            }
        };
        // Compiling the shape on the only thread of this runtime would block the others.
        let shape = tokio::select! {
            biased;
            shape = shapes.shape(&tenant, &slow) => shape.unwrap(),
            () = others => unreachable!(),
        };
        assert!(turns > 0);
        assert!(Arc::ptr_eq(&shape, &shapes.shape(&tenant, &slow).await.unwrap()));
        let other = schema("other", json!({"type": "object"}));
        assert!(!Arc::ptr_eq(&shape, &shapes.shape(&tenant, &other).await.unwrap()));
        let deep = (0..22).fold(json!({}), |one, _| json!({"anyOf": [one, {"$ref": "#/properties/a"}]}));
        let invalid = schema("invalid", json!({"type": "object", "properties": {"a": deep}}));
        assert!(shapes.shape(&tenant, &invalid).await.is_err());
        assert!(AnswerShape::check_size(&invalid).is_err());
    }

    #[test]
    fn formats_that_no_answer_could_be_held_to_are_refused() {
        let object = json!({"type": "object"});
        let long = "a".repeat(65);
        for (format, words) in [
            (schema("", object.clone()), "is named by 1 to 64 letters"),
            (schema(&long, object.clone()), "is named by 1 to 64 letters"),
            (schema("my answer", object), "is named by 1 to 64 letters"),
            (schema("a", json!({"type": "array"})), r#"must have "type": "object""#),
            (
                schema("a", json!({"type": "object", "required": 1})),
                "the schema is not valid",
            ),
            (
                schema(
                    "a",
                    json!({"type": "object", "properties": {"x": {"$ref": "https://example.org/x"}}}),
                ),
                "the schema is not valid",
            ),
        ] {
            let error = AnswerShape::of(&format).unwrap_err().to_string();
            assert!(error.contains(words), "{format:?}: {error}");
        }
    }
}

//! Checks whether a response format can be used, and where a final response violates it.
//!
//! Does not call a model.

use std::sync::Arc;

use parking_lot::Mutex;

use super::ports::ToolSpec;
use tasks::off_thread::off_thread;
use values::json::{JsonSchema, SchemaError, Value, parse_strict};
use values::model_ref::ResponseFormat;
use values::tenant::TenantId;

/// Surrounds a block of code in Markdown. Models often put JSON into such a block.
const FENCE: &str = "```";

/// A response format that is ready to check responses.
#[derive(Debug)]
pub enum CompiledFormat {
    /// Plain text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// A JSON object that fits the schema. A check may take a noticeable part of a second.
    JsonSchema(JsonSchema),
}

/// A response format that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Providers refuse the schema's name.
    #[error("a schema of answers is named by 1 to 64 letters, digits, - and _, not {name:?}")]
    Name { name: String },
    /// The schema is invalid, or does not describe an object, as providers require.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl CompiledFormat {
    /// Compiles a format. Compiling a schema may take a noticeable part of a second.
    pub fn of(format: &ResponseFormat) -> Result<Self, FormatError> {
        Ok(match format {
            ResponseFormat::Text => Self::Text,
            ResponseFormat::JsonObject => Self::JsonObject,
            ResponseFormat::JsonSchema { name, schema, .. } => {
                check_name(name)?;
                Self::JsonSchema(JsonSchema::compile_object(schema)?)
            }
        })
    }

    /// Checks a format without compiling its schema.
    pub fn check_size(format: &ResponseFormat) -> Result<(), FormatError> {
        if let ResponseFormat::JsonSchema { name, schema, .. } = format {
            check_name(name)?;
            JsonSchema::check_size_of_object(schema)?;
        }
        Ok(())
    }

    /// Returns whether the format is plain text.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }

    /// Parses a response and returns its value; `None` for plain text. The error is a message for
    /// the model.
    pub fn read(&self, response: &str) -> Result<Option<Value>, String> {
        if self.is_text() {
            return Ok(None);
        }
        let value = parse_strict(unfenced(response)).map_err(|error| format!("it is not valid JSON: {error}"))?;
        match self {
            Self::JsonSchema(schema) => schema.check(&value).map_err(|violations| violations.to_string())?,
            Self::JsonObject if !value.is_object() => return Err("it is not a JSON object".to_owned()),
            Self::JsonObject | Self::Text => (),
        }
        Ok(Some(value))
    }
}

/// Compiles the response formats of an execution, off the async workers. Hooks may change the
/// format between two steps, so the last one is cached.
#[derive(Debug, Default)]
pub struct FormatCache {
    last: Mutex<Option<(ResponseFormat, Arc<CompiledFormat>)>>,
}

impl FormatCache {
    /// Returns the compiled format.
    pub async fn compiled(
        &self,
        tenant: &TenantId,
        format: &ResponseFormat,
    ) -> Result<Arc<CompiledFormat>, FormatError> {
        if !matches!(format, ResponseFormat::JsonSchema { .. }) {
            return CompiledFormat::of(format).map(Arc::new);
        }
        if let Some(compiled) = self.known(format) {
            return Ok(compiled);
        }
        let format = format.clone();
        let work = move || CompiledFormat::of(&format).map(|compiled| (format, Arc::new(compiled)));
        let (format, compiled) = off_thread(tenant, work).await?;
        *self.last.lock() = Some((format, Arc::clone(&compiled)));
        Ok(compiled)
    }

    fn known(&self, format: &ResponseFormat) -> Option<Arc<CompiledFormat>> {
        let last = self.last.lock();
        let (_, compiled) = last.as_ref().filter(|(known, _)| known == format)?;
        Some(Arc::clone(compiled))
    }
}

fn check_name(name: &str) -> Result<(), FormatError> {
    if ToolSpec::is_valid_name(name) {
        return Ok(());
    }
    Err(FormatError::Name { name: name.to_owned() })
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
    fn a_response_fits_or_the_error_names_the_violation() {
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
        for (format, response, expected) in cases {
            assert_eq!(
                CompiledFormat::of(format).unwrap().read(response),
                expected,
                "{response}"
            );
        }
    }

    #[tokio::test]
    async fn a_format_is_compiled_once_and_beside_other_tasks() {
        let patterns: Vec<Value> = (0..40)
            .map(|at| json!({"pattern": format!("^{at}[a-z]{{1,100}}$")}))
            .collect();
        let slow = schema(
            "slow",
            json!({"type": "object", "properties": {"a": {"anyOf": patterns}}}),
        );
        let (formats, tenant) = (FormatCache::default(), TenantId::anonymous());
        let mut turns = 0_u64;
        let others = async {
            loop {
                tokio::task::yield_now().await;
                turns += 1;
            }
        };
        // Compiling the format on the only thread of this runtime would block the others.
        let format = tokio::select! {
            biased;
            format = formats.compiled(&tenant, &slow) => format.unwrap(),
            () = others => unreachable!(),
        };
        assert!(turns > 0);
        assert!(Arc::ptr_eq(&format, &formats.compiled(&tenant, &slow).await.unwrap()));
        let other = schema("other", json!({"type": "object"}));
        assert!(!Arc::ptr_eq(&format, &formats.compiled(&tenant, &other).await.unwrap()));
        let deep = (0..22).fold(json!({}), |one, _| json!({"anyOf": [one, {"$ref": "#/properties/a"}]}));
        let invalid = schema("invalid", json!({"type": "object", "properties": {"a": deep}}));
        assert!(formats.compiled(&tenant, &invalid).await.is_err());
        assert!(CompiledFormat::check_size(&invalid).is_err());
    }

    #[test]
    fn formats_that_no_response_could_follow_are_refused() {
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
            let error = CompiledFormat::of(&format).unwrap_err().to_string();
            assert!(error.contains(words), "{format:?}: {error}");
        }
    }
}

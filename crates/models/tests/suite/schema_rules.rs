//! The rules that providers publish about the schemas that they accept.

use models::ProviderKind;
use serde_json::Value;

const NEVER_AT_ROOT: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "enum", "if", "$ref"];
const OF_GEMINI: [&str; 15] = [
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];
const NOT_STRICT: [&str; 12] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "minLength",
    "maxLength",
    "default",
    "uniqueItems",
    "minProperties",
    "propertyNames",
    "contains",
];
const NOT_CLOSED: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "oneOf",
    "not",
    "$ref",
];

/// Panics unless the provider accepts the tool.
#[track_caller]
pub(crate) fn assert_tool_schema(kind: ProviderKind, name: &str, description: &str, schema: &Value) {
    assert_root(schema);
    visit(schema, &mut |part| assert_part(kind, name, part));
    if matches!(kind, ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses) {
        assert!(description.chars().count() <= 1_024, "{name}: {description}");
    }
    if kind == ProviderKind::Bedrock {
        let is_known = |keyword: &String| ["type", "properties", "required"].contains(&keyword.as_str());
        assert!(schema.as_object().unwrap().keys().all(is_known), "{schema}");
    }
}

/// Panics unless the provider accepts the response format.
#[track_caller]
pub(crate) fn assert_answer_schema(kind: ProviderKind, strict: bool, schema: &Value) {
    assert_root(schema);
    let is_openai = matches!(kind, ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses);
    let is_closed = strict && kind != ProviderKind::Gemini;
    visit(schema, &mut |part| {
        assert_part(kind, "", part);
        let refused = if is_openai { NOT_STRICT } else { NOT_CLOSED };
        for keyword in refused.iter().filter(|_| is_closed) {
            assert!(part.get(keyword).is_none(), "{keyword}: {part}");
        }
        if let Some(members) = part.get("properties").filter(|_| is_closed) {
            assert_eq!(part["additionalProperties"], false, "{part}");
            let required = part.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            assert!(!is_openai || required == members.as_object().unwrap().len(), "{part}");
        }
    });
}

#[track_caller]
fn assert_root(schema: &Value) {
    assert_eq!(schema["type"], "object", "{schema}");
    assert!(schema["properties"].is_object(), "{schema}");
    for keyword in NEVER_AT_ROOT {
        assert!(schema.get(keyword).is_none(), "{keyword}: {schema}");
    }
}

fn assert_part(kind: ProviderKind, name: &str, part: &Value) {
    let Some(keywords) = part.as_object() else {
        panic!("{name}: no schema: {part}");
    };
    if part["type"] == "array" {
        assert!(part["items"].is_object(), "{name}: {part}");
    }
    if part["type"] == "object" {
        assert!(part["properties"].is_object(), "{name}: {part}");
    }
    for limit in ["exclusiveMinimum", "exclusiveMaximum"] {
        assert!(!part[limit].is_boolean(), "{name}: {part}");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    for member in keywords
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        assert!(
            member.0.chars().all(plain) && (1..=64).contains(&member.0.len()),
            "{name}: {part}"
        );
    }
    if let (Some(Value::Array(required)), Some(Value::Object(members))) =
        (keywords.get("required"), keywords.get("properties"))
    {
        let is_known = |name: &Value| members.contains_key(name.as_str().unwrap());
        assert!(required.iter().all(is_known), "{name}: {part}");
    }
    if kind == ProviderKind::Gemini {
        let unknown: Vec<_> = keywords
            .keys()
            .filter(|name| !OF_GEMINI.contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?} in {part}");
    }
}

/// Visits the schema and all schemas within it.
fn visit(schema: &Value, check: &mut impl FnMut(&Value)) {
    check(schema);
    let Some(keywords) = schema.as_object() else { return };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.values().for_each(|schema| visit(schema, check));
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                for schema in schemas {
                    visit(schema, check);
                }
            }
            ("items" | "additionalProperties", schema @ Value::Object(_)) => visit(schema, check),
            _ => {}
        }
    }
}

//! The keywords that have schemas below them, and the keywords that have data.

/// Keywords whose value is a schema, or a list of schemas.
pub const WITH_SCHEMAS: [&str; 16] = [
    "not",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
];
/// Keywords whose value has schemas by name.
pub const WITH_NAMED_SCHEMAS: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];
/// Keywords whose value is data.
pub(super) const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

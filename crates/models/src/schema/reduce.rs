//! Reduces one schema by the rules of a protocol. Keywords that it loses move into the description,
//! so that the model still knows them.

use std::collections::BTreeSet;

use super::flat::{Flattener, required};
use super::keys::Names;
use super::rules::{Rules, TABLE};
use values::json::{Object, Value, WITH_NAMED_SCHEMAS, WITH_SCHEMAS, modernise_limits};

/// The most characters of a keyword in a description.
const MAX_REPORTED: usize = 200;
/// Keywords whose value is a list of names of members.
const LISTS_OF_MEMBERS: [&str; 2] = ["required", "propertyOrdering"];
/// Keywords whose value has members by name: their schemas, or the names of others.
const BY_MEMBER: [&str; 4] = ["properties", "dependentRequired", "dependentSchemas", "dependencies"];
/// The most groups of members in a description.
const MAX_GROUPS: usize = 20;

/// A reduced schema.
#[derive(Debug)]
pub(super) struct Reduced {
    pub(super) schema: Value,
    /// The rules of the root for its members together, and its losses.
    pub(super) note: Option<String>,
    /// Whether the rules can't express the schema.
    pub(super) is_loose: bool,
}

#[derive(Debug)]
pub(super) struct Reducer<'a> {
    rules: &'a Rules,
    names: &'a Names,
    root: &'a Value,
    flattener: Flattener<'a>,
    /// The references that are being replaced.
    underway: Vec<String>,
    is_loose: bool,
}

impl<'a> Reducer<'a> {
    pub(super) fn new(rules: &'a Rules, root: &'a Value, names: &'a Names) -> Self {
        Self {
            rules,
            names,
            root,
            flattener: Flattener::new(root),
            underway: Vec::new(),
            is_loose: false,
        }
    }

    /// Reduces the whole schema. Its root becomes a plain object.
    pub(super) fn reduce(mut self) -> Reduced {
        let root = self.root.as_object().cloned().unwrap_or_default();
        let mut root = self.flattener.flat(root, 0);
        root.insert("type".to_owned(), Value::from("object"));
        let mut schema = self.object(root);
        let mut notes = Vec::new();
        if !self.rules.at_root.is_empty() {
            schema.retain(|keyword, value| {
                let is_accepted = self.rules.at_root.contains(keyword);
                match value {
                    _ if is_accepted || has(&TABLE.silent, keyword) => {}
                    Value::Bool(_) => {}
                    Value::String(text) if keyword == "description" => notes.push(text.clone()),
                    value => notes.push(report(keyword, value)),
                }
                is_accepted
            });
        }
        notes.extend(self.note());
        Reduced {
            schema: Value::Object(schema),
            note: (!notes.is_empty()).then(|| notes.join("\n")),
            is_loose: self.is_loose,
        }
    }

    fn note(&self) -> Option<String> {
        let groups = self.flattener.groups.iter().filter(|group| !group.is_empty());
        let groups = groups.map(|names| {
            let names: Vec<_> = names.iter().map(|name| self.names.of_member(name)).collect();
            names.join(" with ")
        });
        let groups: Vec<_> = groups.collect();
        let groups = groups.get(..MAX_GROUPS).unwrap_or(&groups);
        (!groups.is_empty()).then(|| format!("Give one of these: {}.", groups.join("; ")))
    }

    fn schema(&mut self, schema: Value) -> Value {
        match schema {
            Value::Object(schema) => Value::Object(self.object(schema)),
            Value::Array(schemas) => schemas.into_iter().map(|schema| self.schema(schema)).collect(),
            Value::Bool(true) => self.schema(Value::Object(Object::new())),
            other => other,
        }
    }

    fn object(&mut self, schema: Object) -> Object {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let reference = reference.clone();
            return self.reference(schema, &reference);
        }
        let schema = if schema.contains_key("allOf") && !self.accepts("allOf") {
            self.flattener.without_all_of(schema, 0)
        } else {
            schema
        };
        let mut reduced = Object::new();
        let mut reported = Vec::new();
        let has_items = schema.get("items").is_some_and(Value::is_object);
        for (keyword, value) in modern(schema) {
            let name = keyword.as_str();
            let value = self.renamed(name, value);
            let (keyword, value) = match (name, value) {
                ("$schema" | "$id", _) => continue,
                ("$defs" | "definitions", _) if self.rules.inlines => continue,
                ("required", value) if !value.is_array() => continue,
                ("prefixItems", _) if has_items => continue,
                ("oneOf", value) if !self.accepts(name) && self.accepts("anyOf") => ("anyOf", value),
                ("const", value) if !self.accepts(name) && (value.is_string() || value.is_number()) => {
                    ("enum", Value::Array(vec![value]))
                }
                // Not all protocols know tuples.
                ("prefixItems", Value::Array(items)) if items.is_empty() => continue,
                ("prefixItems", Value::Array(items)) => ("items", serde_json::json!({"anyOf": items})),
                (name, value) if !self.accepts_value(name, &value) => {
                    if !has(&TABLE.silent, name) {
                        reported.push(report(name, &value));
                    }
                    continue;
                }
                (name, value) => (name, value),
            };
            let value = self.value(keyword, value);
            reduced.insert(keyword.to_owned(), value);
        }
        self.complete(&mut reduced);
        if !reported.is_empty() {
            let description = reduced.get("description").and_then(Value::as_str);
            let parts = description.into_iter().map(str::to_owned).chain([reported.join(", ")]);
            let description = parts.collect::<Vec<_>>().join("\n");
            reduced.insert("description".to_owned(), Value::from(description));
        }
        reduced
    }

    /// Replaces the names of members in the value of a keyword.
    fn renamed(&self, keyword: &str, value: Value) -> Value {
        match value {
            Value::Object(members) if BY_MEMBER.contains(&keyword) => members
                .into_iter()
                .map(|(name, value)| (self.names.of_member(&name).to_owned(), self.renamed("required", value)))
                .collect(),
            Value::Array(names) if LISTS_OF_MEMBERS.contains(&keyword) => names
                .into_iter()
                .map(|name| match name {
                    Value::String(name) => Value::from(self.names.of_member(&name)),
                    other => other,
                })
                .collect(),
            value => value,
        }
    }

    fn value(&mut self, keyword: &str, value: Value) -> Value {
        match value {
            Value::Object(schemas) if WITH_NAMED_SCHEMAS.contains(&keyword) => schemas
                .into_iter()
                .map(|(name, schema)| (name, self.schema(schema)))
                .collect(),
            // `true` and `false` are rules about further members.
            Value::Bool(rule) if keyword != "items" => Value::Bool(rule),
            value if WITH_SCHEMAS.contains(&keyword) => self.schema(value),
            value => value,
        }
    }

    /// Adds the keywords that protocols demand of objects and lists.
    fn complete(&mut self, schema: &mut Object) {
        let is = |schema: &Object, name: &str| match schema.get("type") {
            Some(Value::String(own)) => own == name,
            Some(Value::Array(own)) => own.iter().any(|own| own == name),
            _ => false,
        };
        if is(schema, "array") {
            schema.entry("items").or_insert_with(|| Value::Object(Object::new()));
        }
        let is_object = is(schema, "object") || schema.contains_key("properties");
        if is_object {
            if !schema.get("properties").is_some_and(Value::is_object) {
                schema.insert("properties".to_owned(), Value::Object(Object::new()));
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            let names: BTreeSet<_> = properties.into_iter().flat_map(Object::keys).cloned().collect();
            let mut needed = required(schema);
            needed.retain(|name| names.contains(name));
            self.is_loose |= self.rules.complete && names.iter().any(|name| !needed.contains(name));
            if schema.contains_key("required") {
                schema.insert("required".to_owned(), Value::from(needed));
            }
            if self.rules.closed {
                let further = schema.insert("additionalProperties".to_owned(), Value::Bool(false));
                self.is_loose |= names.is_empty() && further.is_some_and(|further| further != Value::Bool(false));
            }
        }
        let has_type = ["type", "anyOf", "enum", "const", "$ref"]
            .iter()
            .any(|name| schema.contains_key(*name));
        self.is_loose |= self.rules.complete && !has_type;
    }

    fn reference(&mut self, mut schema: Object, reference: &str) -> Object {
        let is_definition =
            reference == "#" || reference.starts_with("#/$defs/") || reference.starts_with("#/definitions/");
        if !self.rules.inlines && is_definition {
            if self.rules.closed {
                schema.retain(|keyword, _| keyword == "$ref");
            }
            return schema;
        }
        schema.remove("$ref");
        let is_underway = self.underway.iter().any(|underway| underway == reference);
        let target = if is_underway {
            None
        } else {
            self.flattener.target(reference)
        };
        let Some(target) = target else {
            // A schema within itself ends here. The check of the value goes on.
            self.is_loose = true;
            return self.object(schema);
        };
        for (keyword, value) in target {
            schema.entry(keyword.clone()).or_insert_with(|| value.clone());
        }
        self.underway.push(reference.to_owned());
        let reduced = self.object(schema);
        self.underway.pop();
        reduced
    }

    fn accepts(&self, keyword: &str) -> bool {
        let Rules { accepted, refused, .. } = self.rules;
        (accepted.is_empty() || has(accepted, keyword)) && !has(refused, keyword)
    }

    fn accepts_value(&self, keyword: &str, value: &Value) -> bool {
        let formats = &self.rules.format_values;
        let fits = match (keyword, value) {
            ("format", Value::String(format)) => formats.is_empty() || formats.contains(format),
            ("minItems", value) => self.rules.min_items.is_none_or(|most| value.as_u64() <= Some(most)),
            ("pattern", Value::String(pattern)) if self.rules.closed => {
                !TABLE.hard_patterns.iter().any(|part| pattern.contains(part))
            }
            _ => true,
        };
        fits && self.accepts(keyword)
    }
}

/// Returns a keyword in the words of a description.
fn report(keyword: &str, value: &Value) -> String {
    format!("{keyword}: {value}").chars().take(MAX_REPORTED).collect()
}

fn has(keywords: &[String], keyword: &str) -> bool {
    keywords.iter().any(|known| known == keyword)
}

/// Rewrites keywords of older drafts, which some providers refuse: lists of `items`, and limits
/// that are exclusive by a flag.
fn modern(mut schema: Object) -> Object {
    if schema.get("items").is_some_and(Value::is_array)
        && let Some(items) = schema.remove("items")
    {
        schema.remove("additionalItems");
        schema.insert("prefixItems".to_owned(), items);
    }
    modernise_limits(&mut schema);
    schema
}

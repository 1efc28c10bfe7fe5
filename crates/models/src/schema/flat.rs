//! Makes one plain object of a schema that combines several: members of all parts become its own.
//!
//! The result accepts everything that the schema accepts, and more.

use std::collections::BTreeMap;

use values::json::{Object, Value, count_values};

/// The most values that references may add. Many references to a large part would take much memory.
const MAX_ADDED: usize = 20_000;
/// The most schemas within each other that are joined.
const MAX_DEPTH: usize = 16;
/// The most schemas of one member. A member with more accepts anything.
const MAX_ALTERNATIVES: usize = 64;
/// Keywords of a part that say nothing about the whole.
const OF_PART: [&str; 5] = ["properties", "required", "additionalProperties", "description", "title"];
/// Keywords that restrict a root and that providers refuse there.
const NEGATIONS: [&str; 4] = ["not", "if", "enum", "const"];

/// Joins schemas, and follows references.
#[derive(Debug)]
pub(super) struct Flattener<'a> {
    root: &'a Value,
    left: usize,
    /// The groups of members of which one is needed, each with its names.
    pub(super) groups: Vec<Vec<String>>,
}

impl<'a> Flattener<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            left: MAX_ADDED,
            groups: Vec::new(),
        }
    }

    /// Returns the target of a reference; `None` if there is none, or references added too much.
    pub(super) fn target(&mut self, reference: &str) -> Option<&'a Object> {
        let pointer = reference.strip_prefix('#')?;
        let target = self.root.pointer(pointer)?;
        self.left = self.left.checked_sub(count_values(target))?;
        target.as_object()
    }

    /// Joins the parts of the whole root.
    pub(super) fn flat(&mut self, mut schema: Object, depth: usize) -> Object {
        let target = schema.remove("$ref");
        if let Some(target) = target
            .as_ref()
            .and_then(Value::as_str)
            .and_then(|reference| self.target(reference))
        {
            self.join(&mut schema, Some(Value::Object(target.clone())), depth, true);
        }
        let all_of = list(schema.remove("allOf"));
        self.join(&mut schema, all_of, depth, true);
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.remove(keyword) {
                self.join_any(&mut schema, branches, depth);
            }
        }
        let conditional = [schema.remove("then"), schema.remove("else")].into_iter().flatten();
        let dependent = match schema.remove("dependentSchemas") {
            Some(Value::Object(dependent)) => dependent.into_iter().map(|(_, part)| part).collect(),
            _ => Vec::new(),
        };
        self.join(&mut schema, conditional.chain(dependent), depth, false);
        schema.retain(|keyword, _| !NEGATIONS.contains(&keyword.as_str()));
        schema
    }

    /// Joins only the parts of `allOf`.
    pub(super) fn without_all_of(&mut self, mut schema: Object, depth: usize) -> Object {
        let parts = list(schema.remove("allOf"));
        for part in parts {
            if let Some(part) = self.part(part).filter(|_| depth < MAX_DEPTH) {
                let part = self.without_all_of(part, depth + 1);
                absorb(&mut schema, part, true);
            }
        }
        schema
    }

    fn join(&mut self, schema: &mut Object, parts: impl IntoIterator<Item = Value>, depth: usize, is_needed: bool) {
        for part in parts {
            if let Some(part) = self.part(part).filter(|_| depth < MAX_DEPTH) {
                let part = self.flat(part, depth + 1);
                absorb(schema, part, is_needed);
            }
        }
    }

    fn join_any(&mut self, schema: &mut Object, branches: Vec<Value>, depth: usize) {
        let mut members: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut needed: Option<Vec<String>> = None;
        let mut groups = Vec::new();
        for branch in branches {
            let Some(branch) = self.part(branch).filter(|_| depth < MAX_DEPTH) else {
                continue;
            };
            let known = std::mem::take(&mut self.groups);
            let branch = self.flat(branch, depth + 1);
            self.groups = known;
            let required = required(&branch);
            let branch_members = branch.get("properties").and_then(Value::as_object);
            let names = || branch_members.into_iter().flat_map(Object::keys).cloned().collect();
            groups.push(if required.is_empty() { names() } else { required.clone() });
            needed = Some(match needed {
                Some(needed) => needed.into_iter().filter(|name| required.contains(name)).collect(),
                None => required,
            });
            for (name, member) in branch_members.into_iter().flatten() {
                let alternatives = members.entry(name.clone()).or_default();
                if alternatives.len() <= MAX_ALTERNATIVES && !alternatives.contains(member) {
                    alternatives.push(member.clone());
                }
            }
        }
        if groups.len() > 1 && groups.iter().any(|group| !group.is_empty()) {
            self.groups.extend(groups);
        }
        let members = members.into_iter().map(|(name, members)| (name, one_of(members)));
        let properties = members.collect::<Object>();
        let part = [
            ("properties".to_owned(), Value::Object(properties)),
            ("required".to_owned(), Value::from(needed.unwrap_or_default())),
        ];
        absorb(schema, part.into_iter().collect(), true);
    }

    /// Returns a part, which may be a reference.
    fn part(&mut self, part: Value) -> Option<Object> {
        let Value::Object(mut part) = part else { return None };
        if let Some(Value::String(reference)) = part.get("$ref") {
            let target = self.target(&reference.clone())?.clone();
            part.remove("$ref");
            absorb(&mut part, target, true);
        }
        Some(part)
    }
}

/// Adds the members and the other keywords of a part. Members of a part that need not hold are
/// optional.
fn absorb(schema: &mut Object, mut part: Object, is_needed: bool) {
    let needed = if is_needed {
        list(part.remove("required"))
    } else {
        Vec::new()
    };
    if !needed.is_empty()
        && let Value::Array(names) = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()))
    {
        let further: Vec<_> = needed.into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(further);
    }
    if let Some(Value::Object(members)) = part.remove("properties")
        && let Value::Object(own) = schema
            .entry("properties")
            .or_insert_with(|| Value::Object(Object::new()))
    {
        for (name, member) in members {
            match (own.get_mut(&name), member) {
                (None, member) => drop(own.insert(name, member)),
                (Some(Value::Object(known)), Value::Object(member)) => {
                    for (keyword, value) in member {
                        known.entry(keyword).or_insert(value);
                    }
                }
                _ => {}
            }
        }
    }
    for (keyword, value) in part {
        if !OF_PART.contains(&keyword.as_str()) && is_needed {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// Returns a schema that accepts every value that one of these accepts.
fn one_of(mut schemas: Vec<Value>) -> Value {
    if schemas.len() > MAX_ALTERNATIVES {
        schemas.clear();
    }
    if schemas.len() < 2 {
        return schemas.pop().unwrap_or_else(|| Value::Object(Object::new()));
    }
    let constants: Option<Vec<_>> = schemas
        .iter()
        .map(|schema| schema.get("const").filter(|value| value.is_string()))
        .collect();
    match constants {
        Some(constants) => serde_json::json!({"type": "string", "enum": constants}),
        None => serde_json::json!({"anyOf": schemas}),
    }
}

pub(super) fn required(schema: &Object) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

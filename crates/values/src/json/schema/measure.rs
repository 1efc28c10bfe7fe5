//! Measures a schema before it is compiled: its size, and the work that it can cause for one value.
//!
//! A schema of a few kilobytes can cause millions of checks, since each `$ref` can lead to two
//! more. So the measure follows references, but counts each part once: the work of a part is the
//! sum of the work of its parts.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;

use super::error::{MAX_SCHEMA_BYTES, SchemaError, shortened};
use super::keywords::{DATA, WITH_NAMED_SCHEMAS};
use crate::json::{Object, Value, json_length};

/// The deepest nesting of its JSON.
const MAX_DEPTH: usize = 48;
/// The most parts between a value and a check of it, including references.
const MAX_HEIGHT: usize = 32;
/// The most checks of one value, with references followed.
const MAX_CHECKS: usize = 2_000;
/// The most checks in all parts that forbid unevaluated values, since each such part repeats the
/// other checks.
const MAX_UNEVALUATED_CHECKS: usize = 10_000;
/// The most patterns.
const MAX_PATTERNS: usize = 200;
/// The most bytes of all patterns.
const MAX_PATTERN_BYTES: usize = 8 * 1024;
/// The most bytes that the library stores of a schema: its parts, the pointers to them, and a copy
/// of each schema in a `not`.
pub(super) const MAX_STORED: usize = 4 * 1024 * 1024;

/// The memory of a compiled part, or of a copied entry of an object, which a tree node may hold
/// alone.
const ENTRY_BYTES: usize = 640;
/// The digits of an index, and the `/` before it.
const INDEX_BYTES: usize = 6;
/// The memory of an error without its copies, including the name that it may quote.
const ERROR_BYTES: usize = 1024;

/// Keywords with a schema for the value itself.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of schemas for the value itself.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with schemas by name for the value itself.
const SAME_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// References whose target depends on how they were reached.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// The measured size and work of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Measure {
    /// The most checks of one value.
    pub(super) checks: usize,
    /// The number of parts between a value and a check of it.
    pub(super) height: usize,
    /// How many patterns there are.
    pub(super) patterns: usize,
    /// The most patterns that a name is matched against each time that it is read, or 1.
    pub(super) name_patterns: usize,
    /// The most checks of one name.
    pub(super) name_checks: usize,
    /// The most bytes of an error of the whole value.
    pub(super) error: usize,
    /// The bytes that an error may have more for each level of the value: the pointers to all parts
    /// that refer to each other in a row.
    pub(super) references: usize,
}

/// The work of a part, together with the parts for the same value.
#[derive(Debug, Clone, Copy)]
struct Tally {
    checks: usize,
    /// The depth of nested parts.
    height: usize,
    patterns: usize,
}

/// The role of a value within a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A part: a schema, or a list of schemas.
    Part,
    /// Parts by name.
    Named,
    /// A value that a keyword compares, or an example.
    Data,
}

/// The position of a value within a schema.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    level: usize,
    /// The length of the pointer to it.
    pointer: usize,
    /// How many `not`s are around it. Each copies it.
    nots: usize,
}

#[derive(Debug)]
struct Survey<'a> {
    root: &'a Value,
    parts: Vec<&'a Value>,
    /// The work of the parts, by the unique address of each; `None` if it is not counted yet.
    tallies: BTreeMap<*const Value, Option<Tally>>,
    patterns: BTreeSet<&'a str>,
    /// The length of the longest pointer.
    pointer: usize,
    /// The bytes of parts and their pointers.
    stored: usize,
    /// The bytes of the copies of schemas in `not`.
    denied: usize,
}

/// Measures a schema. Rejects a schema that exceeds a limit.
pub(super) fn measure(schema: &Value) -> Result<Measure, SchemaError> {
    let bytes = json_length(schema);
    if bytes > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge { bytes });
    }
    let mut survey = Survey {
        root: schema,
        parts: Vec::new(),
        tallies: BTreeMap::new(),
        patterns: BTreeSet::new(),
        pointer: 0,
        stored: 0,
        denied: 0,
    };
    survey.visit(schema, Role::Part, Position::default())?;
    if survey.stored + survey.denied > MAX_STORED {
        return Err(too_much(
            "it has too many schemas within it, or too long names or too large `not`s around them",
        ));
    }
    let pattern_bytes: usize = survey.patterns.iter().map(|pattern| pattern.len()).sum();
    let patterns = survey.patterns.len();
    if patterns > MAX_PATTERNS || pattern_bytes > MAX_PATTERN_BYTES {
        return Err(too_much(&format!(
            "it has {patterns} patterns of together {pattern_bytes} bytes; the most are {MAX_PATTERNS} of {MAX_PATTERN_BYTES} bytes"
        )));
    }
    let mut measure = survey.measure_parts()?;
    measure.patterns = patterns;
    measure.references = survey.pointer * measure.height;
    measure.error = ERROR_BYTES + bytes + survey.denied + measure.references;
    Ok(measure)
}

impl<'a> Survey<'a> {
    /// Visits a value and all values within it.
    fn visit(&mut self, value: &'a Value, role: Role, at: Position) -> Result<(), SchemaError> {
        self.pointer = self.pointer.max(at.pointer);
        if role == Role::Part && (value.is_object() || value.is_boolean()) {
            self.parts.push(value);
            self.tallies.insert(std::ptr::from_ref(value), None);
            self.stored += ENTRY_BYTES;
        }
        if at.level == MAX_DEPTH && (value.is_object() || value.is_array()) {
            return Err(too_much(&format!("it nests deeper than {MAX_DEPTH} levels")));
        }
        match value {
            Value::Object(entries) => {
                if role == Role::Part {
                    self.visit_keywords(value, entries)?;
                }
                for (name, value) in entries {
                    let below = Position {
                        level: at.level + 1,
                        // Each `~` and `/` of a name takes two bytes.
                        pointer: at.pointer + 1 + name.len() + name.matches(['~', '/']).count(),
                        nots: at.nots + usize::from(name == "not"),
                    };
                    self.stored += below.pointer;
                    self.denied += at.nots * (ENTRY_BYTES + name.len());
                    self.visit(value, role.below(name), below)?;
                }
            }
            Value::Array(items) => {
                let below = Position {
                    level: at.level + 1,
                    pointer: at.pointer + INDEX_BYTES,
                    nots: at.nots,
                };
                for item in items {
                    if !item.is_string() && !item.is_number() {
                        self.stored += below.pointer;
                    }
                    self.denied += at.nots * size_of::<Value>();
                    self.visit(item, role, below)?;
                }
            }
            Value::String(text) => self.denied += at.nots * text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
        Ok(())
    }

    fn visit_keywords(&mut self, part: &'a Value, keywords: &'a Object) -> Result<(), SchemaError> {
        if let Some(name) = DYNAMIC.into_iter().find(|name| keywords.contains_key(*name)) {
            return Err(too_much(&format!("{name} is not supported; use $ref")));
        }
        // This is the spelling of draft 4. In other drafts it has no meaning.
        let is_fourth = self
            .root
            .get("$schema")
            .and_then(Value::as_str)
            .is_some_and(|draft| draft.contains("draft-04"));
        let is_named = keywords.contains_key(if is_fourth { "id" } else { "$id" });
        if is_named && !std::ptr::eq(part, self.root) {
            return Err(too_much("only the whole schema may have an $id"));
        }
        if let Some(names) = keywords.get("patternProperties").and_then(Value::as_object) {
            self.patterns.extend(names.keys().map(String::as_str));
        }
        self.patterns.extend(keywords.get("pattern").and_then(Value::as_str));
        Ok(())
    }

    fn measure_parts(&mut self) -> Result<Measure, SchemaError> {
        let mut measure = Measure {
            name_patterns: 1,
            ..Measure::default()
        };
        let mut unevaluated = 0_usize;
        for part in std::mem::take(&mut self.parts) {
            let tally = self.count(part, 0)?;
            measure.checks = measure.checks.max(tally.checks);
            measure.height = measure.height.max(tally.height);
            if is_unevaluated(part) {
                unevaluated = unevaluated.saturating_add(tally.checks);
            }
            if let Some(names) = part.get("propertyNames") {
                let names = self.count(names, 0)?;
                measure.name_checks = measure.name_checks.max(names.checks);
                measure.name_patterns = measure.name_patterns.max(names.patterns);
            }
            // Without a rule for other members, the library reads the names once per pattern.
            let others = part.get("additionalProperties");
            if others.is_some_and(|others| *others != Value::Bool(true)) {
                let patterns = part.get("patternProperties").and_then(Value::as_object);
                measure.name_patterns = measure.name_patterns.max(patterns.map_or(0, Object::len));
            }
        }
        if unevaluated > MAX_UNEVALUATED_CHECKS {
            return Err(too_much(
                "it uses `unevaluatedProperties` and `unevaluatedItems` above too many schemas",
            ));
        }
        Ok(measure)
    }

    /// Counts the work of a part for one value.
    fn count(&mut self, part: &'a Value, depth: usize) -> Result<Tally, SchemaError> {
        let key = std::ptr::from_ref(part);
        if let Some(Some(tally)) = self.tallies.get(&key) {
            return Ok(*tally);
        }
        // A part that refers to itself ends here, too.
        if depth == MAX_HEIGHT {
            return Err(too_high());
        }
        let mut tally = Tally {
            checks: 1,
            height: 0,
            patterns: usize::from(part.get("pattern").is_some()),
        };
        if let Value::Object(keywords) = part {
            // Such a part evaluates the value once more.
            let rounds = if is_unevaluated(part) { 2 } else { 1 };
            for same in self.same(keywords)? {
                let more = self.count(same, depth + 1)?;
                tally.checks = tally.checks.saturating_add(more.checks.saturating_mul(rounds));
                tally.height = tally.height.max(more.height);
                tally.patterns = tally.patterns.saturating_add(more.patterns);
            }
            tally.checks = tally.checks.saturating_add(keywords.len());
        }
        tally.height += 1;
        if tally.height > MAX_HEIGHT {
            return Err(too_high());
        }
        if tally.checks > MAX_CHECKS {
            let words = format!("it comes to more than {MAX_CHECKS} checks of one value, with each $ref counted out");
            return Err(too_much(&words));
        }
        self.tallies.insert(key, Some(tally));
        Ok(tally)
    }

    /// Returns the parts that check the same value as the part of these keywords.
    fn same(&self, keywords: &'a Object) -> Result<Vec<&'a Value>, SchemaError> {
        let mut parts: Vec<&Value> = SAME.into_iter().filter_map(|name| keywords.get(name)).collect();
        let lists = SAME_LISTS.into_iter().filter_map(|name| keywords.get(name)?.as_array());
        parts.extend(lists.flatten());
        let named = SAME_NAMED
            .into_iter()
            .filter_map(|name| keywords.get(name)?.as_object());
        parts.extend(named.flat_map(Object::values));
        parts.extend(self.target(keywords)?);
        Ok(parts)
    }

    /// Returns the part that a part refers to.
    fn target(&self, keywords: &'a Object) -> Result<Option<&'a Value>, SchemaError> {
        let Some(reference) = keywords.get("$ref").and_then(Value::as_str) else {
            return Ok(None);
        };
        let invalid = |words: &str| SchemaError::Invalid {
            message: shortened(&format!("$ref {reference:?} {words}")),
        };
        let pointer = reference
            .strip_prefix('#')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let pointer =
            pointer.ok_or_else(|| invalid("does not point into the schema itself, as \"#/$defs/name\" does"))?;
        let pointer = percent_decode_str(pointer).decode_utf8();
        let pointer = pointer.map_err(|_| invalid("is not a pointer"))?;
        let target = self.root.pointer(&pointer);
        let target = target.ok_or_else(|| invalid("points to nothing"))?;
        if !self.tallies.contains_key(&std::ptr::from_ref(target)) {
            return Err(invalid("does not point to a schema"));
        }
        Ok(Some(target))
    }
}

impl Role {
    /// Returns the role of an entry of a value with this role.
    fn below(self, name: &str) -> Self {
        match self {
            Self::Part if WITH_NAMED_SCHEMAS.contains(&name) => Self::Named,
            Self::Part if DATA.contains(&name) => Self::Data,
            Self::Part | Self::Named => Self::Part,
            Self::Data => Self::Data,
        }
    }
}

fn is_unevaluated(part: &Value) -> bool {
    ["unevaluatedProperties", "unevaluatedItems"]
        .into_iter()
        .any(|name| part.get(name).is_some())
}

fn too_high() -> SchemaError {
    too_much(&format!(
        "more than {MAX_HEIGHT} of its schemas refer to each other in a row, or one to itself for the same value"
    ))
}

fn too_much(words: &str) -> SchemaError {
    SchemaError::TooMuch {
        message: words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super as schema;
    use super::*;

    fn with_commas(number: usize) -> String {
        if number < 1_000 {
            return number.to_string();
        }
        format!("{},{:03}", with_commas(number / 1_000), number % 1_000)
    }

    #[test]
    fn the_page_has_the_limits_of_schemas_and_of_checks() {
        let kib = |bytes: usize| format!("{} KiB", bytes >> 10);
        let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
        let schema_limits = [
            ("the schema as JSON", kib(MAX_SCHEMA_BYTES)),
            ("levels of its JSON", with_commas(MAX_DEPTH)),
            ("checks of one value", with_commas(MAX_CHECKS)),
            ("checks of all schemas", with_commas(MAX_UNEVALUATED_CHECKS)),
            ("schemas that refer", with_commas(MAX_HEIGHT)),
            (
                "different patterns",
                format!("{MAX_PATTERNS}, of together {}", kib(MAX_PATTERN_BYTES)),
            ),
            ("memory of what", mib(MAX_STORED)),
            (
                "memory of the compiled patterns",
                format!(
                    "{}, each an equal share of it and at most {}",
                    mib(schema::MAX_PATTERNS_SIZE),
                    kib(schema::MAX_PATTERN_SIZE)
                ),
            ),
        ];
        let check_limits = [
            ("checks: what", with_commas(schema::MAX_CHECKS)),
            ("text", kib(schema::MAX_MATCHED_BYTES)),
            ("levels of the value", with_commas(schema::MAX_LEVELS)),
            ("checks to find out", with_commas(schema::MAX_DESCRIBED_CHECKS)),
        ];
        let page = include_str!("../../../../../docs/agents.md");
        for (begin, limit) in schema_limits.iter().chain(&check_limits) {
            let row = page.lines().find(|line| line.starts_with(&format!("| {begin}")));
            let row = row.unwrap_or_else(|| panic!("no row begins with {begin}"));
            assert!(row.contains(&format!(" | {limit} |")), "{row}: {limit}");
        }
    }
}

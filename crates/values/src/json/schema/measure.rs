//! Measures a schema before it is compiled: its size, and the work that it can cause for one value.
//!
//! A schema of a few kilobytes can cause millions of checks, since each `$ref` can lead to two
//! more. So the measure follows references, but visits each part once: the work of a part is the
//! sum of the work of its parts.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{SchemaError, shortened};
use super::held::Held;
use super::keywords::{WITH_NAMED_SCHEMAS, WITH_SCHEMAS};
use crate::json::{Object, Value};

/// The most parts of a schema that are schemas themselves.
const MAX_PARTS: usize = 5_000;
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

/// The most bytes of pointers to parts and of schemas in `not`, all of which the library copies.
pub(super) const MAX_COPIED: usize = 4 * 1024 * 1024;

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
    /// The parts of it that the library copies.
    pub(super) held: Held,
}

/// The state of measuring a part.
#[derive(Debug, Clone, Copy)]
enum Counted {
    /// The part is being counted. If it is reached again, it refers to itself.
    Underway,
    Done(Tally),
}

/// The work of a part, together with the parts for the same value.
#[derive(Debug, Clone, Copy)]
struct Tally {
    checks: usize,
    /// The depth of nested parts.
    height: usize,
    patterns: usize,
}

#[derive(Debug)]
struct Survey<'a> {
    root: &'a Value,
    /// Parts to visit.
    waiting: Vec<&'a Value>,
    /// The results, by the unique address of each part.
    counted: BTreeMap<*const Value, Counted>,
    patterns: BTreeSet<&'a str>,
}

/// Measures a schema. Rejects a schema that exceeds a limit.
pub(super) fn measure(schema: &Value) -> Result<Measure, SchemaError> {
    if is_deeper(schema, MAX_DEPTH) {
        return Err(too_much(&format!("it nests deeper than {MAX_DEPTH} levels")));
    }
    let mut held = Held::default();
    held.add(schema, 0);
    if held.compiled > MAX_COPIED {
        return Err(too_much(
            "its names are too long, or its `not`s too large, for how many schemas it has within them",
        ));
    }
    let mut survey = Survey {
        root: schema,
        waiting: vec![schema],
        counted: BTreeMap::new(),
        patterns: BTreeSet::new(),
    };
    let parts = survey.visit()?;
    let mut measure = Measure {
        patterns: survey.patterns.len(),
        name_patterns: 1,
        held,
        ..Measure::default()
    };
    let mut unevaluated = 0_usize;
    for part in parts {
        let tally = survey.count(part, 0)?;
        measure.checks = measure.checks.max(tally.checks);
        measure.height = measure.height.max(tally.height);
        measure.name_patterns = measure.name_patterns.max(survey.name_patterns(part)?);
        if let Some(names) = part.get("propertyNames") {
            measure.name_checks = measure.name_checks.max(survey.count(names, 0)?.checks);
        }
        if is_unevaluated(part) {
            unevaluated = unevaluated.saturating_add(tally.checks);
        }
    }
    if unevaluated > MAX_UNEVALUATED_CHECKS {
        return Err(too_much(
            "it uses `unevaluatedProperties` and `unevaluatedItems` above too many schemas",
        ));
    }
    let pattern_bytes: usize = survey.patterns.iter().map(|pattern| pattern.len()).sum();
    if measure.patterns > MAX_PATTERNS || pattern_bytes > MAX_PATTERN_BYTES {
        let words = format!(
            "it has {} patterns of together {pattern_bytes} bytes; the most are {MAX_PATTERNS} of {MAX_PATTERN_BYTES} bytes",
            measure.patterns
        );
        return Err(too_much(&words));
    }
    Ok(measure)
}

impl<'a> Survey<'a> {
    /// Visits all parts, and returns them.
    fn visit(&mut self) -> Result<Vec<&'a Value>, SchemaError> {
        let mut parts = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some(part) = self.waiting.pop() {
            if !seen.insert(std::ptr::from_ref(part)) {
                continue;
            }
            parts.push(part);
            if parts.len() > MAX_PARTS {
                return Err(too_much(&format!("it has more than {MAX_PARTS} schemas")));
            }
            if let Value::Object(keywords) = part {
                self.visit_keywords(part, keywords)?;
            }
        }
        Ok(parts)
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
        for (name, value) in keywords {
            let name = name.as_str();
            if WITH_SCHEMAS.contains(&name) {
                self.wait_for(value);
            } else if WITH_NAMED_SCHEMAS.contains(&name) {
                self.waiting
                    .extend(value.as_object().into_iter().flat_map(Object::values));
            }
        }
        if let Some(names) = keywords.get("patternProperties").and_then(Value::as_object) {
            self.patterns.extend(names.keys().map(String::as_str));
        }
        self.patterns.extend(keywords.get("pattern").and_then(Value::as_str));
        // The target of a reference may be at a position where no schema is expected.
        if let Some(target) = self.target(keywords)? {
            self.waiting.push(target);
        }
        Ok(())
    }

    fn wait_for(&mut self, value: &'a Value) {
        match value {
            Value::Array(schemas) => self.waiting.extend(schemas),
            schema => self.waiting.push(schema),
        }
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
        let pointer = unescaped(pointer).ok_or_else(|| invalid("is not a pointer"))?;
        let target = self.root.pointer(&pointer);
        target.map(Some).ok_or_else(|| invalid("points to nothing"))
    }

    /// Counts the patterns that each read of a name is matched against. Without a rule for other
    /// members, the library reads the names once per pattern.
    fn name_patterns(&mut self, part: &'a Value) -> Result<usize, SchemaError> {
        let has_rule = part
            .get("additionalProperties")
            .is_some_and(|others| *others != Value::Bool(true));
        let of_members = part
            .get("patternProperties")
            .and_then(Value::as_object)
            .filter(|_| has_rule);
        let of_names = match part.get("propertyNames") {
            Some(names) => self.count(names, 0)?.patterns,
            None => 0,
        };
        Ok(of_members.map_or(0, Object::len).max(of_names))
    }

    /// Counts the work of a part for one value.
    fn count(&mut self, part: &'a Value, depth: usize) -> Result<Tally, SchemaError> {
        let key = std::ptr::from_ref(part);
        match self.counted.get(&key) {
            Some(Counted::Done(tally)) => return Ok(*tally),
            Some(Counted::Underway) => {
                return Err(too_much("one of its schemas refers to itself for the same value"));
            }
            None => (),
        }
        if depth >= MAX_HEIGHT {
            return Err(too_high());
        }
        self.counted.insert(key, Counted::Underway);
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
        self.counted.insert(key, Counted::Done(tally));
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
}

/// Returns whether a value nests deeper than `levels`. Parsers bound the depth, so this ends.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(entries) => levels == 0 || entries.values().any(|value| is_deeper(value, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_unevaluated(part: &Value) -> bool {
    ["unevaluatedProperties", "unevaluatedItems"]
        .into_iter()
        .any(|name| part.get(name).is_some())
}

/// Resolves the percent-encoding of a pointer in a URI.
fn unescaped(pointer: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn too_high() -> SchemaError {
    too_much(&format!(
        "more than {MAX_HEIGHT} of its schemas refer to each other in a row"
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

    /// Returns the rows of a table of limits, each as what is bounded and the most.
    fn rows(page: &'static str) -> Vec<(&'static str, &'static str)> {
        let (_, table) = page.split_once("| what is bounded | the most |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.map(|row| row.trim_matches(['|', ' ']).split_once(" | ").unwrap())
            .collect()
    }

    fn with_commas(number: usize) -> String {
        if number < 1_000 {
            return number.to_string();
        }
        format!("{},{:03}", with_commas(number / 1_000), number % 1_000)
    }

    #[test]
    fn the_pages_have_the_limits_of_schemas_and_of_checks() {
        let kib = |bytes: usize| format!("{} KiB", bytes >> 10);
        let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
        let of_schemas = [
            ("the schema as JSON", kib(schema::MAX_SCHEMA_BYTES)),
            ("levels", with_commas(MAX_DEPTH)),
            ("schemas within", with_commas(MAX_PARTS)),
            ("checks of one value", with_commas(MAX_CHECKS)),
            ("checks of all schemas", with_commas(MAX_UNEVALUATED_CHECKS)),
            ("schemas that refer", with_commas(MAX_HEIGHT)),
            (
                "different patterns",
                format!("{MAX_PATTERNS}, of together {}", kib(MAX_PATTERN_BYTES)),
            ),
            ("memory for copies", mib(MAX_COPIED)),
            (
                "memory of the compiled patterns",
                format!(
                    "{}, each an equal share of it and at most {}",
                    mib(schema::MAX_PATTERNS_SIZE),
                    kib(schema::MAX_PATTERN_SIZE)
                ),
            ),
        ];
        let of_checks = [
            ("checks: what", with_commas(schema::MAX_CHECKS)),
            ("text", kib(schema::MAX_MATCHED_BYTES)),
            ("levels", with_commas(schema::MAX_LEVELS)),
            ("checks to find out", with_commas(schema::MAX_DESCRIBED_CHECKS)),
        ];
        for (page, limits) in [
            (
                include_str!("../../../../../docs/problems/invalid_response_format.md"),
                &of_schemas[..],
            ),
            (
                include_str!("../../../../../docs/problems/run-errors.md"),
                &of_checks[..],
            ),
        ] {
            let rows = rows(page);
            assert_eq!(rows.len(), limits.len(), "{rows:#?}");
            for ((what, most), (begin, limit)) in rows.into_iter().zip(limits) {
                assert!(what.starts_with(begin), "{what}, and not {begin}");
                let most = most.split(" | ").next().unwrap();
                assert_eq!(most, limit, "{what}");
            }
        }
    }
}

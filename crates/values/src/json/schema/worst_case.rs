//! The worst schemas that a caller can write: each is rejected, or compiled and checked within
//! bounds of stack, time and memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::counted::BYTES_PER_CHECK;
use super::error::MAX_SCHEMA_BYTES;
use super::measure::MAX_STORED;
use super::*;

/// The stack of a blocking thread, although test builds need several times as much as optimised
/// builds.
const STACK: usize = 2 * 1024 * 1024;
/// Far more than any check here takes: test builds are not optimised, and the machine has other
/// load.
const LONG: Duration = Duration::from_mins(1);

/// Does the work on a small stack, and checks its time and memory.
fn bounded<T: Send + 'static>(name: &str, memory: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    let begun = Instant::now();
    let measured = move || {
        let mut result = None;
        let taken = allocation_counter::measure(|| result = Some(work()));
        (result.unwrap(), taken.bytes_max)
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(measured).unwrap();
    let (result, bytes) = thread.join().unwrap();
    assert!(begun.elapsed() < LONG, "{name}: {:?}", begun.elapsed());
    assert!(bytes < memory as u64, "{name}: {bytes} bytes, and not {memory}");
    result
}

/// Compiles a schema. The memory limit allows the compiled schema and several times its JSON.
fn compile(name: &str, schema: Value) -> Result<JsonSchema, SchemaError> {
    let memory = MAX_STORED + 64 * MAX_SCHEMA_BYTES + 4 * schema.to_string().len();
    bounded(&format!("compiling {name}"), memory, move || {
        JsonSchema::compile(&schema)
    })
}

/// Checks a value and returns the errors, and their messages with quotes.
fn check(name: &str, schema: &Arc<JsonSchema>, value: Value) -> Result<(), String> {
    let memory = MAX_DESCRIBED_CHECKS * BYTES_PER_CHECK + 4 * value.to_string().len();
    let schema = Arc::clone(schema);
    bounded(&format!("checking {name}"), memory, move || {
        schema.check(&value).map_err(|violations| violations.to_string())
    })
}

/// A schema whose first definition uses the second, and so on.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let definition = |at: usize| {
        if at + 1 == length {
            return json!({"type": "object", "required": ["z"]});
        }
        link(json!({"$ref": format!("#/$defs/d{}", at + 1)}))
    };
    let definitions: super::super::Object = (0..length).map(|at| (format!("d{at}"), definition(at))).collect();
    json!({"type": "object", "$defs": definitions, "allOf": [{"$ref": "#/$defs/d0"}]})
}

/// A schema within a schema, and so on.
fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    let inner = (0..depth).fold(json!({"type": "object", "required": ["z"]}), |inner, _| wrap(inner));
    json!({"type": "object", "allOf": [inner]})
}

type Maker = fn(usize, fn(Value) -> Value) -> Value;
type Form = (&'static str, fn(Value) -> Value);

/// The ways in which one schema can use another.
const FORMS: [Form; 14] = [
    ("anyOf", |one| json!({"anyOf": [one, one]})),
    ("allOf", |one| json!({"allOf": [one, one]})),
    ("oneOf", |one| json!({"oneOf": [one, one]})),
    ("not", |one| json!({"not": one})),
    ("if", |one| json!({"if": one, "then": one, "else": one})),
    ("itself", |one| one),
    ("one allOf", |one| json!({"allOf": [one]})),
    ("properties", |one| json!({"properties": {"a": one}})),
    (
        "two properties",
        |one| json!({"properties": {"a": {"anyOf": [one, one]}}}),
    ),
    ("items", |one| json!({"items": one})),
    ("dependent", |one| json!({"dependentSchemas": {"a": one}})),
    ("names", |one| json!({"propertyNames": one})),
    (
        "unevaluated",
        |one| json!({"allOf": [one], "unevaluatedProperties": false}),
    ),
    (
        "unevaluated schema",
        |one| json!({"unevaluatedProperties": one, "unevaluatedItems": one}),
    ),
];

fn values() -> Vec<Value> {
    let deep = |depth: usize| (0..depth).fold(json!({"y": 1}), |value, _| json!({"a": value}));
    let list = |depth: usize| (0..depth).fold(json!([1]), |value, _| json!([value]));
    vec![
        json!({}),
        deep(1),
        deep(20),
        deep(120),
        list(120),
        json!({"a": vec![1; 20_000]}),
    ]
}

#[test]
fn what_stands_for_too_much_is_refused_at_once() {
    let patterns: Vec<Value> = (0..1_700)
        .map(|at| json!({"pattern": format!("{at}\\w{{20}}")}))
        .collect();
    let long_pattern = "(a|b)".repeat(10_000);
    for schema in [
        chain(22, |one| json!({"anyOf": [one, one]})),
        chain(22, |one| json!({"allOf": [one, one]})),
        chain(1_500, |one| one),
        chain(1_200, |one| json!({"allOf": [one]})),
        json!({"type": "object", "anyOf": patterns}),
        json!({"pattern": long_pattern}),
        nested(60, |one| json!({"not": one})),
        json!({"$ref": "#"}),
        json!({"not": {"anyOf": [{"$ref": "#"}]}}),
        json!({"properties": {"a": {"$dynamicRef": "#a"}}}),
        json!({"properties": {"a": {"$id": "https://example.org/a"}}}),
        json!({"properties": {"a": {"$ref": "#a"}}}),
        // Below the name of a keyword, and in data.
        json!({"properties": {"default": {"$ref": "#/properties/default"}}}),
        json!({"enum": [{"not": {}}], "properties": {"a": {"$ref": "#/enum/0"}}}),
        nested(12, |one| json!({"allOf": [one], "unevaluatedProperties": false})),
    ] {
        let name = format!("{:.100}", schema.to_string());
        let begun = Instant::now();
        let refused = compile(&name, schema).unwrap_err();
        // The bound is a second, since tests share the machine.
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{name}: {:?}",
            begun.elapsed()
        );
        assert!(
            matches!(refused, SchemaError::TooMuch { .. } | SchemaError::Invalid { .. }),
            "{name}: {refused}"
        );
    }
}

#[test]
fn the_longest_of_each_form_that_is_accepted_is_compiled_and_checked_within_bounds() {
    let makers: [Maker; 2] = [|length, link| chain(length, link), |length, link| nested(length, link)];
    for (name, link) in FORMS {
        for make in makers {
            let lengths = [3, 8, 9, 10, 11, 20, 24, 31, 40, 45, 300, 1_000];
            // Nested forms that use a schema twice double the work at each level.
            let accepted = |length: &usize| measure(&make(*length, link)).is_ok();
            let longest = lengths.into_iter().take_while(accepted).last().unwrap();
            let schema = compile(&format!("{name} {longest}"), make(longest, link));
            let Ok(schema) = schema else {
                panic!("{name} {longest}: {schema:?}")
            };
            let schema = Arc::new(schema);
            for value in values() {
                let _ = check(&format!("by {name} {longest}"), &schema, value);
            }
        }
    }
}

#[test]
fn nests_of_references_need_little_stack() {
    // Each definition has the deepest allowed nesting, and ends in a reference to the next.
    let deep = |one: Value| (0..40).fold(one, |inner, _| json!({"items": inner}));
    let schema = compile("nests of references", chain(100, deep)).unwrap();
    let value = (0..120).fold(json!([1]), |value, _| json!([value]));
    let _ = check("by nests", &Arc::new(schema), json!({"a": value}));
}

#[test]
fn a_check_ends_for_every_schema() {
    let twice =
        json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["a"]});
    let all = json!({"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let unions: Vec<Value> = (0..100).map(|at| json!({"required": [format!("n{at}")]})).collect();
    let many = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": unions}}}});
    let wide =
        json!({"type": "object", "properties": {"a": {"uniqueItems": true, "items": {"enum": [[1, 2, 3], {"b": 1}]}}}});
    let list = json!({"a": vec![json!({"b": 1}); 20_000]});
    for (name, schema, depth) in [
        ("any of two", &twice, 60),
        ("all of two", &all, 60),
        ("any of two, deeper", &twice, 120),
    ] {
        let schema = compile(name, schema.clone()).unwrap();
        let value = (0..depth).fold(json!({}), |value, _| json!({"a": value}));
        let _ = check(name, &Arc::new(schema), value);
    }
    for (name, schema) in [("a union", many), ("unique", wide)] {
        let schema = Arc::new(compile(name, schema).unwrap());
        let message = check(name, &schema, list.clone()).unwrap_err();
        assert!(message.len() < 5_000, "{message}");
    }
}

#[test]
fn patterns_are_matched_against_bounded_text() {
    // Each step of the match has as many states as the pattern allows.
    let slow = json!({"type": "object", "properties": {"a": {"pattern": "^([ab]*a[ab]{500})+$"}}});
    let schema = Arc::new(compile("a slow pattern", slow).unwrap());
    let text = "ab".repeat(MAX_MATCHED_BYTES / 2 - 10);
    let (fits, too_long) = (json!({"a": text}), json!({"a": text.repeat(2)}));
    let _ = check("a slow match", &schema, fits);
    let message = check("too long a match", &schema, too_long).unwrap_err();
    assert!(message.contains("too much work"), "{message}");
    let many: Vec<Value> = (0..200)
        .map(|at| json!({"pattern": format!("^{at}[a-z]{{1,20}}$")}))
        .collect();
    let schema = compile(
        "200 patterns",
        json!({"type": "object", "properties": {"a": {"anyOf": many}}}),
    )
    .unwrap();
    assert!(schema.check(&json!({"a": "7abc"})).is_ok());
    assert!(schema.check(&json!({"a": "abc"})).is_err());
}

/// The library matches each name against all patterns, even if it reads the name only once.
#[test]
fn names_are_matched_against_bounded_patterns() {
    let patterns: Vec<String> = (0..200).map(|at| format!("^{at}[a-z]{{1,20}}$")).collect();
    let named: super::super::Object = patterns.iter().map(|pattern| (pattern.clone(), json!({}))).collect();
    let one_of: Vec<Value> = patterns.iter().map(|pattern| json!({"pattern": pattern})).collect();
    let value = |count: usize| {
        let members = (0..count).map(|at| (format!("7{}", "abc".repeat(1 + at % 5)) + &"d".repeat(at % 3), json!(1)));
        Value::Object(members.collect())
    };
    let many: super::super::Object = (0..1_500)
        .map(|at| (format!("unknown name {at:05}"), json!(1)))
        .collect();
    let many = Value::Object(many);
    for (form, schema) in [
        (
            "additional",
            json!({"patternProperties": named, "additionalProperties": {"type": "integer"}}),
        ),
        ("names", json!({"propertyNames": {"anyOf": one_of}})),
        (
            "unevaluated",
            json!({"allOf": [{"patternProperties": named}], "unevaluatedProperties": {"type": "integer"}}),
        ),
    ] {
        let schema = compile(form, schema).unwrap();
        assert_eq!(schema.check(&value(5)), Ok(()), "{form}");
        let message = schema.check(&many).unwrap_err().to_string();
        // If the check ends at the first name, only the description of the others is bounded.
        let is_bounded = message.contains("too much work") || message.ends_with("; there may be more");
        assert!(is_bounded, "{form}: {message}");
    }
    // Patterns that are not matched against names add no cost for a name.
    let text_patterns: super::super::Object = (0..50)
        .map(|at| (format!("p{at}"), json!({"pattern": format!("^{at}$")})))
        .collect();
    let schema = compile(
        "patterns of texts",
        json!({"properties": text_patterns, "additionalProperties": {"type": "integer"}}),
    );
    assert_eq!(schema.unwrap().check(&many), Ok(()));
}

#[test]
fn schemas_of_daily_use_are_well_within_the_limits() {
    let expression = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/definitions/node"}},
        "required": ["tree"],
        "definitions": {
            "node": {"anyOf": [
                {"type": "object", "properties": {"op": {"const": "add"}, "of": {"type": "array", "items": {"$ref": "#/definitions/node"}}}, "required": ["op", "of"]},
                {"type": "object", "properties": {"op": {"const": "neg"}, "of": {"$ref": "#/definitions/node"}}, "required": ["op", "of"]},
                {"type": "object", "properties": {"op": {"const": "num"}, "value": {"type": "number"}}, "required": ["op", "value"]},
            ]},
        },
    });
    let schema = compile("a tree of expressions", expression).unwrap();
    let number = |value: f64| json!({"op": "num", "value": value});
    let add = |of: Vec<Value>| json!({"op": "add", "of": of});
    let negated = (0..30).fold(number(1.0), |inner, _| json!({"op": "neg", "of": inner}));
    let wide = add((0..500).map(|at| add(vec![number(f64::from(at)); 3])).collect());
    assert_eq!(schema.check(&json!({"tree": negated})), Ok(()));
    assert_eq!(schema.check(&json!({"tree": wide})), Ok(()));
    let wrong = schema.check(&json!({"tree": {"op": "num", "value": "x"}})).unwrap_err();
    assert!(wrong.to_string().contains("/tree"), "{wrong}");
    let dates: Vec<Value> = (0..900).map(|_| json!({"date": "2024-01-01", "id": "a-1"})).collect();
    let dated = json!({"type": "object", "properties": {"all": {"type": "array", "items": {"type": "object", "properties": {
        "date": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, "id": {"type": "string", "pattern": "^[a-z]-[0-9]+$"}}}}}});
    let schema = compile("dates", dated).unwrap();
    assert_eq!(schema.check(&json!({"all": dates})), Ok(()));
}

/// Each error holds a part of the schema or the path to its value.
#[test]
fn what_errors_hold_is_bounded() {
    let long = "n".repeat(30_000);
    let with_items = |items: Value| json!({"type": "object", "properties": {"a": {"items": items}}});
    let many = |item: Value| json!({"a": vec![item; 20_000]});
    let texts: super::super::Object = (0..200).map(|at| (format!("{at:05000}"), json!(1))).collect();
    let draft_7 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"a": {"items": [{}], "additionalItems": false}}});
    for (name, schema, value, words) in [
        (
            "required",
            with_items(json!({"required": [long]})),
            many(json!({})),
            "/a/0: \"nnn",
        ),
        (
            "pattern",
            with_items(json!({"pattern": "a".repeat(8_000)})),
            many(json!("b")),
            "/a/0: \"b\" does not match",
        ),
        (
            "path",
            json!({"type": "object", "additionalProperties": {"items": {"type": "string"}}}),
            json!({long.as_str(): vec![1; 20_000]}),
            "…: 1 is not of type \"string\"; there may be more",
        ),
        (
            "not",
            with_items(json!({"not": {"enum": vec![1; 20_000]}})),
            many(json!(1)),
            "/a/0: {\"enum\":[1,1,",
        ),
        (
            "names",
            json!({"type": "object", "propertyNames": {"anyOf": vec![json!({"maxLength": 1}); 100]}}),
            Value::Object(texts),
            "…\" is not valid under any of the schemas",
        ),
        (
            "items",
            json!({"type": "object", "properties": {"a": {"unevaluatedItems": false}}}),
            json!({"a": [vec![1; 20_000], 7, "n".repeat(1_000)]}),
            "items are not allowed ('[]', '7', '\"nnn",
        ),
        (
            "references",
            json!({"type": "object", "required": ["z"], "properties": {(&long[..2_000]): {"anyOf": vec![json!({"$ref": "#"}); 2]}}}),
            (0..40).fold(json!({}), |value, _| json!({(&long[..2_000]): value})),
            "(root): ",
        ),
        ("items of draft 7", draft_7, many(json!(1)), "/a: [1,1,1,"),
    ] {
        let schema = Arc::new(compile(name, schema).unwrap());
        let message = check(name, &schema, value).unwrap_err();
        assert!(message.contains(words), "{name}: {message}");
        assert!(message.len() < 5_000, "{name}: {message}");
    }
}

/// The library stores each part, the path of each part and the schema of each `not`.
#[test]
fn what_is_stored_of_a_schema_is_bounded() {
    let tree = (0..40).fold(json!({}), |tree, _| json!({"": tree}));
    let wide = json!({"anyOf": vec![json!({"type": "null"}); 1_500]});
    for (name, schema) in [
        ("many schemas", json!({"prefixItems": vec![json!({}); 10_000]})),
        ("long names", json!({"properties": {"n".repeat(30_000): wide}})),
        ("a large not", json!({"not": {"const": vec![tree; 300]}})),
        (
            "not within not",
            nested(40, |one| json!({"not": one, "const": vec![0; 400]})),
        ),
    ] {
        let refused = compile(name, schema).unwrap_err().to_string();
        assert!(
            refused.contains("too long names or too large `not`s"),
            "{name}: {refused}"
        );
    }
}

/// The library caches the result of a referenced part for each inner value, if many references lead
/// to the part.
#[test]
fn what_a_check_remembers_is_bounded() {
    let leaves = vec![json!({"$ref": "#/$defs/leaf"}); 17];
    let mut definitions: super::super::Object =
        (0..17).map(|at| (format!("d{at}"), json!({"allOf": leaves}))).collect();
    definitions.insert("leaf".to_owned(), json!({}));
    let all: Vec<Value> = (0..17).map(|at| json!({"$ref": format!("#/$defs/d{at}")})).collect();
    let schema = json!({"type": "object", "$defs": definitions, "properties": {"a": {"items": {"allOf": all}}}});
    let schema = Arc::new(compile("references", schema).unwrap());
    assert_eq!(
        check("references", &schema, json!({"a": vec![json!({}); 20_000]})),
        Ok(())
    );
    let message = check("more references", &schema, json!({"a": vec![json!({}); 30_000]})).unwrap_err();
    assert!(message.contains("too much work"), "{message}");
}

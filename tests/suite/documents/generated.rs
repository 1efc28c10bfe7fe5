//! Writes the parts of the documents that repeat the code, between `<!-- generated: KIND -->` and
//! `<!-- end -->`. The test compares them, or writes them if the variable `WRITE` is set.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use agent::RunErrorCode;
use agent_runtime::http::{ProblemCode, openapi};
use agent_runtime::metrics::{Metrics, MetricsSettings};
use serde_json::{Value, json};

use super::blocks::{pages, read};

/// When set, the test writes the documents.
const WRITE: &str = "AGENT_RUNTIME_TEST_WRITE_DOCUMENTS";
/// The most characters of a line of text.
const WIDTH: usize = 100;
/// The methods of a path, in the order of their rows.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// The most names of a type that stand in a row.
const MAX_NAMES: usize = 6;

#[test]
fn generated_parts_of_documents_are_those_of_the_code() {
    let description = serde_json::to_value(openapi()).unwrap();
    let (mut parts, mut stale) = (0, Vec::new());
    for page in pages() {
        let text = read(&page);
        parts += text.matches("<!-- generated: ").count();
        let current = regenerated(&text, &description);
        if current != text {
            if std::env::var_os(WRITE).is_some() {
                fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(&page), current).unwrap();
            }
            stale.push(page);
        }
    }
    assert!(parts > 20, "{parts}");
    assert!(
        stale.is_empty(),
        "{stale:?} differ from the code: `{WRITE}=1 cargo test generated_parts` writes them"
    );
}

fn regenerated(text: &str, description: &Value) -> String {
    let mut parts = text.split("<!-- generated: ");
    let mut page = parts.next().unwrap().to_owned();
    for part in parts {
        let (kind, rest) = part.split_once(" -->\n").unwrap();
        let (_, rest) = rest.split_once("<!-- end -->").unwrap();
        let new = generated(kind, description);
        // Writing to a string can't fail.
        let _ = write!(page, "<!-- generated: {kind} -->\n{new}\n<!-- end -->{rest}");
    }
    page
}

fn generated(kind: &str, description: &Value) -> String {
    match kind.split_once(' ') {
        Some(("fields", names)) => fields(names, description),
        None if kind == "routes" => routes(description),
        None if kind == "problems" => ProblemCode::ALL.iter().map(|code| problem(*code)).collect(),
        None if kind == "metrics" => metrics(),
        Some(("run", "errors")) => run_errors(),
        _ => panic!("nothing generates {kind}"),
    }
}

fn problem(code: ProblemCode) -> String {
    let status = code.status().as_u16();
    let text = format!(
        "**{status}: {}.** {} **What to do:** {}",
        code.title(),
        code.cause(),
        code.remedy()
    );
    format!("\n## {}\n\n{}\n", code.as_str(), wrapped(&text))
}

/// Wraps a text. Code between backticks stays on one line.
fn wrapped(text: &str) -> String {
    let mut is_code = false;
    let words = text.split(|sign: char| {
        is_code ^= sign == '`';
        sign == ' ' && !is_code
    });
    let (mut lines, mut width) = (String::new(), 0);
    for word in words {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

fn run_errors() -> String {
    let rows = RunErrorCode::ALL.iter().map(|code| {
        let cells = [code.phases(), code.meaning(), code.remedy()];
        format!("| `{}` | {} |\n", code.as_str(), cells.join(" | "))
    });
    let head = "| code | phase | what it means | what to do |\n|---|---|---|---|\n".to_owned();
    std::iter::once(head).chain(rows).collect()
}

fn metrics() -> String {
    let settings = json!({"enabled": true, "listen": "", "tenants": []});
    let metrics = Metrics::new(&serde_json::from_value::<MetricsSettings>(settings).unwrap());
    let rows = metrics.described().iter().map(|metric| {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels, help) = (&metric.name, metric.kind, labels.join(", "), metric.help);
        format!("| `{name}` | {kind} | {labels} | {help} |\n")
    });
    let head = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    std::iter::once(head).chain(rows).collect()
}

fn routes(description: &Value) -> String {
    let mut table = "| request | scope | does |\n|---|---|---|\n".to_owned();
    for (path, item) in members(&description["paths"]) {
        for (method, operation) in METHODS.iter().filter_map(|method| Some((method, item.get(method)?))) {
            let scope = operation["security"][0]["api_key"][0].as_str();
            let scope = scope.map(|scope| format!("`{scope}`")).unwrap_or_default();
            let summary = cell(operation["summary"].as_str().unwrap());
            let _ = writeln!(table, "| `{} {path}` | {scope} | {summary} |", method.to_uppercase());
        }
    }
    table
}

/// Makes the table of the properties of these schemas.
fn fields(names: &str, description: &Value) -> String {
    let mut table = "| field | meaning |\n|---|---|\n".to_owned();
    for name in names.split(' ') {
        let schema = &description["components"]["schemas"][name];
        assert!(schema.is_object(), "there is no schema {name}");
        write_properties(&mut table, schema, description);
    }
    table
}

/// Adds the rows of a schema, with those of the schemas that it is made of.
fn write_properties(table: &mut String, schema: &Value, description: &Value) {
    for (name, property) in members(&schema["properties"]) {
        let _ = writeln!(table, "| `{name}` | {} |", meaning(property, description));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        write_properties(table, resolved(part, description), description);
    }
}

/// Returns the description of a property and the names that it takes, if it takes few.
fn meaning(property: &Value, description: &Value) -> String {
    // A property that may be null is one of two.
    let property = property.pointer("/oneOf/0").unwrap_or(property);
    let target = resolved(property, description);
    let words = property["description"].as_str().or(target["description"].as_str());
    let words = cell(words.unwrap_or_default());
    let names = target["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let is_listed = names.len() <= MAX_NAMES && !names.iter().all(|name| words.contains(name));
    match names.split_last() {
        Some((last, others)) if is_listed && !others.is_empty() => {
            format!("{words} It is {} or {last}.", others.join(", "))
        }
        _ => words,
    }
}

/// Returns the members of an object in the order of their names.
fn members(value: &Value) -> BTreeMap<&String, &Value> {
    value.as_object().into_iter().flatten().collect()
}

fn resolved<'v>(schema: &'v Value, description: &'v Value) -> &'v Value {
    match schema["$ref"].as_str() {
        Some(reference) => description.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Returns a text as the cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

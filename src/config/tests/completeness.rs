//! Compares `config/default.toml` with the section structs.

use std::collections::BTreeSet;

use crate::config::loader::DEFAULTS;
use crate::config::schema::{ANY, Shape, known_keys, shape};
use crate::config::settings::{KeyPath, dotted};

/// A key of the default file, given or shown commented out, with what stands above it.
struct Line {
    key: KeyPath,
    described: bool,
    number: usize,
}

/// Reads the file as a person does: headers, keys, and comments above them. Names that an
/// operator chooses become [`ANY`].
fn lines() -> Vec<Line> {
    let mut table = KeyPath::new();
    let mut described = false;
    let mut lines = Vec::new();
    for (index, line) in DEFAULTS.lines().enumerate() {
        let content = line.strip_prefix("# ").unwrap_or(line);
        if let Some(header) = content.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            table = schematic(&header.replace('"', ""));
            assert!(shape(&table).is_some_and(|it| it.is_table()), "unknown table: {line}");
            described = false;
        } else if let Some((key, _)) = content.split_once(" = ").filter(|it| is_key(it.0) || is_name(it.0)) {
            let mut path = table.clone();
            path.push(if is_name(key) { ANY } else { key }.to_owned());
            lines.push(Line {
                key: path,
                described,
                number: index + 1,
            });
            described = false;
        } else {
            described = line.starts_with("# ");
        }
    }
    lines
}

fn is_key(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// A name that the operator chooses stands in quotes.
fn is_name(text: &str) -> bool {
    text.starts_with('"') && text.ends_with('"')
}

fn schematic(header: &str) -> KeyPath {
    let mut path = KeyPath::new();
    let mut rest = header;
    while !rest.is_empty() {
        // A name that the operator chooses may hold dots. It ends the header, unless a table stands below it.
        if shape(&path) == Some(Shape::Named) {
            path.push(ANY.to_owned());
            let below = rest.rsplit_once('.').map(|(_, below)| below.to_owned());
            let below = below.map(|below| [path.clone(), vec![below]].concat());
            let is_table = |path: &KeyPath| shape(path).is_some_and(|it| it.is_table());
            return below.filter(is_table).unwrap_or(path);
        }
        let (name, below) = rest.split_once('.').unwrap_or((rest, ""));
        path.push(name.to_owned());
        rest = below;
    }
    path
}

#[test]
fn every_key_of_the_structs_is_in_the_default_file() {
    let shown: BTreeSet<KeyPath> = lines().into_iter().map(|line| line.key).collect();
    let missing: Vec<String> = known_keys()
        .into_iter()
        .map(|key| {
            // A table of free names, such as headers, is shown as one key.
            let free = key.len() > 2 && key.last().is_some_and(|name| name == ANY);
            if free { key[..key.len() - 1].to_vec() } else { key }
        })
        .filter(|key| !shown.contains(key))
        .map(|key| dotted(&key))
        .collect();
    assert!(missing.is_empty(), "not in config/default.toml: {missing:?}");
}

#[test]
fn every_key_of_the_default_file_is_in_the_structs() {
    for line in lines() {
        assert!(
            shape(&line.key).is_some(),
            "line {}: {}",
            line.number,
            dotted(&line.key)
        );
    }
}

#[test]
fn every_key_of_the_default_file_has_a_comment_where_it_first_stands() {
    let mut seen = BTreeSet::new();
    for line in lines() {
        let first = seen.insert(line.key.clone());
        assert!(line.described || !first, "line {}: {}", line.number, dotted(&line.key));
    }
}

#[test]
fn every_table_of_the_default_file_that_repeats_keys_has_a_comment() {
    let mut above = "";
    for line in DEFAULTS.lines() {
        if line.starts_with("[providers.") {
            assert!(above.starts_with("# "), "no comment above {line}");
        }
        above = line;
    }
}

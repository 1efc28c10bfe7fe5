//! Compares `config/default.toml` with the section structs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use toml::{Table, Value};

use crate::config::Config;
use crate::config::schema::DEFAULTS;
use crate::config::schema::{ANY, Shape, keys_below, known_keys, shape, shown_keys};
use crate::config::settings::{KeyPath, dotted};

const UNKNOWN: &str = "no_such_field";

/// Lists the fields of a section's struct. The struct names them in the error about an unknown
/// field.
fn fields(section: &[String]) -> BTreeSet<String> {
    let mut document: Table = DEFAULTS.parse().unwrap();
    let table = section.iter().fold(&mut document, |table, name| {
        let below = table.entry(name.as_str()).or_insert_with(|| Value::Table(Table::new()));
        below.as_table_mut().unwrap()
    });
    table.insert(UNKNOWN.to_owned(), true.into());
    let error = Config::deserialize(Value::Table(document)).unwrap_err();
    let error = error.message();
    let mut names = error.split('`').skip(1).step_by(2).map(str::to_owned);
    assert_eq!(names.next().as_deref(), Some(UNKNOWN), "{}: {error}", dotted(section));
    names.collect()
}

#[test]
fn the_default_file_shows_the_fields_of_the_structs() {
    let sections: BTreeSet<&[String]> = known_keys()
        .flat_map(|key| (0..key.len()).map(move |length| &key[..length]))
        .filter(|table| shape(table) == Some(Shape::Section))
        .collect();
    assert!(sections.len() > 15);
    for section in sections {
        let shown: BTreeSet<String> = keys_below(section).into_iter().map(str::to_owned).collect();
        assert_eq!(shown, fields(section), "in `{}`", dotted(section));
    }
}

#[test]
fn every_key_of_the_default_file_has_a_comment_where_it_first_stands() {
    let lines: Vec<&str> = DEFAULTS.lines().collect();
    let keys: BTreeMap<usize, KeyPath> = shown_keys().into_iter().map(|(line, key, _)| (line, key)).collect();
    let mut seen = BTreeSet::new();
    for (number, key) in &keys {
        let above = lines[number - 2];
        let is_comment = above.starts_with("# ") && !above.starts_with("# [") && !keys.contains_key(&(number - 1));
        let is_first = seen.insert(key);
        assert!(is_comment || !is_first, "line {number}: {}", dotted(key));
    }
    assert!(keys.values().any(|key| key.contains(&ANY.to_owned())));
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

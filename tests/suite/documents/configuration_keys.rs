//! Compares the tables of docs/configuration.md with the configuration: every key is there, with
//! its default and the values that it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_runtime::config::{self, Sources};

use super::blocks::{Table, read, spans_of, tables};

const PAGE: &str = "docs/configuration.md";
/// A value that hardly any key takes; the error names the expected ones.
const NONSENSE: &str = "[]";

/// Every key of the default file, with its default if it has one. What an operator names is `NAME`
/// or `"PROVIDER/MODEL"`, and has none.
fn keys() -> BTreeMap<String, Option<String>> {
    let file = read("config/default.toml");
    let mut keys = BTreeMap::new();
    let mut table = String::new();
    for line in file.lines() {
        let (content, is_given) = match line.strip_prefix("# ") {
            Some(content) => (content, false),
            None => (line, true),
        };
        if let Some(header) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            header.clone_into(&mut table);
        } else if let Some((key, value)) = content.split_once(" = ").filter(|(key, _)| !key.contains(' ')) {
            let key = general(&table, key);
            let is_named = key.contains("NAME") || key.contains("MODEL\"");
            keys.entry(key)
                .or_insert((is_given && !is_named).then(|| value.to_owned()));
        }
    }
    keys
}

/// A key without the names that the file has as examples.
fn general(table: &str, key: &str) -> String {
    let quoted = "\"PROVIDER/MODEL\"";
    match table.split_once('.') {
        Some(("providers", provider)) if provider.split('.').nth(1) == Some("aws") => {
            format!("providers.NAME.aws.{key}")
        }
        Some(("providers", _)) => format!("providers.NAME.{key}"),
        Some(("capabilities", _)) => format!("capabilities.{quoted}.{key}"),
        Some(("prices", _)) => format!("prices.{quoted}.{key}"),
        Some(("tools", name)) if name.starts_with("secrets.") => format!("tools.secrets.NAME.{key}"),
        Some(("sandbox", name)) if name.starts_with("network.secrets.") => {
            format!("sandbox.network.secrets.NAME.{key}")
        }
        Some(("webhooks", _)) => format!("webhooks.secrets.NAME.{key}"),
        Some(("limits", tenant)) if tenant.starts_with("tenants.") => format!("limits.tenants.NAME.{key}"),
        None if table == "context_windows" => format!("{table}.{quoted}"),
        _ => format!("{table}.{key}"),
    }
}

fn rows() -> Table {
    let tables = tables(&read(PAGE)).into_iter().filter(|(mark, _)| mark == "keys");
    tables.flat_map(|(_, table)| table).collect()
}

/// Returns what the configuration expects instead of a nonsense value; `None` for a key that takes
/// any text.
fn wanted(key: &str) -> Option<String> {
    let key = key.replace("NAME", "main").replace("PROVIDER/MODEL", "demo/m");
    let sources = Sources {
        overrides: vec![(key, NONSENSE.to_owned())],
        ..Sources::default()
    };
    let fault = config::load(&sources).err()?.to_string();
    let wanted = fault.split_once("expected ")?.1;
    let wanted = wanted.strip_prefix("an ").or_else(|| wanted.strip_prefix("a "));
    wanted.map(|wanted| wanted.replace("nonzero u64", "integer of 1 or more"))
}

/// The two ends of a range of durations.
fn range(words: &str) -> Option<(Duration, Duration)> {
    let (from, to) = words.strip_prefix("duration from ")?.split_once(" to ")?;
    let to = to.split(',').next()?;
    Some((
        humantime::parse_duration(from).ok()?,
        humantime::parse_duration(to).ok()?,
    ))
}

#[test]
fn the_tables_have_every_key_with_its_default() {
    let shown: Vec<(String, Option<String>)> = rows()
        .iter()
        .map(|row| {
            let key: Vec<String> = spans_of(&row[0]).collect();
            let is_named = key[0].contains("NAME") || key[0].contains("MODEL\"");
            let default = spans_of(&row[2]).next().filter(|_| !is_named);
            assert!(default.is_some() || is_named || row[2] == "none", "{row:?}");
            assert!(row.len() == 4 && !row[3].is_empty(), "{row:?}");
            (key.concat(), default)
        })
        .collect();
    let known = keys();
    assert!(known.len() > 70);
    assert_eq!(shown.len(), known.len(), "a key stands there twice, or is missing");
    assert_eq!(shown.into_iter().collect::<BTreeMap<_, _>>(), known);
}

#[test]
fn the_tables_show_which_values_a_key_takes() {
    let (mut bounded, mut named) = (0, 0);
    for row in rows() {
        let (key, values) = (row[0].trim_matches('`'), row[1].as_str());
        let wanted = wanted(key);
        let described = || wanted.clone().unwrap_or_else(|| panic!("{key} takes anything"));
        if let Some(range_shown) = range(values) {
            assert_eq!(range(&described()), Some(range_shown), "{key}");
            bounded += 1;
        } else if ["integer", "boolean", "amount"]
            .iter()
            .any(|kind| values.starts_with(kind))
        {
            assert_eq!(described(), values, "{key}");
            bounded += 1;
        } else if spans_of(values).next().is_some() {
            let error = choices_of(key);
            let choices: Vec<String> = spans_of(&error).collect();
            assert_eq!(spans_of(values).collect::<Vec<_>>(), choices, "{key}");
            named += 1;
        }
    }
    assert!(bounded > 50 && named >= 4, "{bounded} {named}");
}

/// Returns the names that a key takes, from the error.
fn choices_of(key: &str) -> String {
    let key = key.replace("NAME", "main").replace("PROVIDER/MODEL", "demo/m");
    let sources = Sources {
        overrides: vec![(key, NONSENSE.to_owned())],
        ..Sources::default()
    };
    let fault = config::load(&sources).err().unwrap().to_string();
    fault.split_once("expected ").unwrap().1.to_owned()
}

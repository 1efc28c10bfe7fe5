//! Compares `config/default.toml` with what modules read.

use std::collections::{BTreeMap, BTreeSet};

use super::{from_file, message};
use crate::config::schema::{ANY, DEFAULTS, known_keys, shown_keys};
use crate::config::settings::{KeyPath, dotted};

/// A value of a type that no setting has.
const NONSENSE: &str = "1979-05-27";

/// A struct whose field is not in the default file fails as well: the field can't be set, and it is
/// missing if it has no default.
#[test]
fn somebody_reads_every_key_of_the_default_file() {
    assert!(known_keys().count() > 150);
    for key in known_keys() {
        let mut key = key.clone();
        let last = key.len() - 1;
        for (at, name) in key.iter_mut().enumerate().filter(|(_, name)| *name == ANY) {
            // The first name is that of a provider, of a model, or of something else.
            *name = match at {
                1 => "demo".to_owned(),
                _ => "main".to_owned(),
            };
        }
        if matches!(key[0].as_str(), "prices" | "context_windows" | "capabilities") {
            key[1] = "demo/main".to_owned();
        }
        let (table, name) = (dotted(&key[..last]), dotted(&key[last..]));
        let fault = message(from_file(&format!("[{table}]\n{name} = {NONSENSE}\n")));
        assert!(
            fault.starts_with(&format!("app.toml:2: `{}`: ", dotted(&key))),
            "{fault}"
        );
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

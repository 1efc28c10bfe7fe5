//! Compares `config/default.toml` with the keys that modules read.

use std::collections::BTreeSet;

use super::{from_file, message};
use crate::config::origin::{KeyPath, dotted};
use crate::config::overrides::split_key;
use crate::config::schema::{ANY, DEFAULTS, general, known_keys, shown};

/// A value that no setting may have.
const NONSENSE: &str = "-0.5";

/// A struct whose field is not in the default file fails as well: the field can't be set, and it is
/// missing if it has no default.
#[test]
fn somebody_reads_every_key_of_the_default_file() {
    assert!(known_keys().count() > 150);
    for key in known_keys() {
        let mut key = key.clone();
        let last = key.len() - 1;
        for (at, name) in key.iter_mut().enumerate() {
            if name.as_str() == ANY {
                // The second name may be the name of a provider.
                (if at == 1 { "demo" } else { "main" }).clone_into(name);
            }
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
    let (mut table, mut above, mut seen) = (KeyPath::new(), "", BTreeSet::new());
    for line in DEFAULTS.lines() {
        let content = shown(line).unwrap_or_default();
        if let Some(header) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = split_key(header).unwrap();
        } else if let Some((key, _)) = content.split_once(" = ") {
            let key = general(&[table.clone(), split_key(key).unwrap()].concat());
            let is_comment = above.starts_with("# ") && shown(above).is_none();
            let is_first = seen.insert(key.clone());
            assert!(is_comment || !is_first, "{}", dotted(&key));
        }
        above = line;
    }
    assert!(seen.iter().any(|key| key.contains(&ANY.to_owned())));
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

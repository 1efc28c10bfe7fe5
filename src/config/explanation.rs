//! Shows the settings in force, as `check-config` prints them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toml::Value;

use super::layers::Layers;
use super::origin::{KeyPath, dotted};
use super::secrets::{REDACTED, redact_url};

/// Lists every key in force with its value and its origin, one per line, without secrets. A key
/// that names a variable also shows whether the variable is among those that are set.
pub(super) fn explain(layers: &Layers, variables: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for (path, value) in layers.keys() {
        let line = format!("{} = {}", dotted(&path), shown(&path, value));
        let names_variable = path.last().is_some_and(|key| key == "env" || key.ends_with("_env"));
        let note = match value.as_str().filter(|_| names_variable) {
            Some(variable) if variables.contains(variable) => " (set)",
            Some(_) => " (not set)",
            None => "",
        };
        // Writing to a string can't fail.
        let _ = writeln!(text, "{line:<66}  # {}{note}", layers.origin(&path));
    }
    text
}

/// Writes the value as TOML. Possible secrets are redacted, header values as a whole.
fn shown(path: &KeyPath, value: &Value) -> String {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match (names.as_slice(), value) {
        (["providers", _, "headers", _], _) => Value::from(REDACTED).to_string(),
        (["store" | "board", "url"] | ["store", "listen_url"], Value::String(url)) => {
            Value::from(redact_url(url)).to_string()
        }
        _ => value.to_string(),
    }
}

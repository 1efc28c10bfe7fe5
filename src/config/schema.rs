//! The known keys: all keys in `config/default.toml`, commented out or not.
//!
//! The example of a key determines its kind. A test checks that some module reads each key.

use std::collections::BTreeMap;
use std::slice;
use std::sync::LazyLock;

use toml::{Table, Value};

use super::origin::{KeyPath, dotted};
use values::spelling::nearest;

/// The lowest layer: every key with its default and its meaning.
pub(super) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Replaces names that the operator chooses.
pub(super) const ANY: &str = "NAME";

/// The tables whose keys the operator chooses.
const NAMED: [&[&str]; 16] = [
    &["auth", "issuers"],
    &["auth", "issuers", ANY, "required"],
    &["auth", "issuers", ANY, "scopes"],
    &["capabilities"],
    &["context_windows"],
    &["http", "tls", "clients"],
    &["limits", "each_tenant", "agent_spend"],
    &["limits", "profiles"],
    &["limits", "tenants"],
    &["limits", "tenants", ANY, "agent_spend"],
    &["prices"],
    &["providers"],
    &["providers", ANY, "headers"],
    &["sandbox", "network", "secrets"],
    &["tools", "secrets"],
    &["webhooks", "secrets"],
];

/// The kind of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table with known keys.
    Section,
    /// A table whose keys the operator chooses, as in `providers`.
    Named,
    /// A value written as a string.
    Text,
    /// A number, a boolean or a list.
    Other,
}

impl Shape {
    pub(super) fn is_table(self) -> bool {
        matches!(self, Self::Section | Self::Named)
    }
}

/// Every key that has a value, with [`ANY`] for a name that the operator chooses.
static KEYS: LazyLock<BTreeMap<KeyPath, Shape>> = LazyLock::new(|| {
    let lines = DEFAULTS.lines().map(|line| shown(line).unwrap_or_default());
    let document: Table = lines.collect::<Vec<_>>().join("\n").parse().unwrap_or_default();
    let mut keys = BTreeMap::new();
    add_keys(&document, &[], &mut keys);
    keys
});

fn add_keys(table: &Table, path: &[String], keys: &mut BTreeMap<KeyPath, Shape>) {
    for (name, value) in table {
        let path = [path, slice::from_ref(name)].concat();
        if let Value::Table(below) = value {
            add_keys(below, &path, keys);
        } else {
            let shape = if value.is_str() { Shape::Text } else { Shape::Other };
            keys.insert(general(&path), shape);
        }
    }
}

/// Returns the key or the header of a table in a line of the default file, without the sign of a
/// comment; `None` for prose. A name that the operator chooses is in quotes.
pub(super) fn shown(line: &str) -> Option<&str> {
    let content = line.strip_prefix("# ").unwrap_or(line);
    let is_header = content.starts_with('[') && content.ends_with(']');
    let is_key = |key: &str| {
        let is_quoted = key.starts_with('"') && key.ends_with('"');
        is_quoted || key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let is_shown = is_header || content.split_once(" = ").is_some_and(|(key, _)| is_key(key));
    is_shown.then_some(content)
}

/// Looks up a path; `None` when the key does not exist.
pub(super) fn shape(path: &[String]) -> Option<Shape> {
    let path = general(path);
    if is_named(&path) {
        return Some(Shape::Named);
    }
    let (key, shape) = KEYS.range(path.clone()..).next()?;
    if *key == path {
        return Some(*shape);
    }
    key.starts_with(&path).then_some(Shape::Section)
}

/// Lists every key that has a value, with [`ANY`] for a name that the operator chooses.
pub(super) fn known_keys() -> impl Iterator<Item = &'static KeyPath> {
    KEYS.keys()
}

/// Lists the keys and tables directly below a section.
pub(super) fn keys_below(table: &[String]) -> Vec<&'static str> {
    let table = general(table);
    let below = KEYS.keys().filter(|key| key.starts_with(&table));
    let mut names: Vec<&str> = below
        .filter_map(|key| key.get(table.len()))
        .map(String::as_str)
        .collect();
    names.dedup();
    names
}

/// Suggests a known key for an unknown one: a similar key in the same section, or the same key in
/// another section.
pub(super) fn suggestion(path: &[String]) -> Option<String> {
    let name = path.last()?;
    // The most frequent mistake is a wrong separator, as in HTTP_LISTEN for HTTP__LISTEN.
    let mut named = known_keys().filter(|key| !key.iter().any(|name| name == ANY));
    let same_letters = named.find(|key| letters(key) == letters(path)).cloned();
    let near = same_letters.or_else(|| nearest_key(path));
    let key = near.or_else(|| known_keys().find(|key| key.last() == Some(name)).cloned());
    key.map(|key| dotted(&key))
}

/// Finds the key of the innermost known section that is most similar to the rest of the path.
fn nearest_key(path: &[String]) -> Option<KeyPath> {
    let known = (0..path.len()).rev().find(|end| shape(&path[..*end]).is_some())?;
    let (table, unknown) = path.split_at(known);
    if shape(table) != Some(Shape::Section) {
        return None;
    }
    let keys = keys_below(table);
    let below = |key: &str| [table, &[key.to_owned()]].concat();
    // One separator too many: BASE__URL for BASE_URL.
    let whole = nearest(&unknown.join("_"), keys.iter().copied());
    let sections = keys
        .iter()
        .filter(|key| shape(&below(key)).is_some_and(Shape::is_table));
    whole
        .or_else(|| nearest(unknown.first()?, sections.copied()))
        .map(below)
}

/// Returns the letters and digits of a key.
fn letters(path: &[String]) -> String {
    path.concat().replace(|c: char| !c.is_alphanumeric(), "").to_lowercase()
}

fn is_named(table: &[String]) -> bool {
    NAMED.iter().any(|named| table == *named)
}

/// Replaces the names that the operator chooses with [`ANY`].
pub(super) fn general(path: &[String]) -> KeyPath {
    path.iter().fold(KeyPath::new(), |mut general, name| {
        let name = if is_named(&general) { ANY } else { name.as_str() };
        general.push(name.to_owned());
        general
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_default_file() {
        for (path, wanted) in [
            ("", Some(Shape::Section)),
            ("http", Some(Shape::Section)),
            ("http.listen", Some(Shape::Text)),
            ("http.max_connections", Some(Shape::Other)),
            ("http.request_timeout", Some(Shape::Text)),
            ("providers", Some(Shape::Named)),
            ("providers.x.kind", Some(Shape::Text)),
            ("providers.x.models", Some(Shape::Other)),
            ("providers.x.headers", Some(Shape::Named)),
            ("providers.x.headers.y", Some(Shape::Text)),
            ("providers.x.error_words", Some(Shape::Section)),
            ("providers.x.error_words.context", Some(Shape::Other)),
            ("runs.budget.max_cost", Some(Shape::Other)),
            ("http.lisen", None),
            ("http.listen.deeper", None),
            ("nothing", None),
        ] {
            let names = path.split('.').filter(|name| !name.is_empty());
            let path: Vec<String> = names.map(str::to_owned).collect();
            assert_eq!(shape(&path), wanted, "at {path:?}");
        }
        assert!(keys_below(&[]).contains(&"store"));
    }
}

//! The known keys: all keys in `config/default.toml`, commented out or not.
//!
//! The example of a key determines its kind. A test compares the keys with the fields of the
//! section structs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::overrides::split_key;
use super::settings::{KeyPath, dotted};
use values::spelling::nearest;

/// The lowest layer: every key with its default and its meaning.
pub(super) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Replaces names that the operator chooses.
pub(super) const ANY: &str = "NAME";

/// The tables whose keys the operator chooses.
const NAMED: [&[&str]; 9] = [
    &["capabilities"],
    &["context_windows"],
    &["limits", "tenants"],
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

/// Every key and table, with [`ANY`] for a name that the operator chooses.
static KEYS: LazyLock<BTreeMap<KeyPath, Shape>> = LazyLock::new(|| {
    let mut keys = BTreeMap::new();
    for (_, path, shape) in shown_keys() {
        // An inline table has free keys, and its values are strings.
        if shape == Shape::Named {
            keys.insert([path.as_slice(), &[ANY.to_owned()]].concat(), Shape::Text);
        }
        for length in 0..path.len() {
            let table = &path[..length];
            keys.insert(table.to_vec(), table_shape(table));
        }
        keys.insert(path, shape);
    }
    keys
});

/// Looks up a path; `None` when the key does not exist.
pub(super) fn shape(path: &[String]) -> Option<Shape> {
    KEYS.get(&general(path)).copied()
}

/// Lists every key that has a value, with [`ANY`] for a name that the operator chooses.
pub(super) fn known_keys() -> impl Iterator<Item = &'static KeyPath> {
    let values = KEYS.iter().filter(|(_, shape)| !shape.is_table());
    values.map(|(path, _)| path)
}

/// Lists the keys and tables directly below a section.
pub(super) fn keys_below(table: &[String]) -> Vec<&'static str> {
    let table = general(table);
    let below = KEYS.keys().filter(|path| path.len() == table.len() + 1);
    let below = below.filter(|path| path.starts_with(&table));
    below.filter_map(|path| path.last()).map(String::as_str).collect()
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

/// Reads the keys that the default file shows, each with the number of its line, in their order.
pub(super) fn shown_keys() -> Vec<(usize, KeyPath, Shape)> {
    let mut table = KeyPath::new();
    let mut keys = Vec::new();
    for (index, line) in DEFAULTS.lines().enumerate() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = split_key(header).unwrap_or_default();
        } else if let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| is_key(key)) {
            let path = general(&[table.as_slice(), &[key.to_owned()]].concat());
            let shape = match value.chars().next() {
                Some('{') => table_shape(&path),
                Some('"') => Shape::Text,
                _ => Shape::Other,
            };
            keys.push((index + 1, path, shape));
        }
    }
    keys
}

/// Distinguishes a key from prose. A name that the operator chooses is in quotes.
fn is_key(text: &str) -> bool {
    let is_quoted = text.starts_with('"') && text.ends_with('"');
    is_quoted || text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

fn table_shape(path: &[String]) -> Shape {
    if NAMED.iter().any(|named| path == *named) {
        Shape::Named
    } else {
        Shape::Section
    }
}

/// Replaces the names that the operator chooses with [`ANY`].
fn general(path: &[String]) -> KeyPath {
    path.iter().fold(KeyPath::new(), |mut general, name| {
        let is_free = table_shape(&general) == Shape::Named;
        general.push(if is_free { ANY.to_owned() } else { name.clone() });
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

//! The settings in force, by path, each with its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

/// The names that lead to a key, outermost first.
pub(super) type KeyPath = Vec<String>;

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The embedded `config/default.toml`.
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    Environment {
        variable: String,
    },
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => write!(f, "environment {variable}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

pub(super) struct Setting {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// Values by path. An empty table is an entry too, so that it is not lost.
#[derive(Default)]
pub(super) struct Settings {
    entries: BTreeMap<KeyPath, Setting>,
}

impl Settings {
    pub(super) fn set(&mut self, path: KeyPath, value: Value, origin: Origin) {
        self.entries.insert(path, Setting { value, origin });
    }

    pub(super) fn get(&self, path: &[String]) -> Option<&Setting> {
        self.entries.get(path)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&KeyPath, &Setting)> {
        self.entries.iter()
    }

    /// Lists the names directly below a table, each once, in order.
    pub(super) fn names_below(&self, table: &[String]) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .entries
            .keys()
            .filter(|path| path.starts_with(table))
            .filter_map(|path| path.get(table.len()))
            .map(String::as_str)
            .collect();
        names.dedup();
        names
    }

    /// Returns where a key was set; for a missing key, where its table was first set.
    pub(super) fn origin(&self, path: &[String]) -> Origin {
        let tables = (1..=path.len()).rev().filter_map(|length| path.get(..length));
        let mut found = tables.filter_map(|table| {
            let first = self.entries.range(table.to_vec()..).next();
            first.filter(|(key, _)| key.starts_with(table))
        });
        found
            .next()
            .map_or(Origin::Default, |(_, setting)| setting.origin.clone())
    }

    /// Returns the values as a nested document.
    pub(super) fn document(&self) -> Table {
        let mut document = Table::new();
        for (path, setting) in &self.entries {
            let Some((key, tables)) = path.split_last() else {
                continue;
            };
            let table = tables.iter().try_fold(&mut document, |table, name| {
                let below = table.entry(name.as_str());
                below.or_insert_with(|| Value::Table(Table::new())).as_table_mut()
            });
            if let Some(table) = table {
                table.entry(key.as_str()).or_insert_with(|| setting.value.clone());
            }
        }
        document
    }
}

/// Makes the path of a key from its names.
pub(super) fn key_path(names: &[&str]) -> KeyPath {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Writes a path as TOML does, quoting names that need it.
pub(super) fn dotted(path: &[String]) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let names: Vec<String> = path
        .iter()
        .map(|name| {
            if !name.is_empty() && name.chars().all(bare) {
                name.clone()
            } else {
                format!("{name:?}")
            }
        })
        .collect();
    names.join(".")
}

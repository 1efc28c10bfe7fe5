//! The path of a key, and where its value was set.

use std::fmt;
use std::path::PathBuf;

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

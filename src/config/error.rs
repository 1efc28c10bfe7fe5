//! Configuration errors, worded so that the operator can fix them.
//!
//! A message names the key, where it was set, and the expected value. It never prints the value of
//! a key that may contain a secret.

use std::io;
use std::path::PathBuf;

use super::origin::Origin;

/// A reason why the configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", path.display())]
    ReadFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{origin}: not valid TOML: {problem}")]
    Syntax { origin: Origin, problem: String },
    #[error("{origin}: unknown key `{key}`{}", hint(suggestion.as_deref()))]
    UnknownKey {
        key: String,
        origin: Origin,
        suggestion: Option<String>,
    },
    #[error("{origin}: `{key}`: {problem}")]
    InvalidValue {
        key: String,
        origin: Origin,
        problem: String,
    },
    #[error("{first} and {second} both set `{key}`: remove one of them")]
    SetTwice { key: String, first: Origin, second: Origin },
    #[error("the environment variable {variable} is not valid UTF-8")]
    NotUnicode { variable: String },
    #[error("`{text}` is not of the form section.key=value")]
    OverrideSyntax { text: String },
    #[error("{origin}: `{key}`: cannot read the secret from {}", path.display())]
    ReadSecret {
        key: String,
        origin: Origin,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

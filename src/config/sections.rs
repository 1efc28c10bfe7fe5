//! Reads the settings of modules from the merged values.
//!
//! A module owns its settings, so it also decodes them: it knows its keys, their types and their
//! bounds. Several modules may read one section, and each of them ignores the keys of the others.
//! Unknown keys are refused before, see `schema.rs`.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use toml::Value;

use super::error::ConfigError;
use super::kind_hint::kind_hint;
use super::layers::Layers;
use super::origin::{KeyPath, dotted, key_path};
use super::secrets::{SecretSource, read_secret, secret_variable};
use values::spelling::{meant, nearest};

/// The merged values, by section.
pub(super) struct Sections<'a> {
    layers: &'a Layers,
    environment: &'a BTreeMap<String, String>,
}

impl<'a> Sections<'a> {
    pub(super) fn new(layers: &'a Layers, environment: &'a BTreeMap<String, String>) -> Self {
        Self { layers, environment }
    }

    /// Reads the settings of a module from a section such as `tools.http_fetch`.
    pub(super) fn read<T: DeserializeOwned>(&self, section: &str) -> Result<T, ConfigError> {
        let section: KeyPath = section.split('.').map(str::to_owned).collect();
        let values = Value::Table(self.layers.table(&section).cloned().unwrap_or_default());
        serde_path_to_error::deserialize(values).map_err(|error| self.undecoded(section, &error))
    }

    /// Finds a secret in the file or the variable that its source names. `file_key` is the key of
    /// the file. An unset variable is no error: then there is none.
    pub(super) fn secret(&self, file_key: &[&str], source: &SecretSource) -> Result<Option<SecretString>, ConfigError> {
        if let Some(path) = &source.file {
            let key = key_path(file_key);
            return read_secret(&key, self.layers.origin(&key), path).map(|secret| Some(secret.into()));
        }
        self.variable(source.env.as_deref())
    }

    /// Reads a secret from a variable, if one is named.
    pub(super) fn variable(&self, name: Option<&str>) -> Result<Option<SecretString>, ConfigError> {
        name.map_or(Ok(None), |name| secret_variable(self.environment, name))
    }

    /// Returns the value of a variable that is no secret, unless it is empty.
    pub(super) fn variable_text(&self, name: &str) -> Option<&str> {
        let value = self.environment.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// Reads all variables whose names begin with the prefix.
    pub(super) fn variables(&self, prefix: &str) -> Result<Vec<(String, SecretString)>, ConfigError> {
        let names = self.environment.keys().filter(|name| name.starts_with(prefix));
        let mut found = Vec::new();
        for name in names {
            if let Some(value) = secret_variable(self.environment, name)? {
                found.push((name.clone(), value));
            }
        }
        Ok(found)
    }

    /// Makes the error about a key, or about a table of keys.
    pub(super) fn invalid(&self, path: &[&str], problem: impl Into<String>) -> ConfigError {
        self.invalid_at(&key_path(path), problem.into())
    }

    fn invalid_at(&self, path: &[String], problem: String) -> ConfigError {
        ConfigError::InvalidValue {
            key: dotted(path),
            origin: self.layers.origin(path),
            problem,
        }
    }

    fn undecoded(&self, section: KeyPath, error: &serde_path_to_error::Error<toml::de::Error>) -> ConfigError {
        let below = error.path().iter().filter_map(|segment| match segment {
            Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
            Segment::Seq { .. } | Segment::Unknown => None,
        });
        let path: KeyPath = section.into_iter().chain(below).collect();
        let mut problem = error.inner().message().to_owned();
        if problem.starts_with("missing field") {
            problem.push_str(&self.similar_name(&path));
        } else if problem.starts_with("unknown variant") {
            let hint = kind_hint(&path, &problem).map(str::to_owned);
            let hint = hint.or_else(|| meant(&problem).map(|name| format!("; did you mean `{name}`?")));
            problem.push_str(&hint.unwrap_or_default());
        }
        self.invalid_at(&path, problem)
    }

    /// Suggests a known name, since an incomplete provider is usually a misspelt one.
    fn similar_name(&self, path: &[String]) -> String {
        let Some((name, table)) = path.split_last() else {
            return String::new();
        };
        let names = self.layers.names_below(table).into_iter();
        let other = nearest(name, names.filter(|other| other != name));
        other.map_or_else(String::new, |other| {
            format!(", did you mean `{}`?", dotted(&[table, &[other.to_owned()]].concat()))
        })
    }
}

//! Tests of whole loads, from sources to a configuration or a message.

mod completeness;
mod layers;
mod mistakes;
mod secrets;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{ConfigError, Loaded, Sources, load, parse_override};

fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    variables.iter().map(owned).collect()
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load(&Sources {
        environment: environment(variables),
        ..Sources::default()
    })
}

fn from_override(text: &str) -> Result<Loaded, ConfigError> {
    load(&Sources {
        overrides: vec![parse_override(text)?],
        ..Sources::default()
    })
}

/// Writes `app.toml`, which stays as long as the directory is held.
fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.toml");
    fs::write(&path, text).unwrap();
    (directory, path)
}

fn from_file(text: &str) -> Result<Loaded, ConfigError> {
    let (_directory, path) = file(text);
    load(&Sources {
        file: Some(path),
        ..Sources::default()
    })
}

/// The message, with the temporary directory taken out.
fn message(result: Result<Loaded, ConfigError>) -> String {
    let text = result.map(|loaded| loaded.config).unwrap_err().to_string();
    match (text.starts_with('/'), text.split_once("app.toml")) {
        (true, Some((_, rest))) => format!("app.toml{rest}"),
        _ => text,
    }
}

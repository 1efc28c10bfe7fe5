//! Parses the files that operators write, and describes their mistakes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde::de::DeserializeOwned;

use values::json::plain_words;
use values::spelling::meant;

/// Reads a definition. The error names the line of a mistake, if it is known, and its key.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let deserializer = toml::Deserializer::parse(text)
        .map_err(|error| anyhow!("{}not valid TOML: {}", line(text, &error), error.message()))?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let line = line(text, error.inner());
        let key = error.path().to_string();
        let problem = problem(error.inner().message());
        if key == "." {
            anyhow!("{line}{problem}")
        } else {
            anyhow!("{line}`{key}`: {problem}")
        }
    })
}

/// Returns the `*.toml` of a folder, in order. The folder need not exist.
pub(super) fn toml_files(directory: &Path, of: &str) -> anyhow::Result<Vec<PathBuf>> {
    let shown = directory.display();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("can't read the directory of {of} {shown}"))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("can't read the directory of {of} {shown}"))?
            .path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|end| end == "toml") && !path.is_dir() && !is_hidden {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the beginning of an error message: the line of the mistake.
fn line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    before.map_or_else(String::new, |before| {
        format!("line {}: ", before.matches('\n').count() + 1)
    })
}

/// Describes the mistake. For an unknown name, suggests the most similar known one.
fn problem(message: &str) -> String {
    let words = plain_words(message);
    match (words.split_once(", expected "), meant(&words)) {
        (Some((unknown, _)), Some(meant)) if unknown.starts_with("unknown ") => {
            format!("{unknown}, did you mean `{meant}`?")
        }
        _ => words,
    }
}

//! Parses the files that operators write, and describes their mistakes.

use anyhow::anyhow;
use serde::de::DeserializeOwned;

use crate::json::plain_words;
use crate::spelling::meant;

/// Reads a definition. The error names the line of a mistake, if it is known, and its key.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
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

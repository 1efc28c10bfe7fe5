//! `[log]`: what is logged and how it looks.

use serde::{Deserialize, Deserializer};
use tracing_subscriber::EnvFilter;

use super::values::Text;
use crate::spelling::nearest;

/// What is logged and how it looks.
#[derive(Clone, Debug, Deserialize)]
pub struct LogConfig {
    pub format: LogFormat,
    /// Directives of `tracing`, as in `info,sqlx=warn`.
    #[serde(deserialize_with = "filter")]
    pub filter: String,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

fn filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_str(Text::new(
        "log levels such as \"info\" or \"info,sqlx=warn\"",
        |text: &str| {
            let valid = EnvFilter::try_new(text).is_ok() && !text.split(',').any(mistyped_level);
            valid.then(|| text.to_owned())
        },
    ))
}

/// A word that is no level names a module, of which everything is logged: `inof` must not do that.
fn mistyped_level(directive: &str) -> bool {
    let word = directive.trim().to_lowercase();
    word.is_empty() || (!LEVELS.contains(&word.as_str()) && nearest(&word, LEVELS).is_some())
}

//! `[log]`: the level and the format of logs.

use serde::{Deserialize, Deserializer};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use values::settings::text;

/// The level and the format of logs.
#[derive(Clone, Debug, Deserialize)]
pub struct LogConfig {
    pub format: LogFormat,
    /// Directives of `tracing`, as in `info,sqlx=warn`.
    #[serde(deserialize_with = "filter")]
    pub filter: String,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

fn filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let wanted = "log levels such as \"info\", or \"info,sqlx=warn\" for a module's own";
    text(deserializer, wanted, |words| {
        let valid = EnvFilter::try_new(words).is_ok() && words.split(',').all(has_level);
        valid.then(|| words.to_owned())
    })
}

/// Returns whether a directive has a level. `tracing` reads a word such as `verbose` as a module,
/// and would log nothing else.
fn has_level(directive: &str) -> bool {
    let directive = directive.trim();
    // A directive with brackets may be split at a comma, so it is accepted.
    directive.contains(['=', '[', ']']) || (!directive.is_empty() && directive.parse::<LevelFilter>().is_ok())
}

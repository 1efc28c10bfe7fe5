//! `[log]`: the level and the format of logs.

use serde::{Deserialize, Deserializer};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::values::Text;

/// The level and the format of logs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
    deserializer.deserialize_str(Text::new(
        "log levels such as \"info\", or \"info,sqlx=warn\" for a module's own",
        |text: &str| {
            let valid = EnvFilter::try_new(text).is_ok() && text.split(',').all(has_level);
            valid.then(|| text.to_owned())
        },
    ))
}

/// Returns whether a directive has a level. `tracing` reads a word such as `verbose` as a module,
/// and would log nothing else.
fn has_level(directive: &str) -> bool {
    let directive = directive.trim();
    // A directive with brackets may be split at a comma, so it is accepted.
    directive.contains(['=', '[', ']']) || (!directive.is_empty() && directive.parse::<LevelFilter>().is_ok())
}

//! `[agents]`: the folder of agent definitions.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::values::filled;

/// Where agent definitions are read from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsConfig {
    /// A directory of `*.toml`, one agent each; it need not exist.
    #[serde(deserialize_with = "directory")]
    pub directory: PathBuf,
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    filled(deserializer).map(PathBuf::from)
}

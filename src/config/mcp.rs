//! `[mcp]`: the folder of MCP servers.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::values::filled;

/// Where the definitions of MCP servers are read from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// A directory of `*.toml`, one server each; it need not exist.
    #[serde(deserialize_with = "directory")]
    pub directory: PathBuf,
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    filled(deserializer).map(PathBuf::from)
}

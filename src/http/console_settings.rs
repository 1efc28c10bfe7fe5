//! The settings of the console: whether it is served, and from where.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use values::settings::optional_path;

/// How the console is served.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ConsoleSettings {
    /// Whether it is served; `None` serves it on loopback only.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// A directory with the files of the console, in place of those in the program.
    #[serde(deserialize_with = "optional_path")]
    pub directory: Option<PathBuf>,
}

impl ConsoleSettings {
    /// Returns whether a service that listens on the address serves the console.
    pub fn is_served(&self, listen: SocketAddr) -> bool {
        self.enabled.unwrap_or_else(|| listen.ip().is_loopback())
    }
}

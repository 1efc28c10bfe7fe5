//! `[board]`: the server through which replicas share the status, the events and the control
//! signals of live runs.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

use super::secrets::{SecretUrl, secret_url};
use values::settings::optional_path;

/// The server that replicas share.
#[derive(Clone, Debug, Deserialize)]
pub struct BoardConfig {
    /// `None` (an empty string in the file) uses the board inside this process.
    #[serde(deserialize_with = "board_url")]
    pub url: Option<SecretUrl>,
    /// The certificate authorities (PEM) that are trusted for it; `None` (an empty string) trusts
    /// the public ones.
    #[serde(deserialize_with = "optional_path")]
    pub ca_file: Option<PathBuf>,
}

fn board_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretUrl>, D::Error> {
    let url = secret_url(
        deserializer,
        &["", "redis", "rediss"],
        "\"\" or a URL such as \"redis://HOST:6379\", or \"rediss://HOST:6379\" for TLS",
    )?;
    Ok((!url.expose().is_empty()).then_some(url))
}

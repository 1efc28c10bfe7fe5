//! `[board]`: live run status and events shared between replicas.

use serde::{Deserialize, Deserializer};

use super::secrets::{SecretUrl, secret_url};

/// Live run status and events shared between replicas.
#[derive(Clone, Debug, Deserialize)]
pub struct BoardConfig {
    /// `None` (an empty string in the file) keeps the board inside this process.
    #[serde(deserialize_with = "board_url")]
    pub url: Option<SecretUrl>,
}

fn board_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretUrl>, D::Error> {
    let url = secret_url(
        deserializer,
        &["", "redis", "rediss"],
        "\"\" or a URL such as \"redis://HOST:6379\" or \"rediss://HOST:6379\"",
    )?;
    Ok((!url.expose().is_empty()).then_some(url))
}

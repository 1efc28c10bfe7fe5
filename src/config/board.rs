//! `[board]`: sharing the status, the events and the control signals of live runs between replicas.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::secrets::{SecretUrl, secret_url};
use super::values::duration;

/// Live run status, events and signals shared between replicas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardConfig {
    /// `None` (an empty string in the file) uses the board inside this process.
    #[serde(deserialize_with = "board_url")]
    pub url: Option<SecretUrl>,
    /// The certificate authorities (PEM) that are trusted for it; `None` (an empty string) trusts
    /// the public ones.
    #[serde(deserialize_with = "optional_path")]
    pub ca_file: Option<PathBuf>,
    /// How long the events of an ended run are retained, if there is room.
    #[serde(deserialize_with = "duration::<1_000, 604_800_000, _>")]
    pub event_retention: Duration,
    /// The most bytes, about, that the events of one run take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_run_event_bytes: usize,
    /// The most bytes, about, that the events of all runs in progress take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_live_event_bytes: usize,
    /// The most bytes, about, that the events of all ended runs take in this process.
    #[serde(deserialize_with = "super::values::integer::<_, 0, { i64::MAX }, _>")]
    pub max_ended_event_bytes: usize,
}

fn board_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretUrl>, D::Error> {
    let url = secret_url(
        deserializer,
        &["", "redis", "rediss"],
        "\"\" or a URL such as \"redis://HOST:6379\", or \"rediss://HOST:6379\" for TLS",
    )?;
    Ok((!url.expose().is_empty()).then_some(url))
}

fn optional_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = String::deserialize(deserializer)?;
    Ok((!path.trim().is_empty()).then(|| PathBuf::from(path.trim())))
}

//! `[store]`: where sessions and runs are kept.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::secrets::{SecretUrl, secret_url};
use super::values::{duration, integer};

/// Where sessions and runs are kept.
#[derive(Clone, Debug, Deserialize)]
pub struct StoreConfig {
    #[serde(deserialize_with = "store_url")]
    pub url: SecretUrl,
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_connections: u32,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub acquire_timeout: Duration,
    /// Memory for committed sessions; 0 keeps none.
    #[serde(deserialize_with = "integer::<_, 0, { i64::MAX }, _>")]
    pub cache_bytes: u64,
    /// The most bytes of each part of a session, as JSON: the messages that running it needs, its environment, its context.
    #[serde(deserialize_with = "integer::<_, 65_536, 268_435_456, _>")]
    pub max_session_bytes: usize,
    /// Applies pending migrations at start.
    pub migrate: bool,
}

/// The database engines that can carry the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreBackend {
    Sqlite,
    Postgres,
}

impl StoreConfig {
    pub fn backend(&self) -> StoreBackend {
        if self.url.expose().starts_with("sqlite:") {
            StoreBackend::Sqlite
        } else {
            StoreBackend::Postgres
        }
    }
}

fn store_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretUrl, D::Error> {
    secret_url(
        deserializer,
        &["sqlite", "postgres", "postgresql"],
        "a URL such as \"sqlite://data/agent-runtime.db\" or \"postgres://USER@HOST/DATABASE\"",
    )
}

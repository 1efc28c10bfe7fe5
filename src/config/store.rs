//! `[store]`: the database of sessions and runs.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::objects::ObjectsConfig;
use super::secrets::{SecretUrl, secret_url};
use super::values::{duration, integer};

/// The settings of the database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    #[serde(deserialize_with = "store_url")]
    pub url: SecretUrl,
    /// Where wake-ups are received, if `url` leads to a pooler.
    #[serde(deserialize_with = "listen_url")]
    pub listen_url: Option<SecretUrl>,
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_connections: u32,
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub acquire_timeout: Duration,
    /// The bytes of the cache of committed sessions; 0 disables the cache.
    #[serde(deserialize_with = "integer::<_, 0, { i64::MAX }, _>")]
    pub cache_bytes: u64,
    /// The most bytes of each part of a session, as JSON. The parts are the messages that a run
    /// needs, the environment and the context.
    #[serde(deserialize_with = "integer::<_, 65_536, 268_435_456, _>")]
    pub max_session_bytes: usize,
    /// Applies pending migrations at start.
    pub migrate: bool,
    pub objects: ObjectsConfig,
}

impl StoreConfig {
    /// Returns the URL of the store without its password. The path of an SQLite file is absolute,
    /// so the URL works from any folder.
    pub fn address(&self) -> String {
        let shown = self.url.to_string();
        let whole = shown.strip_prefix("sqlite://").and_then(|file| {
            let (path, query) = file.split_at(file.find('?').unwrap_or(file.len()));
            let path = std::path::absolute(path).ok()?;
            Some(format!("sqlite://{}{query}", path.display()))
        });
        whole.unwrap_or(shown)
    }
}

fn store_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretUrl, D::Error> {
    secret_url(
        deserializer,
        &["sqlite", "postgres", "postgresql"],
        "a URL such as \"sqlite://data/agent-runtime.db\" or \"postgres://USER@HOST/DATABASE\"",
    )
}

fn listen_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretUrl>, D::Error> {
    let url = secret_url(
        deserializer,
        &["postgres", "postgresql", ""],
        "\"\" or a URL such as \"postgres://USER@HOST/DATABASE\"",
    )?;
    Ok((!url.expose().is_empty()).then_some(url))
}

#[cfg(test)]
mod tests {
    use super::super::{Sources, load, parse_override};

    #[test]
    fn the_address_of_a_file_leads_there_from_any_folder() {
        let here = std::env::current_dir().unwrap();
        let here = here.display();
        for (url, address) in [
            ("sqlite://data/a.db", format!("sqlite://{here}/data/a.db")),
            ("sqlite://a.db?mode=rwc", format!("sqlite://{here}/a.db?mode=rwc")),
            ("sqlite:///var/a.db", "sqlite:///var/a.db".to_owned()),
            (
                "postgres://app:hunter2@db/x",
                "postgres://app:[redacted]@db/x".to_owned(),
            ),
        ] {
            let loaded = load(&Sources {
                overrides: vec![parse_override(&format!("store.url={url}")).unwrap()],
                ..Sources::default()
            });
            assert_eq!(loaded.unwrap().config.store.address(), address);
        }
    }
}

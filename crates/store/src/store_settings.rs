//! The settings of a store's connections. Values only.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::observer::StoreObserver;
use values::settings::{duration, integer, secret_text};

/// The settings of a store.
#[derive(Debug, Clone, Deserialize)]
pub struct StoreSettings {
    /// The most connections, at least one. SQLite has one more, for writing.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub max_connections: u32,
    /// How long an operation waits for a connection.
    #[serde(deserialize_with = "duration::<10, 600_000, _>")]
    pub acquire_timeout: Duration,
    /// Whether to run missing migrations first. If not, a missing file is not created either.
    pub migrate: bool,
    /// Where wake-ups are received, if the store's own address leads to a pooler that gives each
    /// transaction another session. PostgreSQL only.
    #[serde(deserialize_with = "listen_url")]
    pub listen_url: Option<SecretString>,
    /// Measures the operations; not a setting of users.
    #[serde(skip)]
    pub observer: Option<Arc<dyn StoreObserver>>,
}

fn listen_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    let wanted = "\"\" or a URL such as \"postgres://USER@HOST/DATABASE\"";
    secret_text(deserializer, wanted, |text| match text.trim() {
        "" => Some(None),
        url => {
            let (scheme, address) = url.split_once("://")?;
            let is_known = ["postgres", "postgresql"].contains(&scheme) && !address.is_empty();
            is_known.then(|| Some(SecretString::from(url)))
        }
    })
}

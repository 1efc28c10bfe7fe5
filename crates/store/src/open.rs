//! Opens a store by the address of its database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::contents::{ContentRules, ContentSettings};
use super::error::StoreError;
use super::objects::OpenObjectsError;
use super::postgres::{self, PostgresStore};
use super::sqlite::{self, SqliteStore};
use super::traits::Store;
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
}

/// The reason why a store can't be opened. Never contains the password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The scheme of the address is unknown.
    #[error("the store's address begins with none of sqlite://, postgres:// and postgresql://")]
    UnknownScheme,
    /// The address can't be parsed.
    #[error("the store's address can't be understood")]
    InvalidUrl {
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no such file.
    #[error(
        "there is no file {}: point to another store with --store-url or AGENT_RUNTIME__STORE__URL, or make this one with `agent-runtime migrate`",
        path.display()
    )]
    Missing {
        /// The path of the missing file.
        path: PathBuf,
    },
    /// The database does not respond or rejects the login.
    #[error("can't connect to {database}")]
    Connect {
        /// The database, without the password.
        database: String,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The object store can't be used.
    #[error(transparent)]
    Objects(#[from] OpenObjectsError),
    /// The database responds, but has another schema, or a migration failed.
    #[error(transparent)]
    Store(#[from] StoreError),
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

enum Engine {
    Postgres,
    Sqlite,
}

impl Engine {
    fn of(url: &str) -> Result<Self, OpenError> {
        match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            Some(("sqlite", _)) => Ok(Self::Sqlite),
            _ => Err(OpenError::UnknownScheme),
        }
    }
}

/// Opens the store at the address: `sqlite://PATH` or `postgres://…`. All contents are in the
/// database.
pub async fn open(url: &str, settings: StoreSettings) -> Result<Arc<dyn Store>, OpenError> {
    open_with(url, settings, &ContentSettings::default()).await
}

/// Opens the store at the address. Fails if it has contents in an object store and none is
/// configured.
pub async fn open_with(
    url: &str,
    settings: StoreSettings,
    contents: &ContentSettings,
) -> Result<Arc<dyn Store>, OpenError> {
    let rules = ContentRules::open(contents)?;
    let has_objects = rules.objects.is_some();
    if settings.migrate {
        migrate(url).await?;
    } else if let Some(path) = missing_file(url)? {
        return Err(OpenError::Missing { path });
    }
    let store: Arc<dyn Store> = match Engine::of(url)? {
        Engine::Postgres => Arc::new(PostgresStore::connect(url, &settings, rules).await?),
        Engine::Sqlite => Arc::new(SqliteStore::connect(url, &settings, rules).await?),
    };
    let checked = match store.health_check().await {
        Ok(()) if has_objects => Ok(()),
        Ok(()) => match store.content_needs_objects().await {
            Ok(false) => Ok(()),
            Ok(true) => Err(OpenObjectsError::NotConfigured.into()),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    };
    if let Err(error) = checked {
        store.close().await;
        return Err(error);
    }
    Ok(store)
}

/// Returns the file of the store at the address if the file does not exist. The database of a
/// server is assumed to exist.
pub fn missing_file(url: &str) -> Result<Option<PathBuf>, OpenError> {
    match Engine::of(url)? {
        Engine::Postgres => Ok(None),
        Engine::Sqlite => sqlite::missing_file(url),
    }
}

/// Runs the migrations that the database at the address lacks. Several processes may do so at the
/// same time.
pub async fn migrate(url: &str) -> Result<(), OpenError> {
    match Engine::of(url)? {
        Engine::Postgres => postgres::migrate(url).await,
        Engine::Sqlite => sqlite::migrate(url).await,
    }
}

//! Opens a store by the address of its database.

use std::path::PathBuf;
use std::sync::Arc;

use super::content_rules::{ContentRules, ContentSettings};
use super::objects::OpenObjectsError;
use super::open_error::OpenError;
use super::postgres::{self, PostgresStore};
use super::sql::{self, Observed};
use super::sqlite::{self, SqliteStore};
use super::store_settings::StoreSettings;
use super::traits::{Store, StoreHealth};

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
        Engine::Postgres => observed(PostgresStore::connect(url, &settings, rules).await?, &settings),
        Engine::Sqlite => observed(SqliteStore::connect(url, &settings, rules).await?, &settings),
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

fn observed(store: impl sql::Engine + StoreHealth, settings: &StoreSettings) -> Arc<dyn Store> {
    match &settings.observer {
        Some(observer) => Arc::new(Observed::new(store, Arc::clone(observer))),
        None => Arc::new(store),
    }
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

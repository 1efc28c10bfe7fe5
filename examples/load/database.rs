//! The databases that are measured: one of its own for each repeat of each group, so that each
//! begins with an empty one.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::postgres::PostgresDatabase;
use crate::sample::Sample;
use crate::sqlite::SqliteDatabase;

/// Where databases are created.
#[derive(Debug)]
pub(crate) enum Engine {
    /// On the server with this URL.
    Postgres(String),
    Sqlite,
}

/// A database.
#[derive(Debug)]
pub(crate) enum Database {
    Postgres(Box<PostgresDatabase>),
    Sqlite(SqliteDatabase),
}

impl Engine {
    /// Returns its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }

    /// Creates a database.
    pub(crate) async fn create(&self) -> Result<Database> {
        Ok(match self {
            Self::Postgres(server) => Database::Postgres(PostgresDatabase::create(server).await?.into()),
            Self::Sqlite => Database::Sqlite(SqliteDatabase::create()?),
        })
    }
}

impl Database {
    /// Returns the URL for the service.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url(None),
            Self::Sqlite(database) => database.url(),
        }
    }

    /// Describes the engine in one line.
    pub(crate) async fn describe(&self) -> Result<String> {
        match self {
            Self::Postgres(database) => database.describe().await,
            Self::Sqlite(_) => Ok("SQLite (WAL, synchronous FULL)".to_owned()),
        }
    }

    /// Returns the first process of the server, if it is on this machine.
    pub(crate) fn server_process(&self) -> Option<u32> {
        match self {
            Self::Postgres(database) => database.server_process,
            Self::Sqlite(_) => None,
        }
    }

    /// Measures single-row commits of 4 KB.
    pub(crate) async fn commit_limit(&self, clients: usize, window: Duration) -> Result<Sample> {
        match self {
            Self::Postgres(database) => database.commit_limit(clients, window).await,
            Self::Sqlite(database) => database.commit_limit(clients, window).await,
        }
    }

    /// Returns the database if it is on PostgreSQL.
    pub(crate) fn postgres(&self) -> Result<&PostgresDatabase> {
        match self {
            Self::Postgres(database) => Some(database.as_ref()),
            Self::Sqlite(_) => None,
        }
        .context("this is measured on PostgreSQL only")
    }

    /// Removes the database.
    pub(crate) async fn remove(self) -> Result<()> {
        match self {
            Self::Postgres(database) => database.remove().await,
            Self::Sqlite(_) => Ok(()),
        }
    }
}

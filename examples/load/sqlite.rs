//! A database on SQLite: a file in a temporary folder, with the durability that the
//! service uses.

use std::time::Duration;

use anyhow::Result;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::OnceCell;

use crate::postgres::{LIMIT_BYTES, noise};
use crate::sample::{Sample, repeat};

/// A file of its own.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    folder: tempfile::TempDir,
    /// Where the limit is measured. Stays open, since a write-ahead log that has its final size is
    /// written faster than one that grows.
    limit: OnceCell<SqlitePool>,
}

impl SqliteDatabase {
    /// Makes a folder for the file. /var/tmp is on a disk, so that a sync means something.
    pub(crate) fn create() -> Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir_in("/var/tmp")?,
            limit: OnceCell::new(),
        })
    }

    /// Returns the URL for the service.
    pub(crate) fn url(&self) -> String {
        format!("sqlite://{}", self.folder.path().join("service.db").display())
    }

    /// Measures single-row commits of 4 KB. SQLite has one writer, so one connection serves all
    /// clients.
    pub(crate) async fn commit_limit(&self, clients: usize, window: Duration) -> Result<Sample> {
        let writer = self.limit.get_or_try_init(|| self.open_limit()).await?.clone();
        repeat(clients, window, move |()| {
            let pool = writer.clone();
            async move {
                let insert = sqlx::query("insert into load_limit values ($1, $2)").bind(uuid::Uuid::now_v7());
                insert.bind(noise(LIMIT_BYTES)).execute(&pool).await?;
                Ok(())
            }
        })
        .await
    }

    async fn open_limit(&self) -> Result<SqlitePool> {
        let options = SqliteConnectOptions::new()
            .filename(self.folder.path().join("limit.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(30));
        let pool = pool.connect_with(options).await?;
        sqlx::query("create table load_limit (id blob primary key, payload blob not null) without rowid")
            .execute(&pool)
            .await?;
        Ok(pool)
    }
}

//! The database under load on SQLite: a file in a temporary folder, with the durability that the
//! service uses.

use std::time::Duration;

use anyhow::Result;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use crate::postgres::{LIMIT_BYTES, noise};
use crate::sample::{Sample, repeat};

/// A file of its own.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    folder: tempfile::TempDir,
}

impl SqliteDatabase {
    /// Makes a folder for the file. /var/tmp is on a disk, so that a sync means something.
    pub(crate) fn create() -> Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir_in("/var/tmp")?,
        })
    }

    /// Returns the URL for the service.
    pub(crate) fn url(&self) -> String {
        format!("sqlite://{}", self.folder.path().join("service.db").display())
    }

    /// Measures single-row commits of 4 KB. SQLite has one writer, so one connection serves all
    /// clients.
    pub(crate) async fn commit_limit(&self, clients: usize, window: Duration) -> Result<Sample> {
        let options = SqliteConnectOptions::new()
            .filename(self.folder.path().join("limit.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(Duration::from_secs(30));
        let pool = pool.connect_with(options).await?;
        sqlx::query("create table if not exists load_limit (id blob primary key, payload blob not null) without rowid")
            .execute(&pool)
            .await?;
        let writer = pool.clone();
        let sample = repeat(clients, window, move |()| {
            let pool = writer.clone();
            async move {
                let insert = sqlx::query("insert into load_limit values ($1, $2)").bind(uuid::Uuid::now_v7());
                insert.bind(noise(LIMIT_BYTES)).execute(&pool).await?;
                Ok(())
            }
        });
        let sample = sample.await?;
        pool.close().await;
        Ok(sample)
    }
}

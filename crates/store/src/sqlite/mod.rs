//! The store on SQLite: one file, one connection that writes, and read-only connections that never
//! wait for it.
//!
//! The committer executes all writes, in batches. A cancelled caller can't leave a transaction
//! open.

mod connect;
mod file;
mod migrate;

mod commit;
mod contents;
mod engine;
mod progress;
mod queue;
mod spend;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::Semaphore;

pub(crate) use self::connect::missing_file;
use self::file::StoreFile;
pub(crate) use self::migrate::migrate;
use self::writer::SqliteWriter;
use super::content_rules::ContentRules;
use super::error::StoreError;
use super::observer::Connections;
use super::sql::{CHECK_WRITE, Ended, Engine as _, Statement, check_schema};
use super::traits::StoreHealth;
use super::wake_ups::{CommandWakeUps, WakeUps};
use tasks::fair_share::FairShare;

/// The store on SQLite.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    /// The file that the connections have open.
    file: StoreFile,
    /// Read-only connections.
    readers: SqlitePool,
    /// Limits the connections of reads that wait to decode.
    waiting_reads: Arc<FairShare>,
    /// Limits the connections that persist progress.
    progress_writes: Semaphore,
    /// The rules for contents.
    contents: ContentRules,
    /// Executes writes in batches, on the only connection that writes.
    writer: SqliteWriter,
    /// Wakes the workers of this process.
    wake_ups: Arc<WakeUps>,
    /// Wakes workers that run commands, and callers that wait for them, in this process.
    command_wake_ups: CommandWakeUps,
}

impl SqliteStore {
    /// Executes a write in a transaction that it may share with others, to its end even if the
    /// caller is cancelled meanwhile. Refuses the write if the file is no longer at its path.
    async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
    {
        self.file.check(operation)?;
        self.writer.write(operation, work).await
    }
}

#[async_trait]
impl StoreHealth for SqliteStore {
    fn engine(&self) -> &'static str {
        "sqlite"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn connections(&self) -> Connections {
        Connections::of_pool(self.readers.size(), self.readers.num_idle())
    }

    async fn health_check(&self) -> Result<(), StoreError> {
        self.file.check("check health")?;
        check_schema(self).await
    }

    async fn write_check(&self) -> Result<(), StoreError> {
        // About the bytes that the end of a turn writes. A smaller write finds room in the
        // write-ahead log when that has none for others any more.
        let writes = [
            "delete from write_checks",
            "insert into write_checks (filler) values (zeroblob(65536))",
        ];
        self.transact(CHECK_WRITE, move |mut connection| {
            Box::pin(async move {
                for write in writes {
                    connection.execute(Statement::new(CHECK_WRITE, write)).await?;
                }
                Ok(Ended::Committed(()))
            })
        })
        .await
    }

    async fn close(&self) {
        self.readers.close().await;
        // Closes last, since the last connection writes the log back to the file.
        self.writer.close().await;
    }
}

//! The store on SQLite: one file, one connection that writes, and read-only connections that never
//! wait for it.
//!
//! Writes run in separate tasks, so a cancelled caller can't leave a transaction open.

mod connect;
mod file;
mod migrate;

mod commit;
mod contents;
mod engine;
mod queue;

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::SqlitePool;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub(crate) use self::connect::missing_file;
use self::file::StoreFile;
pub(crate) use self::migrate::migrate;
use super::content_settings::ContentRules;
use super::error::StoreError;
use super::sql::check_schema;
use super::traits::StoreHealth;
use super::wake_ups::{CommandWakeUps, WakeUps};
use crate::fair_share::FairShare;

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
    /// What applies to contents.
    contents: ContentRules,
    /// The one connection that writes.
    writer: SqlitePool,
    /// Writes in flight.
    tasks: TaskTracker,
    /// Wakes the workers of this process.
    wake_ups: Arc<WakeUps>,
    /// Wakes those of this process who run commands or wait for them.
    command_wake_ups: CommandWakeUps,
}

impl SqliteStore {
    /// Runs a write to its end, even if the caller is cancelled. Refuses the write if the file is
    /// no longer at its path.
    async fn write<T, E>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.file.check(operation)?;
        self.tasks
            .spawn(work.in_current_span())
            .await
            .map_err(StoreError::failed(operation))?
    }
}

#[async_trait]
impl StoreHealth for SqliteStore {
    async fn health_check(&self) -> Result<(), StoreError> {
        self.file.check("check health")?;
        check_schema(self).await
    }

    async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.readers.close().await;
        // Closes last, since the last connection writes the log back to the file.
        self.writer.close().await;
    }
}

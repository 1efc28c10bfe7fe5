//! The store on PostgreSQL 15 or newer.
//!
//! Most operations are one or two prepared statements in autocommit. A commit is a single statement
//! with data-modifying parts, which the committer shares with other commits: it is atomic and takes
//! one round trip. An operation of several statements, such as the commit of a run on a thread, is
//! a transaction in a separate task. So a cancelled caller can't leave a transaction open on a
//! pooled connection.

mod connect;
mod migrate;

mod arrays;
mod batch_write;
mod commit;
mod commit_batch;
mod commit_statement;
mod committer;
mod contents;
mod engine;
mod own_connection;
mod progress;
mod queue;
mod removal;
mod server_settings;
mod spend;
mod statistics;
mod timeouts;
mod wake_ups;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::committer::PostgresCommitter;
pub(crate) use self::migrate::migrate;
use self::wake_ups::QueueWakeUps;
use super::content_rules::ContentRules;
use super::error::{StoreError, Unavailability};
use super::observer::Connections;
use super::sql::{CHECK_WRITE, Ended, Engine as _, Statement, check_schema};
use super::traits::StoreHealth;
use tasks::fair_share::FairShare;
use tasks::keyed::Turns;
use values::tenant::TenantId;

/// The store on PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pool: PgPool,
    /// Whether the database took no writes when the store was opened, and none since then.
    is_standby: AtomicBool,
    /// Limits the connections of reads that wait to decode.
    waiting_reads: Arc<FairShare>,
    /// Limits the connections that persist progress.
    progress_writes: Semaphore,
    /// The rules for contents.
    contents: ContentRules,
    /// Executes frequent writes in batches.
    committer: PostgresCommitter,
    /// Transactions in flight.
    tasks: TaskTracker,
    wake_ups: Arc<QueueWakeUps>,
    /// Turns of a tenant or a thread whose runs are accepted one by one. A run waits for its turn
    /// before it takes a connection.
    accepting: Turns<(TenantId, String)>,
}

#[async_trait]
impl StoreHealth for PostgresStore {
    fn engine(&self) -> &'static str {
        "postgres"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn connections(&self) -> Connections {
        Connections::of_pool(self.pool.size(), self.pool.num_idle())
    }

    async fn health_check(&self) -> Result<(), StoreError> {
        check_schema(self).await
    }

    async fn write_check(&self) -> Result<(), StoreError> {
        // It is rolled back, so the database need not wait for its disk. But it needs room.
        let write = "insert into write_checks (filler) values (decode(repeat('00', 8192), 'hex'))";
        let checked = self.transact(CHECK_WRITE, move |mut connection| {
            Box::pin(async move {
                connection.execute(Statement::new(CHECK_WRITE, write)).await?;
                Ok(Ended::RolledBack(()))
            })
        });
        match checked.await {
            Err(StoreError::Unavailable {
                reason: Unavailability::ReadOnly,
                ..
            }) if self.is_standby.load(Ordering::Relaxed) => Ok(()),
            Ok(()) => {
                // A promoted standby is a database like any other.
                self.is_standby.store(false, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.committer.close().await;
        // The tasks may send wake-ups until they end.
        self.wake_ups.close().await;
        self.pool.close().await;
    }
}

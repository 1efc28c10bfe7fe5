//! The store on PostgreSQL 15 or newer.
//!
//! Every operation is one or two prepared statements in autocommit. A plain commit is one statement
//! with data-modifying CTEs. So it is atomic and takes one round trip, and a cancelled caller can't
//! leave a transaction open on a pooled connection. An operation of several statements, such as the
//! commit of a queued run, is a transaction in its own task, which no caller can cancel.

mod connect;
mod migrate;

mod commit;
mod engine;
mod patience;
mod queue;
mod removal;
mod wake_ups;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::PgPool;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub(crate) use self::migrate::migrate;
use self::wake_ups::QueueWakeUps;
use super::migration::check_version;
use super::sql::schema_version;
use super::traits::{StoreFuture, StoreHealth};
use super::turns::Turns;
use crate::fair_share::FairShare;
use crate::tenant::TenantId;

/// The store on PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pool: PgPool,
    /// The connections of reads that wait for processors.
    waiting_reads: Arc<FairShare>,
    /// The connections that persist progress.
    progress_writes: Semaphore,
    /// Transactions under way.
    tasks: TaskTracker,
    wake_ups: Arc<QueueWakeUps>,
    /// Turns of runs that are accepted under a lock, of a tenant or of a thread: they wait before they take connections.
    accepting: Arc<Turns<(TenantId, String)>>,
}

impl StoreHealth for PostgresStore {
    fn health_check(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { check_version(schema_version(self).await?) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
            // They have been asked for wake-ups up to their end.
            self.wake_ups.close().await;
            self.pool.close().await;
        })
    }
}

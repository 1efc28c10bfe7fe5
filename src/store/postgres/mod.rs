//! The store on PostgreSQL 15 or newer.
//!
//! Every operation is one or two statements in autocommit, prepared and cached: a commit is a single statement with data-modifying
//! parts, so it is atomic, takes one round trip, and a caller that goes away can't leave a transaction open on a pooled connection. A
//! commit of several sessions is a transaction in a task of its own, which no caller can cancel.

mod connect;
mod migrate;

mod commit;
mod engine;

use futures_util::future::BoxFuture;
use sqlx::PgPool;
use tokio_util::task::TaskTracker;

pub(crate) use self::migrate::migrate;
use super::migration::check_version;
use super::sql::schema_version;
use super::traits::{StoreFuture, StoreHealth};

/// The store on PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pool: PgPool,
    /// Transactions under way.
    tasks: TaskTracker,
}

impl StoreHealth for PostgresStore {
    fn health_check(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { check_version(schema_version(self).await?) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
            self.pool.close().await;
        })
    }
}

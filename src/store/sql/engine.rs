//! What the shared statements need of an engine.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use tokio::sync::Semaphore;

use super::connection::{Connection, Ended};
use super::engine_row::{EngineRow, Tally};
use super::new_version::NewVersion;
use super::queue::Attempt;
use super::statement::Statement;
use crate::fair_share::FairShare;
use crate::store::driver_error::store_error;
use crate::store::error::{StoreError, StoreFuture};
use crate::store::new_queued_run::NewQueueRow;
use crate::store::queue::{LeaseChoice, LeaseTerms};
use crate::store::rows::LeasedRunRow;

/// Returns half of the connections, at least one, so that one kind of work leaves connections to
/// the others.
pub(crate) fn half_of(max_connections: u32) -> usize {
    let half = usize::try_from(max_connections / 2).unwrap_or(usize::MAX);
    half.max(1)
}

/// A database that runs the shared statements.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Ends a search for rows that the same statement changes: skips locked ones.
    const SKIP_LOCKED: &'static str;
    /// Ends a search for a row that must not change until the transaction has ended. Waits for a
    /// transaction that removes the row.
    const SHARE: &'static str;
    /// Ends a search for a row that no other transaction may share or change until this one has
    /// ended.
    const LOCK: &'static str;
    /// Narrows a list `next` of states to those that no commit in flight uses. Later commits that
    /// use them wait until the transaction has ended.
    const UNUSED: &'static str;
    /// Reads the database time.
    const TIME: &'static str;

    /// The recursive table `tree` of what would be removed with the session `$2` of the tenant
    /// `$1`: itself, its descendants, also removed ones, and their subagents. `family` is 1 where
    /// only subagents lead to it.
    const TREE: &'static str;

    /// Joined to a row of `pair`: its oldest deliveries `d` that meet `due_in_pair!`, with a
    /// `where` clause at the end.
    const OLDEST_OF_PAIR: &'static str;

    /// Returns the connections that reads may hold while they wait to decode.
    fn waiting_reads(&self) -> &Arc<FairShare>;

    /// Returns the connections that may persist the progress of runs at a time. The others are for
    /// renewing leases.
    fn progress_writes(&self) -> &Semaphore;

    /// Reads rows as they come.
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>>;

    /// Reads one row or none.
    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>>;

    /// Runs one statement that writes; returns the number of rows that it changed.
    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64>;

    /// Runs one statement that writes and returns rows.
    fn execute_returning(&self, statement: Statement<'_>) -> StoreFuture<'_, Vec<EngineRow>>;

    /// Runs statements in one transaction that no caller cancels, and sums the rows of each: a
    /// count and bytes.
    fn remove(&self, statements: Vec<Statement<'_>>) -> StoreFuture<'_, Vec<Tally>>;

    /// Inserts a version that is not stored yet and makes it the current one of its name, in one
    /// transaction.
    fn current_version_insert(&self, version: &NewVersion<'_>) -> StoreFuture<'_, ()>;

    /// Runs several statements as one transaction that no caller can cancel.
    fn transact<T, F>(&self, operation: &'static str, work: F) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static;

    /// Accepts a run: its rows and its key, in one transaction.
    fn run_insert(&self, row: NewQueueRow) -> StoreFuture<'_, Attempt>;

    /// Leases the chosen runs, in no order.
    fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> StoreFuture<'_, Vec<LeasedRunRow>>;

    /// Returns a stream of wake-ups for workers.
    fn wake_ups(&self) -> BoxStream<'static, ()>;

    /// Joins the segments `h` that meet `segment_condition!` to the rows `s` of a search that have
    /// no `rest`.
    fn push_segments_join(select: &mut Statement<'_>);

    /// Narrows a list of sessions to those with all of these pairs, a JSON object, at the top of
    /// their metadata.
    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str);
}

impl Statement<'_> {
    /// Reads all rows.
    pub(crate) async fn fetch_all<R>(self, engine: &impl Engine) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send,
    {
        let failed = store_error(self.operation());
        let rows = engine.fetch(self).map(|row| row?.read());
        rows.try_collect().await.map_err(failed)
    }

    /// Reads one row or none.
    pub(crate) async fn fetch_optional<R>(self, engine: &impl Engine) -> Result<Option<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        let failed = store_error(self.operation());
        let row = engine.fetch_optional(self).await.map_err(&failed)?;
        row.as_ref().map(EngineRow::read).transpose().map_err(failed)
    }

    /// Runs a statement that writes; returns the number of rows that it changed.
    pub(crate) async fn execute(self, engine: &impl Engine) -> Result<u64, StoreError> {
        engine.execute(self).await
    }

    /// Runs a statement that writes; reads the rows that it returns.
    pub(crate) async fn execute_returning<R>(self, engine: &impl Engine) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        let failed = store_error(self.operation());
        let rows = engine.execute_returning(self).await?;
        rows.iter().map(|row| row.read().map_err(&failed)).collect()
    }
}

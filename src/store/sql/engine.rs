//! What the shared statements require of an engine.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use tokio::sync::Semaphore;

use super::agents::NewVersion;
use super::connection::{Connection, Ended};
use super::queue::Attempt;
use super::statement::Statement;
use crate::fair_share::FairShare;
use crate::store::new_queued_run::NewQueueRow;
use crate::store::queue::{LeaseChoice, LeaseTerms};
use crate::store::rows::LeasedRunRow;
use crate::store::traits::StoreFuture;

/// Returns half of the connections, and one at least: one kind of work leaves the others to the rest.
pub(crate) fn half_of(max_connections: u32) -> usize {
    let half = usize::try_from(max_connections / 2).unwrap_or(usize::MAX);
    half.max(1)
}

/// A database that runs the shared statements.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Ends a search for rows that the same statement changes: those that another one is changing are left out.
    const SKIP_LOCKED: &'static str;
    /// Ends a search for a row that must stay as it is until the statement, or its transaction, has ended. Where somebody removes the
    /// row, it waits for the end of that.
    const SHARE: &'static str;
    /// Ends a search for a row that nobody else may share or change until the transaction has ended.
    const LOCK: &'static str;
    /// Narrows a search for states, by their `hash`, to those that no commit under way may use; until the transaction has ended, such
    /// commits wait.
    const UNUSED: &'static str;
    /// Reads the database's time.
    const TIME: &'static str;

    /// The recursive table `tree` of what would go with the session `$2` of the tenant `$1`: itself, those that continue it, kept or
    /// not, and their subagents. `family` is 1 where only subagents lead to it.
    const TREE: &'static str;

    /// Joined to a row of `pair`: its oldest deliveries `d` that meet `due_in_pair!`, with a `where` clause at the end.
    const OLDEST_OF_PAIR: &'static str;

    /// Returns the connections that reads may hold while they wait for processors.
    fn waiting_reads(&self) -> &Arc<FairShare>;

    /// Returns the connections that progress of runs may be persisted with at a time. Leases are renewed with others.
    fn progress_writes(&self) -> &Semaphore;

    /// Reads rows as they come.
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>>;

    /// Reads one row or none.
    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>>;

    /// Runs one statement that writes; returns the number of rows that it changed.
    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64>;

    /// Runs one statement that writes and returns rows.
    fn execute_returning(&self, statement: Statement<'_>) -> StoreFuture<'_, Vec<EngineRow>>;

    /// Runs statements in one transaction that no caller cancels, and adds up the rows that each returns: a number and bytes.
    fn remove(&self, statements: Vec<Statement<'_>>) -> StoreFuture<'_, Vec<Tally>>;

    /// Inserts a version that is not stored yet and makes it the current one of its name: both or nothing.
    fn current_version_insert(&self, version: &NewVersion<'_>) -> StoreFuture<'_, ()>;

    /// Runs several statements as one transaction that no caller can cancel.
    fn transact<T, F>(&self, operation: &'static str, work: F) -> StoreFuture<'_, T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static;

    /// Accepts a run: its rows and its key, all or nothing.
    fn run_insert(&self, row: NewQueueRow) -> StoreFuture<'_, Attempt>;

    /// Leases the chosen runs, in no order.
    fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> StoreFuture<'_, Vec<LeasedRunRow>>;

    /// Returns a wake-up for whenever workers may have something to do.
    fn wake_ups(&self) -> BoxStream<'static, ()>;

    /// Joins the segments `h` that meet `segment_condition!` to the rows `s` of a search that have no `rest`.
    fn push_segments_join(select: &mut Statement<'_>);

    /// Narrows a list of sessions to those with all of these pairs, a JSON object, at the top of their metadata.
    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str);
}

/// What a statement has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many.
    pub(crate) count: i64,
    /// The bytes of their payloads.
    pub(crate) bytes: i64,
}

impl Tally {
    /// Adds up rows of a number and bytes.
    pub(crate) fn of(rows: &[EngineRow]) -> Result<Self, sqlx::Error> {
        let mut tally = Self::default();
        for row in rows {
            let (count, bytes): (i64, i64) = row.read()?;
            tally.count += count;
            tally.bytes += bytes;
        }
        Ok(tally)
    }
}

/// A row of either engine.
pub(crate) enum EngineRow {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

impl EngineRow {
    /// Reads the columns.
    pub(crate) fn read<'r, R>(&'r self) -> Result<R, sqlx::Error>
    where
        R: FromRow<'r, PgRow> + FromRow<'r, SqliteRow>,
    {
        match self {
            Self::Postgres(row) => R::from_row(row),
            Self::Sqlite(row) => R::from_row(row),
        }
    }
}

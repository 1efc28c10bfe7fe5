//! The interface between the shared statements and an engine.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use tokio::sync::Semaphore;

use super::attempt::Attempt;
use super::connection::{Connection, Ended};
use super::engine_row::{EngineRow, Tally};
use super::refusal::{CommitOutcome, Refusal};
use super::removal_act::RemovalAct;
use super::reservation::{Decided, NewReservation};
use super::statement::Statement;
use crate::commands::CommandWakeUp;
use crate::content_rules::ContentRules;
use crate::driver_error::store_error;
use crate::error::StoreError;
use crate::new_acceptance::NewAcceptance;
use crate::new_commit::{NewCommit, NewSession};
use crate::new_end::NewEnd;
use crate::new_progress::NewProgress;
use crate::queue::{LeaseChoice, LeaseTerms};
use crate::rows::{LeaseKey, LeasedRunRow, NewContentRow, RenewedContentRow};
use tasks::fair_share::FairShare;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// Returns half of the number of connections, at least one. One kind of work may use as many, so
/// that it leaves connections for others.
pub(crate) fn half_of(max_connections: u32) -> usize {
    let half = usize::try_from(max_connections / 2).unwrap_or(usize::MAX);
    half.max(1)
}

/// A database that runs the shared statements.
#[async_trait]
pub(crate) trait Engine: fmt::Debug + Send + Sync + 'static {
    /// Ends the selection of rows that the same statement changes. Skips locked rows.
    const SKIP_LOCKED: &'static str;
    /// Ends the selection of a row that must not change until the transaction has ended. Waits for
    /// a transaction that removes the row.
    const SHARE: &'static str;
    /// Ends the selection of a row that no other transaction may share or change until this one has
    /// ended.
    const LOCK: &'static str;
    /// Restricts a list `next` of states to states that no commit in flight uses. A later commit
    /// that uses one of them waits until the transaction has ended.
    const UNUSED: &'static str;
    /// Reads the database time.
    const TIME: &'static str;
    /// Ends the condition that a hash is among those in `$2`. Finds rows by index lookups.
    const LISTED: &'static str;

    /// The recursive table `tree` of the sessions that would be removed with session `$2` of tenant
    /// `$1`. These are the session itself, its descendants, including removed ones, and their
    /// subagents' sessions. `family` is 1 for the session itself and the sessions of its own
    /// subagents.
    const TREE: &'static str;

    /// A common table expression that follows `tree`: `figures`, with the figures of the newest
    /// sessions of each tree, as `newest_of_tree!` selects them.
    const TREE_FIGURES: &'static str;

    /// Joins `figures` to the oldest session `s` of each tree, as `oldest_of_tree!` selects it.
    const OLDEST_OF_TREE: &'static str;

    /// Begins a further condition on a column. The planner should read the index of another
    /// condition, unless it knows how many rows each of them has.
    const AND_UNINDEXED: &'static str;

    /// Joins a row of `pair` to its oldest deliveries `d`, as `due_in_pair!` selects them. Ends
    /// with a `where` clause.
    const OLDEST_OF_PAIR: &'static str;

    /// Returns the pool of connections that reads may hold while they wait to decode.
    fn waiting_reads(&self) -> &Arc<FairShare>;

    /// Limits the connections that persist the progress of runs at the same time. The other
    /// connections stay free to renew leases.
    fn progress_writes(&self) -> &Semaphore;

    /// Returns the rules for contents.
    fn content_rules(&self) -> &ContentRules;

    /// Streams rows as they arrive.
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>>;

    /// Reads one row or none.
    async fn fetch_optional(&self, statement: Statement<'_>) -> Result<Option<EngineRow>, sqlx::Error>;

    /// Runs one statement that writes; returns the number of rows that it changed.
    async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError>;

    /// Runs one statement that writes and returns rows.
    async fn execute_returning(&self, statement: Statement<'_>) -> Result<Vec<EngineRow>, StoreError>;

    /// Runs statements in one transaction that no caller can cancel. Sums the rows of each
    /// statement: a count and bytes. Records the act; if its statement has no rows, it is not done,
    /// and nothing is changed.
    async fn remove(&self, statements: Vec<Statement<'_>>, act: Option<RemovalAct>) -> Result<Vec<Tally>, StoreError>;

    /// Runs several statements as one transaction that no caller can cancel.
    async fn transact<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static;

    /// Accepts a run: its rows and its key, in one transaction.
    async fn run_accept(&self, row: NewAcceptance) -> Result<Attempt, StoreError>;

    /// Inserts the progress of a run. Returns whether the lease is in force.
    async fn progress_insert(&self, progress: NewProgress) -> Result<bool, StoreError>;

    /// Writes a commit: its sessions, and the end of its run.
    async fn commit_write(&self, commit: NewCommit) -> Result<CommitOutcome, StoreError>;

    /// Inserts a session and ends its run, in a transaction that has locked the row of a run in
    /// the queue.
    async fn session_insert_on_conn(
        connection: &mut Connection<'_>,
        session: &NewSession,
        end: Option<&NewEnd>,
    ) -> Result<BranchPosition, Refusal>;

    /// Ends a run without a session, in a transaction that has locked its row in the queue.
    async fn run_end_on_conn(
        connection: &mut Connection<'_>,
        tenant: &TenantId,
        lease: &LeaseKey,
        end: &NewEnd,
    ) -> Result<(), sqlx::Error>;

    /// Leases the chosen runs, in no order.
    async fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> Result<Vec<LeasedRunRow>, StoreError>;

    /// Decides about a reservation, and makes it.
    async fn spend_take(&self, reservation: &NewReservation) -> Result<Decided, StoreError>;

    /// Inserts contents, which are in the order of their hashes. If a content is stored already,
    /// updates the time of its last write.
    async fn contents_insert(&self, tenant: &TenantId, rows: Vec<NewContentRow>) -> Result<(), StoreError>;

    /// Returns those contents that are stored. Updates the time of their last write.
    async fn contents_renew(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<RenewedContentRow>, StoreError>;

    /// Returns a stream of wake-ups for workers.
    fn wake_ups(&self) -> BoxStream<'static, ()>;

    /// Wakes workers that run commands, and callers that wait for them, in all processes.
    fn send_command_wake_up(&self, wake_up: CommandWakeUp);

    /// Returns a stream of the wake-ups about commands.
    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp>;

    /// Joins the finished rows `s` of a search (`rest` is 0) to the segments `h` that meet
    /// `segment_condition!`.
    fn push_segments_join(select: &mut Statement<'_>);

    /// Restricts a list of sessions to those whose metadata has all pairs of a JSON object at its
    /// top level.
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

    /// Reads one row or none, and converts it to its domain value.
    pub(crate) async fn find<R, T>(self, engine: &impl Engine) -> Result<Option<T>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
        T: TryFrom<R, Error = StoreError>,
    {
        let row: Option<R> = self.fetch_optional(engine).await?;
        row.map(T::try_from).transpose()
    }

    /// Reads all rows, and converts each to its domain value.
    pub(crate) async fn list<R, T>(self, engine: &impl Engine) -> Result<Vec<T>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send,
        T: TryFrom<R, Error = StoreError>,
    {
        let rows: Vec<R> = self.fetch_all(engine).await?;
        rows.into_iter().map(T::try_from).collect()
    }

    /// Runs a statement that writes; returns the number of rows that it changed.
    pub(crate) async fn execute(self, engine: &impl Engine) -> Result<u64, StoreError> {
        engine.execute(self).await
    }

    /// Runs a statement that writes, and returns its rows.
    pub(crate) async fn execute_returning<R>(self, engine: &impl Engine) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        let failed = store_error(self.operation());
        let rows = engine.execute_returning(self).await?;
        rows.iter().map(|row| row.read().map_err(&failed)).collect()
    }
}

//! Runs the shared statements on PostgreSQL, each in autocommit on any connection of the pool.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::Postgres;
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::commit::{commit_write, run_end_on_conn, session_insert_on_conn};
use super::contents::{contents_insert, contents_renew};
use super::progress::progress_insert;
use super::queue::{run_accept, run_lease};
use super::spend::spend_take;
use super::timeouts::{each_in_time, in_time};
use super::{PostgresStore, removal};
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
use crate::sql::{
    Attempt, CommitOutcome, Connection, Decided, Ended, Engine, EngineRow, NewReservation, Refusal, RemovalAct,
    Statement, Tally, due_in_pair, first_threads, newest_of_tree, oldest_of_tree, segment_condition,
};
use tasks::fair_share::FairShare;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

#[async_trait]
impl Engine for PostgresStore {
    const SKIP_LOCKED: &'static str = " for no key update skip locked";
    const SHARE: &'static str = " for share";
    const LOCK: &'static str = " for update";
    const UNUSED: &'static str = " where exists (
                select 1 from states s where s.tenant = next.tenant and s.hash = next.hash for update skip locked)
            or not exists (select 1 from states s where s.tenant = next.tenant and s.hash = next.hash)";
    const TIME: &'static str = "select clock_timestamp()";
    const LISTED: &'static str = " = any ($2)";

    const TREE: &'static str = "with recursive tree (session_id, level, family) as (
            select $2, 0, 1
            union
            select e.session_id, t.level + 1, e.family
            from tree t cross join lateral (
                select k.session_id, 0 as family from sessions k
                where k.tenant = $1 and k.parent_session_id = t.session_id
                union all
                select k.session_id, 0 from removed_sessions k
                where k.tenant = $1 and k.parent_session_id = t.session_id
                union all
                select k.session_id, t.family from sessions k
                where k.tenant = $1 and k.subagent_of = t.session_id
            ) e
        )";

    const TREE_FIGURES: &'static str = concat!(
        ", figures as (
            select tree.root_session_id, newest.session_count, newest.last_activity_at, newest.threads
            from tree cross join lateral (
                with n as materialized (",
        newest_of_tree!(),
        ")
                select count(*) as session_count, max(n.created_at) as last_activity_at, ",
        first_threads!("n"),
        " as threads from n
            ) newest
        )"
    );

    /// The limit makes the server look up the session of each tree. Without it, the server may read
    /// all sessions of the tenant and join them to the trees: it expects a lookup to cost twice as
    /// much if there are pages that no `vacuum` has seen.
    const OLDEST_OF_TREE: &'static str = concat!(
        " cross join lateral (select * from sessions s where ",
        oldest_of_tree!(),
        " limit 1) s"
    );

    const AND_UNINDEXED: &'static str = " and ";

    const OLDEST_OF_PAIR: &'static str = concat!(
        "lateral (select tenant, delivery_id, due_at from webhook_deliveries where ",
        due_in_pair!(),
        ") d where true"
    );

    fn waiting_reads(&self) -> &Arc<FairShare> {
        &self.waiting_reads
    }

    fn progress_writes(&self) -> &Semaphore {
        &self.progress_writes
    }

    fn content_rules(&self) -> &ContentRules {
        &self.contents
    }

    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let rows = statement.into_query::<Postgres>().fetch(&self.pool);
        each_in_time(rows.map_ok(EngineRow::Postgres).boxed())
    }

    async fn fetch_optional(&self, statement: Statement<'_>) -> Result<Option<EngineRow>, sqlx::Error> {
        let row = in_time(statement.into_query::<Postgres>().fetch_optional(&self.pool)).await?;
        Ok(row.map(EngineRow::Postgres))
    }

    async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let failed = store_error(statement.operation());
        let query = statement.into_query::<Postgres>();
        let done = in_time(query.execute(&self.pool)).await.map_err(failed)?;
        Ok(done.rows_affected())
    }

    async fn execute_returning(&self, statement: Statement<'_>) -> Result<Vec<EngineRow>, StoreError> {
        let failed = store_error(statement.operation());
        let query = statement.into_query::<Postgres>();
        let rows = in_time(query.fetch_all(&self.pool)).await.map_err(failed)?;
        Ok(rows.into_iter().map(EngineRow::Postgres).collect())
    }

    async fn remove(&self, statements: Vec<Statement<'_>>, act: Option<RemovalAct>) -> Result<Vec<Tally>, StoreError> {
        let operation = statements.first().map_or("remove", Statement::operation);
        let queries: Vec<_> = statements.into_iter().map(Statement::into_query).collect();
        let removing = self.tasks.spawn(removal::remove(self.pool.clone(), queries, act));
        let removed = removing.await.map_err(StoreError::failed(operation))?;
        removed.map_err(store_error(operation))
    }

    async fn transact<T, F>(&self, operation: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Connection<'c>) -> BoxFuture<'c, Result<Ended<T>, sqlx::Error>> + Send + 'static,
    {
        let (pool, wake_ups) = (self.pool.clone(), Arc::clone(&self.wake_ups));
        let work = Box::pin(async move {
            let mut transaction = pool.begin().await?;
            match work(Connection::Postgres(&mut transaction)).await? {
                Ended::Committed(value) => transaction.commit().await.map(|()| value),
                Ended::CommittedForWorkers(value) => wake_ups.commit(transaction).await.map(|()| value),
                Ended::RolledBack(value) => transaction.rollback().await.map(|()| value),
            }
        });
        // Runs in a task, so that no caller can cancel it: a transaction that is cancelled while it
        // begins would stay open on its connection.
        let task = self.tasks.spawn(in_time(work).in_current_span());
        let done = task.await.map_err(StoreError::failed(operation))?;
        done.map_err(store_error(operation))
    }

    async fn run_accept(&self, row: NewAcceptance) -> Result<Attempt, StoreError> {
        Box::pin(run_accept(self, row)).await
    }

    async fn progress_insert(&self, progress: NewProgress) -> Result<bool, StoreError> {
        progress_insert(self, progress).await
    }

    async fn commit_write(&self, commit: NewCommit) -> Result<CommitOutcome, StoreError> {
        Box::pin(commit_write(self, commit)).await
    }

    async fn session_insert_on_conn(
        connection: &mut Connection<'_>,
        session: &NewSession,
        end: Option<&NewEnd>,
    ) -> Result<BranchPosition, Refusal> {
        session_insert_on_conn(connection.postgres()?, session, end).await
    }

    async fn run_end_on_conn(
        connection: &mut Connection<'_>,
        tenant: &TenantId,
        lease: &LeaseKey,
        end: &NewEnd,
    ) -> Result<(), sqlx::Error> {
        run_end_on_conn(connection.postgres()?, tenant, lease, end).await
    }

    async fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> Result<Vec<LeasedRunRow>, StoreError> {
        run_lease(self, terms, choice).await
    }

    async fn spend_take(&self, reservation: &NewReservation) -> Result<Decided, StoreError> {
        spend_take(self, reservation).await
    }

    async fn contents_insert(&self, tenant: &TenantId, rows: Vec<NewContentRow>) -> Result<(), StoreError> {
        contents_insert(self, tenant, rows).await
    }

    async fn contents_renew(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<RenewedContentRow>, StoreError> {
        contents_renew(self, tenant, hashes).await
    }

    fn wake_ups(&self) -> BoxStream<'static, ()> {
        self.wake_ups.stream()
    }

    fn send_command_wake_up(&self, wake_up: CommandWakeUp) {
        self.wake_ups.send_command(wake_up);
    }

    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp> {
        self.wake_ups.command_stream()
    }

    fn push_segments_join(select: &mut Statement<'_>) {
        // The planner can't estimate the search and might join the whole table. With the offset, it
        // makes one lookup for each row.
        select.push(concat!(
            " cross join lateral (select * from history_segments h where ",
            segment_condition!(),
            " offset 0) h where s.rest = 0"
        ));
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        // `@>` finds rows by the index. It also matches parts of nested values, so the second
        // condition excludes these.
        select.push_bind(" and metadata <> '{}' and metadata::jsonb @> ", wanted);
        select.push_bind("::jsonb and not exists (select from jsonb_each(", wanted);
        select.push("::jsonb) wanted where metadata::jsonb -> wanted.key is distinct from wanted.value)");
    }
}

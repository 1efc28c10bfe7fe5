//! Runs the shared statements on PostgreSQL: each in autocommit, on any connection of the pool.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use sqlx::Postgres;
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::queue::{run_insert, run_lease};
use super::timeouts::{each_in_time, in_time};
use super::{PostgresStore, removal};
use crate::fair_share::FairShare;
use crate::store::driver_error::{store_error, task_error};
use crate::store::error::StoreFuture;
use crate::store::new_queued_run::NewQueueRow;
use crate::store::queue::{LeaseChoice, LeaseTerms};
use crate::store::rows::LeasedRunRow;
use crate::store::sql::{
    Attempt, Connection, Ended, Engine, EngineRow, NewVersion, Statement, Tally, due_in_pair, segment_condition,
};

impl Engine for PostgresStore {
    const SKIP_LOCKED: &'static str = " for no key update skip locked";
    const SHARE: &'static str = " for share";
    const LOCK: &'static str = " for update";
    // Commits of replicas of the version before hold an advisory lock instead of a row; the next
    // version leaves the last condition out.
    const UNUSED: &'static str = " where (
            exists (
                select 1 from states s where s.tenant = next.tenant and s.hash = next.hash for update skip locked)
            or not exists (select 1 from states s where s.tenant = next.tenant and s.hash = next.hash)
        ) and pg_try_advisory_xact_lock(
            hashtextextended(tenant, 0) # ('x' || encode(substr(hash, 1, 8), 'hex'))::bit(64)::bigint)";
    const TIME: &'static str = "select clock_timestamp()";

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

    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let rows = statement.into_query::<Postgres>().fetch(&self.pool);
        each_in_time(rows.map_ok(EngineRow::Postgres).boxed())
    }

    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>> {
        let row = in_time(statement.into_query::<Postgres>().fetch_optional(&self.pool));
        row.map(|row| Ok(row?.map(EngineRow::Postgres))).boxed()
    }

    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64> {
        let failed = store_error(statement.operation());
        let query = statement.into_query::<Postgres>();
        Box::pin(async move {
            Ok(in_time(query.execute(&self.pool))
                .await
                .map_err(failed)?
                .rows_affected())
        })
    }

    fn execute_returning(&self, statement: Statement<'_>) -> StoreFuture<'_, Vec<EngineRow>> {
        let failed = store_error(statement.operation());
        let query = statement.into_query::<Postgres>();
        Box::pin(async move {
            let rows = in_time(query.fetch_all(&self.pool)).await.map_err(failed)?;
            Ok(rows.into_iter().map(EngineRow::Postgres).collect())
        })
    }

    fn remove(&self, statements: Vec<Statement<'_>>) -> StoreFuture<'_, Vec<Tally>> {
        let operation = statements.first().map_or("remove", Statement::operation);
        let queries: Vec<_> = statements.into_iter().map(Statement::into_query).collect();
        let removing = self.tasks.spawn(removal::remove(self.pool.clone(), queries));
        let failed = store_error(operation);
        Box::pin(async move { removing.await.map_err(task_error(operation))?.map_err(failed) })
    }

    fn current_version_insert(&self, version: &NewVersion<'_>) -> StoreFuture<'_, ()> {
        let statement = "with version as (
                insert into agent_versions (tenant, version, name, created_at, schema_version, encoding, payload)
                values ($1, $2, $3, $4, $5, $6, $7)
                on conflict do nothing
            )
            insert into agents (tenant, name, version) values ($1, $3, $2)
            on conflict (tenant, name) do update set version = excluded.version";
        let insert = self.execute(version.bind_to(statement));
        Box::pin(async { insert.await.map(|_| ()) })
    }

    fn transact<T, F>(&self, operation: &'static str, work: F) -> StoreFuture<'_, T>
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
        // No caller cancels it: a transaction that is cancelled as it begins would stay open on its
        // connection.
        let task = self.tasks.spawn(in_time(work).in_current_span());
        Box::pin(async move {
            task.await
                .map_err(task_error(operation))?
                .map_err(store_error(operation))
        })
    }

    fn run_insert(&self, row: NewQueueRow) -> StoreFuture<'_, Attempt> {
        Box::pin(run_insert(self, row))
    }

    fn run_lease(&self, terms: LeaseTerms, choice: LeaseChoice) -> StoreFuture<'_, Vec<LeasedRunRow>> {
        Box::pin(run_lease(self, terms, choice))
    }

    fn wake_ups(&self) -> BoxStream<'static, ()> {
        self.wake_ups.stream()
    }

    fn push_segments_join(select: &mut Statement<'_>) {
        // The planner can't estimate the search and might join the whole table; the offset makes it
        // a lookup for each row.
        select.push(concat!(
            " cross join lateral (select * from history_segments h where ",
            segment_condition!(),
            " offset 0) h where s.rest = 0"
        ));
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        // Containment finds rows by the index; it also matches parts of nested values, hence the
        // second condition.
        select.push_bind(" and metadata <> '{}' and metadata::jsonb @> ", wanted);
        select.push_bind("::jsonb and not exists (select from jsonb_each(", wanted);
        select.push("::jsonb) wanted where metadata::jsonb -> wanted.key is distinct from wanted.value)");
    }
}

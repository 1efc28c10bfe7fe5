//! Shared statements on PostgreSQL: each in autocommit, on any connection of the pool.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use sqlx::Postgres;

use super::PostgresStore;
use crate::store::driver_error::store_error;
use crate::store::sql::{Engine, EngineRow, NewVersion, Statement, segment_condition};
use crate::store::traits::StoreFuture;

impl Engine for PostgresStore {
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let rows = statement.into_query::<Postgres>().fetch(&self.pool);
        rows.map_ok(EngineRow::Postgres).boxed()
    }

    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>> {
        let row = statement.into_query::<Postgres>().fetch_optional(&self.pool);
        row.map(|row| Ok(row?.map(EngineRow::Postgres))).boxed()
    }

    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64> {
        let failed = store_error(statement.operation());
        let query = statement.into_query::<Postgres>();
        Box::pin(async move { Ok(query.execute(&self.pool).await.map_err(failed)?.rows_affected()) })
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

    fn push_segments_join(select: &mut Statement<'_>) {
        // The planner knows nothing of the search and might join the whole table; the offset keeps it from looking inside.
        select.push(concat!(
            " cross join lateral (select * from history_segments h where ",
            segment_condition!(),
            " offset 0) h where s.rest = 0"
        ));
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        // Containment finds rows by the index; it also matches parts of nested values, hence the second condition.
        select.push_bind(" and s.metadata <> '{}' and s.metadata::jsonb @> ", wanted);
        select.push_bind("::jsonb and not exists (select from jsonb_each(", wanted);
        select.push("::jsonb) wanted where s.metadata::jsonb -> wanted.key is distinct from wanted.value)");
    }
}

//! Shared statements on SQLite: reads on any reader, writes on the one writer in tasks that no caller cancels.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use sqlx::{Connection as _, Sqlite};

use super::SqliteStore;
use crate::store::driver_error::store_error;
use crate::store::sql::{Engine, EngineRow, NewVersion, Statement, VERSION_INSERT, segment_condition};
use crate::store::traits::StoreFuture;

impl Engine for SqliteStore {
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>> {
        let rows = statement.into_query::<Sqlite>().fetch(&self.readers);
        rows.map_ok(EngineRow::Sqlite).boxed()
    }

    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>> {
        let row = statement.into_query::<Sqlite>().fetch_optional(&self.readers);
        row.map(|row| Ok(row?.map(EngineRow::Sqlite))).boxed()
    }

    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64> {
        let operation = statement.operation();
        let (writer, query) = (self.writer.clone(), statement.into_query::<Sqlite>());
        let work = async move {
            let done = query.execute(&writer).await.map_err(store_error(operation))?;
            Ok(done.rows_affected())
        };
        Box::pin(self.write(operation, work))
    }

    fn current_version_insert(&self, version: &NewVersion<'_>) -> StoreFuture<'_, ()> {
        let operation = version.operation;
        let statement = "insert into agents (tenant, name, version) values ($1, $2, $3)
            on conflict (tenant, name) do update set version = excluded.version";
        let make_current = Statement::new(operation, statement)
            .bind(version.tenant)
            .bind(version.name)
            .bind(version.version.as_bytes().as_slice())
            .into_query::<Sqlite>();
        let insert = version.bind_to(VERSION_INSERT).into_query::<Sqlite>();
        let writer = self.writer.clone();
        let work = async move {
            let failed = store_error(operation);
            let mut connection = writer.acquire().await.map_err(&failed)?;
            let mut transaction = connection.begin_with("begin immediate").await.map_err(&failed)?;
            insert.execute(&mut *transaction).await.map_err(&failed)?;
            make_current.execute(&mut *transaction).await.map_err(&failed)?;
            transaction.commit().await.map_err(&failed)
        };
        Box::pin(self.write(operation, work))
    }

    fn push_segments_join(select: &mut Statement<'_>) {
        // A cross join is run in the order that it is written in.
        select.push(concat!(
            " cross join history_segments h where s.rest = 0 and ",
            segment_condition!()
        ));
    }

    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str) {
        // Objects and arrays compare as texts, which is exact, since keys are stored sorted.
        select.push_bind(" and not exists (select 1 from json_each(", wanted);
        select.push(
            ") wanted where not exists (
                select 1 from json_each(s.metadata) had
                where had.key = wanted.key and had.value is wanted.value
                    and (had.type = wanted.type or had.type in ('integer', 'real') and wanted.type in ('integer', 'real'))))",
        );
    }
}

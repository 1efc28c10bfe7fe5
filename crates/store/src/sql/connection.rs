//! A connection inside a transaction, for operations of several statements.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, PgConnection, SqliteConnection};

use super::engine_row::EngineRow;
use super::statement::Statement;

/// A connection of either engine on which a transaction is open.
#[derive(Debug)]
pub(crate) enum Connection<'c> {
    Postgres(&'c mut PgConnection),
    Sqlite(&'c mut SqliteConnection),
}

/// The end of a transaction, with the result for its caller.
#[derive(Debug)]
pub(crate) enum Ended<T> {
    /// The transaction is committed.
    Committed(T),
    /// The transaction is committed, and workers are woken.
    CommittedForWorkers(T),
    /// The transaction is rolled back.
    RolledBack(T),
}

impl Connection<'_> {
    /// Returns the connection of PostgreSQL. The transactions of an engine have no other one.
    pub(crate) fn postgres(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        match self {
            Self::Postgres(connection) => Ok(&mut **connection),
            Self::Sqlite(_) => Err(sqlx::Error::WorkerCrashed),
        }
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, sqlx::Error> {
        match self {
            Self::Postgres(connection) => {
                let done = statement.into_query().execute(&mut **connection).await?;
                Ok(done.rows_affected())
            }
            Self::Sqlite(connection) => {
                let done = statement.into_query().execute(&mut **connection).await?;
                Ok(done.rows_affected())
            }
        }
    }

    /// Runs several statements without values.
    pub(crate) async fn run_script(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(connection) => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop),
            Self::Sqlite(connection) => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop),
        }
    }

    /// Reads one row or none.
    pub(crate) async fn fetch_optional<R>(&mut self, statement: Statement<'_>) -> Result<Option<R>, sqlx::Error>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        let row = match self {
            Self::Postgres(connection) => {
                let row = statement.into_query().fetch_optional(&mut **connection).await?;
                row.map(EngineRow::Postgres)
            }
            Self::Sqlite(connection) => {
                let row = statement.into_query().fetch_optional(&mut **connection).await?;
                row.map(EngineRow::Sqlite)
            }
        };
        row.as_ref().map(EngineRow::read).transpose()
    }

    /// Reads all rows.
    pub(crate) async fn fetch_all<R>(&mut self, statement: Statement<'_>) -> Result<Vec<R>, sqlx::Error>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        match self {
            Self::Postgres(connection) => {
                let rows = statement.into_query().fetch_all(&mut **connection).await?;
                rows.iter().map(R::from_row).collect()
            }
            Self::Sqlite(connection) => {
                let rows = statement.into_query().fetch_all(&mut **connection).await?;
                rows.iter().map(R::from_row).collect()
            }
        }
    }
}

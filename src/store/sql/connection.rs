//! A connection inside a transaction, for operations of several statements that both engines share.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, PgConnection, SqliteConnection};

use super::engine::EngineRow;
use super::statement::Statement;

/// A connection of either engine on which a transaction is open.
#[derive(Debug)]
pub(crate) enum Connection<'c> {
    Postgres(&'c mut PgConnection),
    Sqlite(&'c mut SqliteConnection),
}

/// How a transaction ends, with what its caller is told.
#[derive(Debug)]
pub(crate) enum Ended<T> {
    /// It is committed.
    Kept(T),
    /// It is committed, and workers may have something to do: they are woken.
    KeptForWorkers(T),
    /// It is rolled back.
    Undone(T),
}

impl Connection<'_> {
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

    /// Waits until no other transaction decides who is active on the thread. What it reads afterwards is what they have left behind.
    pub(crate) async fn thread_lock(&mut self, tenant: &str, thread: &str) -> Result<(), sqlx::Error> {
        // Not the thread's row, since a thread may be deleted while runs are on it.
        self.lock(tenant, thread).await
    }

    /// Waits until no other transaction adds to the runs of the tenant that wait.
    pub(crate) async fn tenant_lock(&mut self, tenant: &str) -> Result<(), sqlx::Error> {
        // No thread has this name.
        self.lock(tenant, "").await
    }

    async fn lock(&mut self, tenant: &str, name: &str) -> Result<(), sqlx::Error> {
        let Self::Postgres(connection) = self else {
            // There is one writer.
            return Ok(());
        };
        let statement = "select pg_advisory_xact_lock(hashtext($1), hashtext($2))";
        let lock = Statement::new("lock queue", statement).bind(tenant).bind(name);
        lock.into_query().execute(&mut **connection).await?;
        Ok(())
    }
}

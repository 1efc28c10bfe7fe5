//! What the shared statements ask of an engine.

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use super::agents::NewVersion;
use super::statement::Statement;
use crate::store::traits::StoreFuture;

/// A database that runs the shared statements.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Reads rows as they come.
    fn fetch(&self, statement: Statement<'_>) -> BoxStream<'_, Result<EngineRow, sqlx::Error>>;

    /// Reads one row or none.
    fn fetch_optional(&self, statement: Statement<'_>) -> BoxFuture<'_, Result<Option<EngineRow>, sqlx::Error>>;

    /// Runs one statement that writes; returns the number of rows that it changed.
    fn execute(&self, statement: Statement<'_>) -> StoreFuture<'_, u64>;

    /// Inserts a version that is not stored yet and makes it the current one of its name: both or nothing.
    fn current_version_insert(&self, version: &NewVersion<'_>) -> StoreFuture<'_, ()>;

    /// Joins the segments `h` that meet `segment_condition!` to the rows `s` of a search that have no `rest`.
    fn push_segments_join(select: &mut Statement<'_>);

    /// Narrows a list of sessions to those with all of these pairs, a JSON object, at the top of their metadata.
    fn push_metadata_filter<'v>(select: &mut Statement<'v>, wanted: &'v str);
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

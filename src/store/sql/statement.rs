//! A statement and its values, before an engine turns them into a query. The text consists of
//! literals only.

use std::borrow::Cow;

use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Database, Encode, FromRow, Type};
use uuid::Uuid;

use super::engine::{Engine, EngineRow};
use crate::store::driver_error::store_error;
use crate::store::error::StoreError;
use crate::store::rows::StoredTime;

/// A statement with a value for each of its placeholders.
#[derive(Debug, Clone)]
pub(crate) struct Statement<'v> {
    operation: &'static str,
    sql: Cow<'static, str>,
    values: Vec<Value<'v>>,
}

/// A value of a placeholder, or null.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Text(Option<&'v str>),
    Bytes(Option<&'v [u8]>),
    Id(Option<Uuid>),
    Time(Option<StoredTime>),
    Float(Option<f64>),
    Int(Option<i64>),
    Int32(Option<i32>),
    Int16(Option<i16>),
    Bool(Option<bool>),
}

impl<'v> Statement<'v> {
    /// Names what the statement is for, as errors say it, and its text with the placeholders `$1`, `$2` and so on.
    pub(crate) fn new(operation: &'static str, sql: &'static str) -> Self {
        Self {
            operation,
            sql: Cow::Borrowed(sql),
            values: Vec::new(),
        }
    }

    /// Gives the next placeholder its value.
    pub(crate) fn bind(mut self, value: impl Into<Value<'v>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Appends text.
    pub(crate) fn push(&mut self, sql: &'static str) {
        self.sql.to_mut().push_str(sql);
    }

    /// Appends text and a placeholder with its value.
    pub(crate) fn push_bind(&mut self, sql: &'static str, value: impl Into<Value<'v>>) {
        self.values.push(value.into());
        let text = self.sql.to_mut();
        text.push_str(sql);
        text.push('$');
        text.push_str(&self.values.len().to_string());
    }

    /// Returns what the statement is for.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Reads all rows.
    pub(crate) async fn fetch_all<R>(self, engine: &impl Engine) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send,
    {
        let failed = store_error(self.operation);
        let rows = engine.fetch(self).map(|row| row?.read());
        rows.try_collect().await.map_err(failed)
    }

    /// Reads one row or none.
    pub(crate) async fn fetch_optional<R>(self, engine: &impl Engine) -> Result<Option<R>, StoreError>
    where
        R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow>,
    {
        let failed = store_error(self.operation);
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
        let failed = store_error(self.operation);
        let rows = engine.execute_returning(self).await?;
        rows.iter().map(|row| row.read().map_err(&failed)).collect()
    }

    /// Makes the query of one engine, which holds copies of the values.
    pub(crate) fn into_query<DB: Database>(self) -> Query<'static, DB, DB::Arguments>
    where
        Option<&'v str>: Encode<'v, DB> + Type<DB>,
        Option<&'v [u8]>: Encode<'v, DB> + Type<DB>,
        Option<Uuid>: Encode<'v, DB> + Type<DB>,
        Option<StoredTime>: Encode<'v, DB> + Type<DB>,
        Option<f64>: Encode<'v, DB> + Type<DB>,
        Option<i64>: Encode<'v, DB> + Type<DB>,
        Option<i32>: Encode<'v, DB> + Type<DB>,
        Option<i16>: Encode<'v, DB> + Type<DB>,
        Option<bool>: Encode<'v, DB> + Type<DB>,
    {
        // Only literals and the names of placeholders are ever appended.
        let query = sqlx::query(AssertSqlSafe(self.sql));
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Text(value) => query.bind(value),
            Value::Bytes(value) => query.bind(value),
            Value::Id(value) => query.bind(value),
            Value::Time(value) => query.bind(value),
            Value::Float(value) => query.bind(value),
            Value::Int(value) => query.bind(value),
            Value::Int32(value) => query.bind(value),
            Value::Int16(value) => query.bind(value),
            Value::Bool(value) => query.bind(value),
        })
    }
}

/// Makes values of a type and of its options.
macro_rules! value_from {
    ($($type:ty => $variant:ident),+ $(,)?) => {$(
        impl<'v> From<$type> for Value<'v> {
            fn from(value: $type) -> Self {
                Self::$variant(Some(value))
            }
        }

        impl<'v> From<Option<$type>> for Value<'v> {
            fn from(value: Option<$type>) -> Self {
                Self::$variant(value)
            }
        }
    )+};
}

value_from! {
    &'v str => Text,
    &'v [u8] => Bytes,
    Uuid => Id,
    StoredTime => Time,
    f64 => Float,
    i64 => Int,
    i32 => Int32,
    i16 => Int16,
    bool => Bool,
}

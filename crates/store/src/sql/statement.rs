//! A statement and its values, before an engine converts them to a query. The text consists only of
//! literals and of names in the code: names of tables, and of columns that `rows/table.rs`
//! declares.

use std::borrow::Cow;

use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Database, Encode, Type};
use uuid::Uuid;

use crate::codec::Payload;
use crate::rows::{HashList, Row, StoredTime, Value};
use values::tenant::TenantId;

/// Builds an `insert` of one row. `begin` has the table and its first column, the tenant.
pub(crate) fn insert_statement<'v>(
    operation: &'static str,
    begin: &'static str,
    tenant: &'v TenantId,
    row: &'v dyn Row,
) -> Statement<'v> {
    let mut insert = Statement::new(operation, begin).bind(tenant.as_str());
    insert.push_columns(row);
    insert.push(") values ($1, ");
    insert.push_values(row);
    insert.push(")");
    insert
}

/// A statement with a value for each of its placeholders.
#[derive(Debug, Clone)]
pub(crate) struct Statement<'v> {
    operation: &'static str,
    sql: Cow<'static, str>,
    values: Vec<Value<'v>>,
}

impl<'v> Statement<'v> {
    /// Creates a statement from the name of the operation, for errors, and a text with the
    /// placeholders `$1`, `$2` and so on.
    pub(crate) fn new(operation: &'static str, sql: &'static str) -> Self {
        Self {
            operation,
            sql: Cow::Borrowed(sql),
            values: Vec::new(),
        }
    }

    /// Creates a statement with the values of its placeholders.
    pub(crate) fn with(operation: &'static str, sql: &'static str, values: Vec<Value<'v>>) -> Self {
        Self {
            values,
            ..Self::new(operation, sql)
        }
    }

    /// Sets the value of the next placeholder.
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

    /// Appends text and a placeholder with its value, if there is one.
    pub(crate) fn push_some(&mut self, sql: &'static str, value: Option<impl Into<Value<'v>>>) {
        if let Some(value) = value {
            self.push_bind(sql, value);
        }
    }

    /// Appends the names of a row's columns, with commas between them.
    pub(crate) fn push_columns(&mut self, row: &dyn Row) {
        let mut before = "";
        row.visit(&mut |column, _| {
            self.push(before);
            self.push(column);
            before = ", ";
        });
    }

    /// Appends placeholders for a row's values, with commas between them.
    pub(crate) fn push_values(&mut self, row: &'v dyn Row) {
        let mut before = "";
        row.visit(&mut |_, value| {
            self.push_bind(before, value);
            before = ", ";
        });
    }

    /// Appends the assignments of an update, `COLUMN = .., COLUMN = ..`, for all columns except the
    /// key.
    pub(crate) fn push_assignments(&mut self, row: &'v dyn Row, key: &'static str) {
        let mut before = "";
        row.visit(&mut |column, value| {
            if column != key {
                self.push(before);
                self.push(column);
                self.push_bind(" = ", value);
                before = ", ";
            }
        });
    }

    /// Binds the three columns of a payload.
    pub(crate) fn bind_payload(self, payload: &'v Payload) -> Self {
        self.bind(payload.schema_version)
            .bind(payload.encoding)
            .bind(payload.bytes.as_slice())
    }

    /// Returns the name of the operation.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Converts the statement to a query of one engine. The query has copies of the values.
    pub(crate) fn into_query<DB: Database>(self) -> Query<'static, DB, DB::Arguments>
    where
        Option<&'v str>: Encode<'v, DB> + Type<DB>,
        Option<&'v [u8]>: Encode<'v, DB> + Type<DB>,
        HashList<'v>: Encode<'v, DB> + Type<DB>,
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
            Value::Hashes(value) => query.bind(value),
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

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, Row as _, SqliteConnection};

    use super::*;
    use crate::migration::SQLITE;

    impl Statement<'_> {
        /// Returns the indexes that SQLite reads for it, without statistics about the tables.
        pub(crate) async fn sqlite_indexes(&self) -> Vec<String> {
            let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
            for migration in SQLITE {
                sqlx::raw_sql(migration.sql).execute(&mut connection).await.unwrap();
            }
            let explain = format!("explain query plan {}", self.sql);
            let explain = sqlx::query(AssertSqlSafe(explain));
            let plan = explain.fetch_all(&mut connection).await.unwrap();
            let lines = plan.iter().map(|row| row.get::<String, _>("detail"));
            lines
                .filter_map(|line| {
                    let (_, index) = line.split_once(" INDEX ")?;
                    Some(index.split(' ').next()?.to_owned())
                })
                .collect()
        }
    }
}

//! Rows of one table as an array for each column, so that one statement writes any number of rows.

use std::sync::OnceLock;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row as _};

use crate::rows::{Row, Value};
use crate::sql::events_conflict;
use values::tenant::TenantId;

/// The number of a write in its batch. Rows of other tables refer to the write by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(i32);

impl Number {
    /// The number of a write that is alone.
    pub(super) const FIRST: Self = Self(0);

    /// Iterates over all numbers.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..).map(Self)
    }
}

impl Row for Number {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("number", self.0.into());
    }
}

/// Returns the decision about each of so many writes. A row decides about the write whose number is
/// in its first column. Writes without a row get the default.
pub(super) fn decisions<D: Clone + Default>(
    rows: &[PgRow],
    count: usize,
    read: impl Fn(&PgRow) -> Result<D, sqlx::Error>,
) -> Result<Vec<D>, sqlx::Error> {
    let mut decisions = vec![D::default(); count];
    for row in rows {
        let number: i32 = row.try_get(0)?;
        let index = usize::try_from(number).ok();
        if let Some(decision) = index.and_then(|index| decisions.get_mut(index)) {
            *decision = read(row)?;
        }
    }
    Ok(decisions)
}

/// Rows with the same columns.
#[derive(Debug, Default)]
pub(super) struct ColumnArrays<'v>(Vec<Column<'v>>);

#[derive(Debug)]
struct Column<'v> {
    name: &'static str,
    values: Vec<Value<'v>>,
}

impl<'v> ColumnArrays<'v> {
    /// Adds a row: the tenant, and the columns of the given parts in their order.
    pub(super) fn push(&mut self, tenant: &'v TenantId, parts: &[&'v dyn Row]) {
        let mut index = 0;
        let mut add = |name, value| {
            match self.0.get_mut(index) {
                Some(column) => column.values.push(value),
                None => self.0.push(Column {
                    name,
                    values: vec![value],
                }),
            }
            index += 1;
        };
        add("tenant", tenant.into());
        for part in parts {
            part.visit(&mut add);
        }
    }

    /// Returns whether there is no row.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of a column and of those after it, each with the prefix.
    pub(super) fn names_from(&self, first: &str, prefix: &str) -> String {
        let columns = self.0.iter().skip_while(|column| column.name != first);
        joined(columns.map(|column| format!("{prefix}{}", column.name)))
    }

    fn bind_to(self, query: Query<'_, Postgres, PgArguments>) -> Query<'_, Postgres, PgArguments> {
        self.0
            .into_iter()
            .fold(query, |query, column| bind(query, &column.values))
    }
}

/// Returns the text of a statement. It depends only on which of these tables have rows.
pub(super) fn cached_text(
    texts: &'static [OnceLock<String>],
    tables: &[&ColumnArrays<'_>],
    build: impl FnOnce() -> String,
) -> &'static str {
    let has_rows = tables.iter().map(|table| usize::from(!table.is_empty()));
    texts[has_rows.fold(0, |index, has_rows| 2 * index + has_rows)].get_or_init(build)
}

/// Defines each table that has rows, as a common table expression of its arrays.
pub(super) fn definitions(tables: &[(&'static str, &ColumnArrays<'_>)]) -> Vec<String> {
    let mut numbers = 1..;
    let with_rows = tables.iter().filter(|(_, table)| !table.is_empty());
    let definitions = with_rows.map(|(name, table)| {
        let columns = table.names_from("tenant", "");
        let placeholders = joined(numbers.by_ref().take(table.0.len()).map(|number| format!("${number}")));
        format!("{name} as materialized (select * from unnest({placeholders}) as {name} ({columns}))")
    });
    definitions.collect()
}

/// Returns the part of a statement that inserts events of the runs in a table `done`, which has
/// their tenants, numbers and ids.
pub(super) fn events_text(events: &ColumnArrays<'_>) -> String {
    format!(
        concat!(
            "new_events as (
                insert into run_events (tenant, run_id, {columns})
                select tenant, run_id, {values} from events join done using (tenant, number)",
            events_conflict!(),
            ")"
        ),
        columns = events.names_from("first_sequence", ""),
        values = events.names_from("first_sequence", "events."),
    )
}

/// Executes a statement with the arrays of its tables.
pub(super) async fn fetch_all<'v>(
    connection: &mut PgConnection,
    text: &'static str,
    tables: impl IntoIterator<Item = ColumnArrays<'v>>,
) -> Result<Vec<PgRow>, sqlx::Error> {
    let query = tables
        .into_iter()
        .fold(sqlx::query(text), |query, table| table.bind_to(query));
    query.fetch_all(connection).await
}

/// Binds the values of a column, which all have the same type.
fn bind<'q>(query: Query<'q, Postgres, PgArguments>, values: &[Value<'_>]) -> Query<'q, Postgres, PgArguments> {
    macro_rules! array {
        ($variant:ident) => {{
            let array = values.iter().map(|value| match value {
                Value::$variant(value) => *value,
                _ => None,
            });
            query.bind(array.collect::<Vec<_>>())
        }};
    }
    match values.first() {
        Some(Value::Text(_)) => array!(Text),
        Some(Value::Bytes(_)) => array!(Bytes),
        Some(Value::Id(_)) => array!(Id),
        Some(Value::Time(_)) => array!(Time),
        Some(Value::Float(_)) => array!(Float),
        Some(Value::Int(_)) => array!(Int),
        Some(Value::Int32(_)) => array!(Int32),
        Some(Value::Int16(_)) => array!(Int16),
        Some(Value::Bool(_)) => array!(Bool),
        // No row has a column of this type.
        Some(Value::Hashes(_)) | None => query,
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

//! Rows of one table as an array for each column, so that one statement writes any number of rows.

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Postgres, Row as _};

use crate::rows::{Row, Value};
use values::tenant::TenantId;

/// The number of a write in its batch. Rows of other tables refer to the write by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(i32);

impl Number {
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

/// Returns what is decided about each of so many writes: about one whose number is in the first
/// column of a row, what is read from the row, and the default about the others.
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

    /// Returns the number of columns.
    pub(super) fn width(&self) -> usize {
        self.0.len()
    }

    /// Returns the placeholders of the arrays, from the given number on.
    pub(super) fn placeholders(&self, first: usize) -> String {
        let numbers = (first..).take(self.width());
        joined(numbers.map(|number| format!("${number}")))
    }

    /// Returns the names of all columns.
    pub(super) fn names(&self) -> String {
        joined(self.0.iter().map(|column| column.name.to_owned()))
    }

    /// Returns the names of a column and of those after it, each with the prefix.
    pub(super) fn names_from(&self, first: &str, prefix: &str) -> String {
        let columns = self.0.iter().skip_while(|column| column.name != first);
        joined(columns.map(|column| format!("{prefix}{}", column.name)))
    }

    /// Binds the arrays, one after the other.
    pub(super) fn bind_to(self, query: Query<'_, Postgres, PgArguments>) -> Query<'_, Postgres, PgArguments> {
        self.0
            .into_iter()
            .fold(query, |query, column| bind(query, &column.values))
    }
}

/// Binds the values of a column, which all have the type of the first one.
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

//! Declares rows: each column of a table stands in one list, and the rest is generated from it.
//!
//! [`row!`] declares a row that is read: the struct, and how both engines fill it by the names of
//! the columns. [`written_row!`] declares a row that is written: the struct, and [`Row`], of which
//! `sql::Statement` makes the columns, the placeholders and the values of `insert` and `update`.
//! [`table_row!`] declares a row that is read and written, and its list of columns for `select`. To
//! add a column, write a migration for each engine and add a field to the list. The compiler then
//! asks for the conversions from and to the domain type, which stand below the list.
//!
//! Statements that only read are constants: `sql!` joins literals and the list of columns. A
//! statement that writes such a row is put together when it runs, from literals and the names of
//! this list, since no literal can number the placeholders of a list that grows. sqlx takes that
//! text only as `AssertSqlSafe`; `Statement` accepts nothing but `&'static str`, so no value ever
//! becomes SQL. The text is the same each time, so connections have it prepared.

use super::Value;

/// A row that is written. The tenant is not among its columns: it is `$1` of every statement.
pub(crate) trait Row {
    /// Visits each column with its value, in the order of the list.
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>));
}

/// Declares a row that is read. The parts after a `;` read their own columns.
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$lifetime:lifetime>)? {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
            $(; $($(#[$part_meta:meta])* $part_vis:vis $part:ident: $part_type:ty,)+)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name $(<$lifetime>)? {
            $($(#[$field_meta])* $field_vis $field: $type,)*
            $($($(#[$part_meta])* $part_vis $part: $part_type,)+)?
        }

        $crate::store::rows::row!(@engine sqlx::postgres::PgRow, $name $(<$lifetime>)?; $($field)*; $($($part)+)?);
        $crate::store::rows::row!(@engine sqlx::sqlite::SqliteRow, $name $(<$lifetime>)?; $($field)*; $($($part)+)?);
    };
    (@engine $row:ty, $name:ty; $($field:ident)*; $($part:ident)*) => {
        impl<'r> sqlx::FromRow<'r, $row> for $name {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)*
                    $($part: sqlx::FromRow::from_row(row)?,)*
                })
            }
        }
    };
}
pub(crate) use row;

/// Declares a row that is written.
macro_rules! written_row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        $crate::store::rows::written_row!(@values $name; $($field)*);
    };
    (@values $name:ident; $($field:ident)*) => {
        impl $crate::store::rows::Row for $name {
            fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, $crate::store::rows::Value<'v>)) {
                $(column(stringify!($field), (&self.$field).into());)*
            }
        }
    };
}
pub(crate) use written_row;

/// Declares a row that is read and written; the alias is that of its table in statements.
macro_rules! table_row {
    (
        columns of $alias:literal;
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $crate::store::rows::row! {
            $(#[$meta])*
            $vis struct $name {
                $($(#[$field_meta])* $field_vis $field: $type,)*
            }
        }

        $crate::store::rows::written_row!(@values $name; $($field)*);

        impl $name {
            /// The columns, for `select`.
            pub(crate) const COLUMNS: &'static str = $crate::store::rows::column_list!($alias; $($field)*);
        }
    };
}
pub(crate) use table_row;

/// Joins the names of columns, each with the alias of its table.
macro_rules! column_list {
    ($alias:literal; $first:ident $($next:ident)*) => {
        concat!($alias, ".", stringify!($first) $(, ", ", $alias, ".", stringify!($next))*)
    };
}
pub(crate) use column_list;

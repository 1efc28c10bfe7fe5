//! Declares rows. Each column of a table is declared once, in a list; macros generate the rest.
//!
//! [`row!`] declares a row that is read. It generates the struct, and both engines fill it by the
//! names of the columns. [`written_row!`] declares a row that is written. It generates the struct
//! and an implementation of [`Row`]. From [`Row`], `sql::Statement` builds the columns, the
//! placeholders and the values of `insert` and `update`. [`table_row!`] declares a row that is read
//! and written, and its list of columns for `select`. To add a column, write a migration for each
//! engine and add a field to the list. The compiler then demands changes to the conversions from
//! and to the domain type, below the list.
//!
//! Statements that only read are constants: `sql!` joins literals and the list of columns. A
//! statement that writes such a row is built at run time from literals and column names, since its
//! placeholders are numbered when it is built. sqlx accepts such text only as `AssertSqlSafe`.
//! `Statement` accepts only `&'static str`, so no value ever becomes SQL. The text is the same each
//! time, so connections reuse the prepared statement.

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

        $crate::rows::row!(@engine sqlx::postgres::PgRow, $name $(<$lifetime>)?; $($field)*; $($($part)+)?);
        $crate::rows::row!(@engine sqlx::sqlite::SqliteRow, $name $(<$lifetime>)?; $($field)*; $($($part)+)?);
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

        $crate::rows::written_row!(@values $name; $($field)*);
    };
    (@values $name:ident; $($field:ident)*) => {
        impl $crate::rows::Row for $name {
            fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, $crate::rows::Value<'v>)) {
                $(column(stringify!($field), (&self.$field).into());)*
            }
        }
    };
}
pub(crate) use written_row;

/// Declares a row that is read and written. `alias` is the alias of its table in statements.
macro_rules! table_row {
    (
        columns of $alias:literal;
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $crate::rows::row! {
            $(#[$meta])*
            $vis struct $name {
                $($(#[$field_meta])* $field_vis $field: $type,)*
            }
        }

        $crate::rows::written_row!(@values $name; $($field)*);

        impl $name {
            /// The columns, for `select`.
            pub(crate) const COLUMNS: &'static str = $crate::rows::column_list!($alias; $($field)*);
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

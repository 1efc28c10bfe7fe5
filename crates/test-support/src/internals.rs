//! A word that only errors inside the service have.

/// Part of the database's error for tables whose reading fails. No caller may ever read it.
pub const INTERNALS: &str = "secret_table";

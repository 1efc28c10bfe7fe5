//! Classifies the driver's errors: whether trying again may help, and whether a key was taken. No
//! SQL.

use std::error::Error as StdError;

use sqlx::error::DatabaseError;

use super::error::StoreError;

/// `SQLSTATE` classes and codes of PostgreSQL that pass: connections, resources, shutdown, retries,
/// a database that is closed for now, a standby that can't write.
const PASSING_STATES: [&str; 11] = [
    "08", "53", "57P", "57014", "58030", "40001", "40P01", "55000", "55P03", "25006", "25P03",
];
/// Primary result codes of SQLite that pass: `SQLITE_BUSY`, `SQLITE_LOCKED`, `SQLITE_FULL`.
const PASSING_RESULTS: [i32; 3] = [5, 6, 13];

/// Turns an error of the driver into one of the store.
pub(crate) fn store_error(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| classify(operation, error)
}

/// Tells whether trying again may help.
pub(crate) fn is_passing_error(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_passing(error.as_ref(), &code)),
        _ => false,
    }
}

fn classify(operation: &'static str, error: sqlx::Error) -> StoreError {
    let passes = is_passing_error(&error);
    let source: Box<dyn StdError + Send + Sync> = error.into();
    if passes {
        StoreError::Unavailable { operation, source }
    } else {
        StoreError::Failed { operation, source }
    }
}

fn is_passing(error: &dyn DatabaseError, code: &str) -> bool {
    if error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
        PASSING_STATES.iter().any(|state| code.starts_with(state))
    } else {
        // The low byte of an extended result code is the primary one.
        code.parse::<i32>()
            .is_ok_and(|code| PASSING_RESULTS.contains(&(code & 0xff)))
    }
}

/// Returns an empty result for a text that PostgreSQL can't hold, such as one with a NUL byte; all
/// other errors stay.
pub(crate) fn nothing_matches<T: Default>(error: StoreError) -> Result<T, StoreError> {
    let StoreError::Failed { source, .. } = &error else {
        return Err(error);
    };
    let code = match source.downcast_ref() {
        Some(sqlx::Error::Database(database)) => database.code(),
        _ => None,
    };
    if matches!(code.as_deref(), Some("22021" | "22P05")) {
        Ok(T::default())
    } else {
        Err(error)
    }
}

/// Tells whether a row of the same key exists.
pub(crate) fn is_unique_violation(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.is_unique_violation())
}

/// Tells whether a named constraint or unique index is violated.
pub(crate) fn is_violation_of(error: &sqlx::Error, constraint: &str) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.constraint() == Some(constraint))
}

/// Tells whether the table does not exist.
pub(crate) fn is_undefined_table(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table")
}

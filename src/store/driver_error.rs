//! Classifies the driver's errors: whether a retry may help, and whether a key was taken. Contains
//! no SQL.

use std::error::Error as StdError;
use std::sync::Arc;

use sqlx::error::DatabaseError;

use super::error::StoreError;

/// `SQLSTATE` classes and codes of PostgreSQL's transient errors: connections, resources, shutdown,
/// conflicts, a database that is not available now, a read-only standby.
const PASSING_STATES: [&str; 11] = [
    "08", "53", "57P", "57014", "58030", "40001", "40P01", "55000", "55P03", "25006", "25P03",
];
/// Primary result codes of SQLite's transient errors: `SQLITE_BUSY`, `SQLITE_LOCKED`,
/// `SQLITE_FULL`.
const PASSING_RESULTS: [i32; 3] = [5, 6, 13];

/// Converts a driver error to a store error.
pub(crate) fn store_error(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| classify(operation, error)
}

/// Converts a driver error that several operations share.
pub(crate) fn shared_store_error(operation: &'static str, error: Arc<sqlx::Error>) -> StoreError {
    let passes = is_passing_error(&error);
    from_parts(operation, passes, error.into())
}

/// Returns whether a retry may help.
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
    from_parts(operation, passes, error.into())
}

fn from_parts(operation: &'static str, passes: bool, source: Box<dyn StdError + Send + Sync>) -> StoreError {
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

/// Returns an empty result if PostgreSQL can't represent a text, such as one with a NUL byte.
/// Returns all other errors unchanged.
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

/// Returns whether a row with the same key exists.
pub(crate) fn is_unique_violation(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.is_unique_violation())
}

/// Returns whether the error is a violation of the named constraint or unique index.
pub(crate) fn is_violation_of(error: &sqlx::Error, constraint: &str) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.constraint() == Some(constraint))
}

/// Returns whether PostgreSQL has rolled a transaction back, since it and another waited for each
/// other.
pub(crate) fn is_deadlock(error: &sqlx::Error) -> bool {
    has_state(error, "40P01")
}

/// Returns whether PostgreSQL has given up to wait for a lock.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    has_state(error, "55P03")
}

fn has_state(error: &sqlx::Error, state: &str) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some(state))
}

/// Returns whether the table does not exist.
pub(crate) fn is_undefined_table(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table")
}

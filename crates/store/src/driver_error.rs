//! Classifies the driver's errors: whether a retry may help, the message for callers, and whether a
//! key was taken. Contains no SQL.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use sqlx::error::DatabaseError;

use super::error::{StoreError, Unavailability};

/// `SQLSTATE` classes and codes of PostgreSQL's transient errors. The first match counts.
const PASSING_STATES: [(&str, Unavailability); 12] = [
    ("08", Unavailability::Unreachable),
    ("53100", Unavailability::DiskFull),
    ("53", Unavailability::Exhausted),
    ("57P", Unavailability::Unreachable),
    ("57014", Unavailability::Unreachable),
    ("58030", Unavailability::DiskFails),
    ("40001", Unavailability::Busy),
    ("40P01", Unavailability::Busy),
    ("55000", Unavailability::Unreachable),
    ("55P03", Unavailability::Busy),
    ("25006", Unavailability::ReadOnly),
    ("25P03", Unavailability::Unreachable),
];
/// Primary result codes of SQLite's transient errors: `SQLITE_BUSY`, `SQLITE_LOCKED`,
/// `SQLITE_NOMEM`, `SQLITE_READONLY`, `SQLITE_IOERR`, `SQLITE_FULL`, `SQLITE_CANTOPEN`.
const PASSING_RESULTS: [(i32, Unavailability); 7] = [
    (5, Unavailability::Busy),
    (6, Unavailability::Busy),
    (7, Unavailability::Exhausted),
    (8, Unavailability::ReadOnly),
    (10, Unavailability::DiskFails),
    (13, Unavailability::DiskFull),
    (14, Unavailability::Unreachable),
];
/// `SQLITE_IOERR_SHMSIZE`: the index of the write-ahead log can't grow.
const NO_ROOM_FOR_INDEX: i32 = 0x130a;

/// Converts a driver error to a store error.
pub(crate) fn store_error(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| classify(operation, error)
}

/// Converts a driver error that several operations share.
pub(crate) fn shared_store_error(operation: &'static str, error: Arc<sqlx::Error>) -> StoreError {
    let reason = unavailability(&error);
    from_parts(operation, reason, error.into())
}

/// Returns whether other writes are in the way.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    unavailability(error) == Some(Unavailability::Busy)
}

/// Returns whether a retry may help.
pub(crate) fn is_passing(error: &sqlx::Error) -> bool {
    unavailability(error).is_some()
}

/// Returns why the store can't be used now; `None` if a retry does not help.
fn unavailability(error: &sqlx::Error) -> Option<Unavailability> {
    match error {
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Some(Unavailability::DiskFull),
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Some(Unavailability::Unreachable),
        sqlx::Error::Database(error) => of_code(error.as_ref(), &error.code()?),
        _ => None,
    }
}

fn classify(operation: &'static str, error: sqlx::Error) -> StoreError {
    let reason = unavailability(&error);
    from_parts(operation, reason, error.into())
}

fn from_parts(
    operation: &'static str,
    reason: Option<Unavailability>,
    source: Box<dyn StdError + Send + Sync>,
) -> StoreError {
    match reason {
        Some(reason) => StoreError::Unavailable {
            operation,
            reason,
            source,
        },
        None => StoreError::Failed { operation, source },
    }
}

fn of_code(error: &dyn DatabaseError, code: &str) -> Option<Unavailability> {
    if error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
        let mut states = PASSING_STATES.iter();
        return states
            .find(|(state, _)| code.starts_with(state))
            .map(|(_, reason)| *reason);
    }
    let code: i32 = code.parse().ok()?;
    if code == NO_ROOM_FOR_INDEX {
        return Some(Unavailability::DiskFull);
    }
    // The low byte of an extended result code is the primary one.
    let mut results = PASSING_RESULTS.iter();
    results
        .find(|(result, _)| *result == code & 0xff)
        .map(|(_, reason)| *reason)
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

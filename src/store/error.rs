//! The errors of a store.

use std::sync::Arc;

use super::codec::DecodeError;
use crate::ids::RunId;
use crate::session::PartTooLarge;

/// A failed operation of a store: nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database can't be reached, responds too late or is shutting down; trying again may help.
    #[error("the store is unavailable: {operation}")]
    Unavailable {
        /// What was tried, such as `commit session`.
        operation: &'static str,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refused the operation.
    #[error("the store failed: {operation}")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored row can't be understood.
    #[error("the row {id} of {table} can't be read: {column}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        id: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database's schema is not the one that this version works with.
    #[error(
        "the schema of the store has version {found}, this version of agent-runtime needs {needed}: {}",
        match *found {
            0 => "the database holds no store, `agent-runtime migrate` makes one",
            found if found > *needed => "start a newer agent-runtime",
            _ => "run `agent-runtime migrate`",
        }
    )]
    Schema {
        /// The version found; 0 for none.
        found: i64,
        /// The version needed.
        needed: i64,
    },
}

impl StoreError {
    /// Copies an error for several callers.
    pub fn shared(error: &Arc<Self>) -> Self {
        let source = Box::new(Arc::clone(error));
        match **error {
            Self::Unavailable { operation, .. } => Self::Unavailable { operation, source },
            Self::Failed { operation, .. } => Self::Failed { operation, source },
            Self::Corrupt {
                table, column, ref id, ..
            } => Self::Corrupt {
                table,
                column,
                id: id.clone(),
                source,
            },
            Self::Schema { found, needed } => Self::Schema { found, needed },
        }
    }

    /// Makes the error of an operation that can't be done.
    pub(crate) fn failed<E>(operation: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Failed {
            operation,
            source: source.into(),
        }
    }

    /// Makes the error of an operation that timed out. It may have taken effect.
    pub fn late(operation: &'static str, elapsed: tokio::time::error::Elapsed) -> Self {
        Self::Unavailable {
            operation,
            source: elapsed.into(),
        }
    }

    /// Tells whether trying again may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Tells whether a later version of agent-runtime wrote the unreadable row.
    pub(crate) fn is_of_later_version(&self) -> bool {
        let Self::Corrupt { source, .. } = self else {
            return false;
        };
        source.downcast_ref().is_some_and(DecodeError::is_of_later_version)
    }
}

/// A session that was not published.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another run from the same base has committed, and the caller wanted no fork.
    #[error("another run has continued the base session")]
    Conflict {
        /// That run; none when the other session was imported.
        run_id: Option<RunId>,
    },
    /// The thread points elsewhere by now, and the caller wanted no fork.
    #[error("the thread has been moved")]
    ThreadMoved,
    /// Another worker has the lease.
    #[error("another worker has taken the run over")]
    LeaseLost,
    /// The session that this one continues is not, or no longer, in the store.
    #[error("the session that it continues is not in the store")]
    MissingBase,
    /// A part of a session is larger than allowed.
    #[error(transparent)]
    TooLarge(#[from] PartTooLarge),
    /// A session of this id exists already.
    #[error("the session exists already")]
    Exists,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

//! The errors of a store.

use std::sync::Arc;

use super::codec::DecodeError;
use agent::record::ThreadName;
use values::ids::RunId;
use values::session::PartTooLarge;

/// A failed operation of a store: nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database can't be used now. A retry may help.
    #[error("the store is unavailable: {operation}")]
    Unavailable {
        /// The operation, such as `commit session`.
        operation: &'static str,
        /// The reason for callers.
        reason: Unavailability,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refused the operation.
    #[error("the store failed: {operation}")]
    Failed {
        /// The operation.
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
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The files of the tenant would take more room than they may. A part of the write may be
    /// stored, but nothing refers to it.
    #[error("the files of all sessions of the tenant would have more than {limit} bytes")]
    TenantFull {
        /// The most bytes.
        limit: u64,
    },
    /// The schema of the database has another version than this code needs.
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
    /// Copies an error that several callers receive.
    pub fn shared(error: &Arc<Self>) -> Self {
        let source = Box::new(Arc::clone(error));
        match **error {
            Self::Unavailable { operation, reason, .. } => Self::Unavailable {
                operation,
                reason,
                source,
            },
            Self::Failed { operation, .. } => Self::Failed { operation, source },
            Self::Corrupt {
                table, column, ref id, ..
            } => Self::Corrupt {
                table,
                column,
                id: id.clone(),
                source,
            },
            Self::TenantFull { limit } => Self::TenantFull { limit },
            Self::Schema { found, needed } => Self::Schema { found, needed },
        }
    }

    /// Returns the error of an operation that can't be done.
    pub(crate) fn failed<E>(operation: &'static str) -> impl Fn(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Failed {
            operation,
            source: source.into(),
        }
    }

    /// Returns the error of an operation that timed out. The operation may have taken effect.
    pub fn late(operation: &'static str, elapsed: tokio::time::error::Elapsed) -> Self {
        Self::Unavailable {
            operation,
            reason: Unavailability::Unreachable,
            source: elapsed.into(),
        }
    }

    /// Returns whether a retry may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Returns whether a later version of agent-runtime wrote the unreadable row.
    pub(crate) fn is_of_later_version(&self) -> bool {
        let Self::Corrupt { source, .. } = self else {
            return false;
        };
        source.downcast_ref().is_some_and(DecodeError::is_of_later_version)
    }
}

/// Why a store can't be used now. The text is for callers, so it names no part of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailability {
    /// The store can't be reached, responds too late or is shutting down.
    #[error("the store can't be reached")]
    Unreachable,
    /// Other writes are in the way.
    #[error("other writes to the store are in the way")]
    Busy,
    /// The store has no memory or no connection left.
    #[error("the store has no memory or no connection left")]
    Exhausted,
    /// The disk is full. Stored data can be read.
    #[error("the store can't be written now: its disk is full")]
    DiskFull,
    /// The disk reports errors.
    #[error("the store can't be used now: its disk reports errors")]
    DiskFails,
    /// The store is a standby, or its file system is read-only.
    #[error("the store can't be written now: it is read-only")]
    ReadOnly,
    /// The file is no longer at its path.
    #[error("the store can't be written now: its file was moved or removed")]
    FileGone,
}

/// The reason why a session was not published.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another run from the same base has committed, and the caller wanted no fork.
    #[error("another run has continued the base session")]
    Conflict {
        /// The other run; `None` if the other session was imported.
        run_id: Option<RunId>,
    },
    /// Another worker has the lease.
    #[error("another worker has taken the run over")]
    LeaseLost,
    /// The session to continue does not exist or was removed.
    #[error("the session that it continues is not in the store")]
    MissingBase,
    /// The session whose environment the draft uses does not exist or was removed.
    #[error("the session whose environment it uses is not in the store")]
    MissingEnvironment,
    /// The thread of a commit without a run points to another session than the base.
    #[error("the thread points to another session")]
    ThreadMoved {
        /// The thread.
        name: ThreadName,
    },
    /// A run is active on the thread of a commit without a run.
    #[error("a run is active on the thread")]
    ThreadBusy {
        /// The thread.
        name: ThreadName,
        /// The run.
        run_id: RunId,
    },
    /// A part of a session is larger than allowed.
    #[error(transparent)]
    TooLarge(#[from] PartTooLarge),
    /// A session with this id exists already.
    #[error("the session exists already")]
    Exists,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

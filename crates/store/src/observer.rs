//! The port to what measures a store.

use std::fmt;
use std::time::Duration;

use super::driver_error::is_passing;
use super::error::{CommitError, StoreError};

/// Receives what a store does. It never waits and never fails.
pub trait StoreObserver: Send + Sync + fmt::Debug {
    /// An operation ended after `duration`, which includes the wait for a connection. The operation
    /// is one of the names in the code, such as `commit session`.
    fn operation_ended(&self, operation: &'static str, outcome: Outcome, duration: Duration);

    /// The committer begins a batch of so many writes.
    fn batch_begun(&self, writes: usize);
}

/// The end of an operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The database has responded. That includes refusals, such as a position that is taken.
    Ok,
    /// The database can't be used now.
    Unavailable,
    /// The database failed.
    Failed,
    /// The caller did not wait for the end.
    Abandoned,
}

impl Outcome {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }

    pub(crate) fn of_error(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable { .. } => Self::Unavailable,
            StoreError::TenantFull { .. } => Self::Ok,
            StoreError::Failed { .. } | StoreError::Corrupt { .. } | StoreError::Schema { .. } => Self::Failed,
        }
    }

    pub(crate) fn of_refusal(error: &CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::of_error(error),
            _ => Self::Ok,
        }
    }

    /// Classifies an error of the driver as the store does for its callers.
    pub(crate) fn of_driver(error: &sqlx::Error) -> Self {
        if is_passing(error) {
            Self::Unavailable
        } else {
            Self::Failed
        }
    }
}

/// The connections in the pool of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// Those that an operation uses.
    pub busy: u32,
    /// Those that wait for one.
    pub idle: u32,
}

impl Connections {
    pub(crate) fn of_pool(size: u32, idle: usize) -> Self {
        let idle = u32::try_from(idle).unwrap_or(u32::MAX).min(size);
        Self {
            busy: size - idle,
            idle,
        }
    }
}

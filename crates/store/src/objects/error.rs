//! Errors of object stores. Their texts may name buckets and keys, so they are for operators.

use object_store::Error;
use tokio::time::error::Elapsed;

use crate::error::{StoreError, Unavailability};

/// Why an object store can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenObjectsError {
    /// The address is no URL of an object store.
    #[error("{address} is no address of an object store")]
    Address {
        /// The address, without credentials.
        address: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client can't be made, for example since a setting is missing.
    #[error("the object store {address} can't be used")]
    Client {
        /// The address, without credentials.
        address: String,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database has contents in an object store.
    #[error("the store has contents in an object store: name it in `store.objects.url`")]
    NotConfigured,
}

/// Makes the error of a failed request. Only a request that the object store refuses for good is
/// not worth another attempt.
pub(super) fn object_error(operation: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| match error {
        Error::Generic { .. } | Error::JoinError { .. } => StoreError::Unavailable {
            operation,
            reason: Unavailability::Unreachable,
            source: error.into(),
        },
        _ => StoreError::Failed {
            operation,
            source: error.into(),
        },
    }
}

/// Makes the error of a request that took too long.
pub(super) fn too_late(operation: &'static str, elapsed: Elapsed) -> StoreError {
    StoreError::late(operation, elapsed)
}

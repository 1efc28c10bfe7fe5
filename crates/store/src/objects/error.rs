//! Errors of object stores. Their texts may name buckets and keys, so they are for operators.

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
    /// The build has no client of object stores.
    #[error("this build can use no object store: build it with `--features object-store`")]
    NotBuilt,
    /// The database has contents in an object store.
    #[error("the store has contents in an object store: name it in `store.objects.url`")]
    NotConfigured,
}

//! The error of opening a store.

use std::path::PathBuf;

use super::error::StoreError;
use super::objects::OpenObjectsError;

/// The reason why a store can't be opened. Never contains the password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The scheme of the address is unknown.
    #[error("the store's address begins with none of sqlite://, postgres:// and postgresql://")]
    UnknownScheme,
    /// The address can't be parsed.
    #[error("the store's address can't be understood")]
    InvalidUrl {
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no such file.
    #[error(
        "there is no file {}: point to another store with --store-url or AGENT_RUNTIME__STORE__URL, or make this one with `agent-runtime migrate`",
        path.display()
    )]
    Missing {
        /// The path of the missing file.
        path: PathBuf,
    },
    /// The database does not respond or rejects the login.
    #[error("can't connect to {database}")]
    Connect {
        /// The database, without the password.
        database: String,
        /// The driver's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The object store can't be used.
    #[error(transparent)]
    Objects(#[from] OpenObjectsError),
    /// The database responds, but has another schema, or a migration failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

//! Large contents in an object store. The database has a row for each content; a row without bytes
//! names its object. So the row alone decides whether a content exists.
//!
//! Each write makes an object with an id of its own. So an object belongs to at most one row, and
//! deleting the object of a removed row never takes the bytes of another row. The database also has
//! a list of the objects that no row names (`content_objects`):
//!
//! ```text
//! write    list the object ─▶ put the object ─▶ insert the row; takes the object off the list
//! remove   delete the row; lists the object as removable ─▶ delete the object ─▶ unlist it
//! ```
//!
//! A crash between two steps leaves the object on the list. A sweep marks listed objects as
//! removable when they are older than the grace period, and deletes them. A row can't take a
//! removable object, so a write that is slower than the grace period fails. Such a write lists its
//! object once more, so that the next sweep deletes it.
//!
//! A tenant's objects have the tenant in their key. The key comes from the row's own tenant and
//! hash, so no row leads to an object of another tenant.

#[cfg(feature = "object-store")]
mod client;
mod error;
mod port;
mod settings;

use std::sync::Arc;

pub use self::error::OpenObjectsError;
pub(crate) use self::port::{CONCURRENCY, ObjectName, Objects};
pub use self::settings::{ObjectSettings, ObjectStoreKind};

/// Whether this build has the clients of object stores.
pub const HAS_CLIENTS: bool = cfg!(feature = "object-store");

/// Opens an object store. Connects to nothing.
#[cfg(feature = "object-store")]
pub(crate) fn open(settings: &ObjectSettings) -> Result<Arc<dyn Objects>, OpenObjectsError> {
    Ok(Arc::new(client::ObjectClient::open(settings)?))
}

/// Refuses every object store: this build has no client.
#[cfg(not(feature = "object-store"))]
pub(crate) fn open(_: &ObjectSettings) -> Result<Arc<dyn Objects>, OpenObjectsError> {
    Err(OpenObjectsError::NotBuilt)
}

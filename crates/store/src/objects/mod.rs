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

mod error;
mod open;

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::error::OpenObjectsError;
use self::error::{object_error, too_late};
pub use self::open::{ObjectSettings, ObjectStoreKind};
use super::contents::MAX_CONTENT_BYTES;
use super::error::StoreError;
use values::ids::{IdSource as _, UuidV7Source};
use values::session::Hash;
use values::tenant::TenantId;

/// The most requests to the object store at once. Each holds at most one content in memory.
const MAX_REQUESTS: usize = 32;
/// The most objects of one operation that are requested at once.
pub(crate) const CONCURRENCY: usize = 8;
/// The most bytes of an object. A compressed content is never much larger than the content.
const MAX_OBJECT_BYTES: u64 = MAX_CONTENT_BYTES as u64 + 1024;

/// The names of the operations in errors.
const PUT: &str = "write an object";
const GET: &str = "read an object";
const DELETE: &str = "delete an object";

/// The object store of a store.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Arc<dyn ObjectStore>,
    /// Without credentials.
    address: String,
    prefix: Path,
    min_bytes: u64,
    patience: std::time::Duration,
    requests: Arc<Semaphore>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Names an object within its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName {
    /// The hash of the content.
    pub(crate) hash: Hash,
    /// The id, which no other object has.
    pub(crate) id: Uuid,
}

impl Objects {
    /// Returns whether a content of that many bytes has an object.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        bytes >= self.min_bytes
    }

    /// Makes the name of a new object.
    pub(crate) fn new_name(hash: Hash) -> ObjectName {
        ObjectName {
            hash,
            id: UuidV7Source.next_uuid(),
        }
    }

    /// Writes an object.
    pub(crate) async fn put(&self, tenant: &TenantId, name: ObjectName, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.path(tenant, name);
        let put = self.client.put(&path, bytes.into());
        self.request(PUT, put).await.map(drop)
    }

    /// Reads an object. Returns `None` if it does not exist.
    pub(crate) async fn get(&self, tenant: &TenantId, name: ObjectName) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(tenant, name);
        let get = async {
            let found = match self.client.get(&path).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                found => found?,
            };
            let mut bytes = BytesMut::new();
            let mut pieces = found.into_stream();
            // An object that is too large is damaged. Its beginning is enough to find that out.
            while let Some(piece) = pieces.try_next().await? {
                bytes.extend_from_slice(&piece);
                if bytes.len() as u64 > MAX_OBJECT_BYTES {
                    break;
                }
            }
            Ok(Some(bytes.freeze()))
        };
        self.request(GET, get).await
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub(crate) async fn delete(&self, tenant: &TenantId, name: ObjectName) -> Result<(), StoreError> {
        let path = self.path(tenant, name);
        let delete = async {
            match self.client.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                done => done,
            }
        };
        self.request(DELETE, delete).await
    }

    async fn request<T>(
        &self,
        operation: &'static str,
        request: impl Future<Output = Result<T, object_store::Error>>,
    ) -> Result<T, StoreError> {
        let in_turn = async {
            // Never fails: the semaphore is never closed.
            let _turn = self.requests.acquire().await;
            request.await
        };
        let done = timeout(self.patience, in_turn).await;
        done.map_err(|elapsed| too_late(operation, elapsed))?
            .map_err(object_error(operation))
    }

    fn path(&self, tenant: &TenantId, ObjectName { hash, id }: ObjectName) -> Path {
        let (hash, id) = (hash.to_string(), id.simple().to_string());
        let parts = [tenant.as_str(), &hash, &id].map(PathPart::from);
        self.prefix.parts().chain(parts).collect()
    }
}

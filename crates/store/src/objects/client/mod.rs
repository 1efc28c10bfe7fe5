//! The client of an object store, over the crate `object_store`.

mod open;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::port::{ObjectName, Objects};
use crate::contents::MAX_CONTENT_BYTES;
use crate::error::{StoreError, Unavailability};
use values::tenant::TenantId;

/// The most requests to the object store at once. Each holds at most one content in memory.
const MAX_REQUESTS: usize = 32;
/// The most bytes of an object. A compressed content is never much larger than the content.
const MAX_OBJECT_BYTES: u64 = MAX_CONTENT_BYTES as u64 + 1024;

/// The names of the operations in errors.
const PUT: &str = "write an object";
const GET: &str = "read an object";
const DELETE: &str = "delete an object";

/// The client of an object store.
pub(super) struct ObjectClient {
    client: Arc<dyn ObjectStore>,
    /// Without credentials.
    address: String,
    prefix: Path,
    min_bytes: u64,
    patience: Duration,
    requests: Arc<Semaphore>,
}

impl fmt::Debug for ObjectClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectClient")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Objects for ObjectClient {
    fn takes(&self, bytes: u64) -> bool {
        bytes >= self.min_bytes
    }

    async fn put(&self, tenant: &TenantId, name: ObjectName, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.path(tenant, name);
        let put = self.client.put(&path, bytes.into());
        self.request(PUT, put).await.map(drop)
    }

    async fn get(&self, tenant: &TenantId, name: ObjectName) -> Result<Option<Bytes>, StoreError> {
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

    async fn delete(&self, tenant: &TenantId, name: ObjectName) -> Result<(), StoreError> {
        let path = self.path(tenant, name);
        let delete = async {
            match self.client.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                done => done,
            }
        };
        self.request(DELETE, delete).await
    }
}

impl ObjectClient {
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
        done.map_err(|elapsed| StoreError::late(operation, elapsed))?
            .map_err(object_error(operation))
    }

    fn path(&self, tenant: &TenantId, ObjectName { hash, id }: ObjectName) -> Path {
        let (hash, id) = (hash.to_string(), id.simple().to_string());
        let parts = [tenant.as_str(), &hash, &id].map(PathPart::from);
        self.prefix.parts().chain(parts).collect()
    }
}

/// Makes the error of a failed request. Only a request that the object store refuses for good is
/// not worth another attempt.
fn object_error(operation: &'static str) -> impl Fn(object_store::Error) -> StoreError {
    move |error| match error {
        object_store::Error::Generic { .. } | object_store::Error::JoinError { .. } => StoreError::Unavailable {
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

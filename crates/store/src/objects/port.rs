//! The port to an object store: what the statements about contents need of one.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use crate::error::StoreError;
use values::ids::{IdSource as _, UuidV7Source};
use values::session::Hash;
use values::tenant::TenantId;

/// The most objects of one operation that are requested at once.
pub(crate) const CONCURRENCY: usize = 8;

/// The object store of a store.
#[async_trait]
pub(crate) trait Objects: Send + Sync + fmt::Debug {
    /// Returns whether a content of that many bytes has an object.
    fn takes(&self, bytes: u64) -> bool;

    /// Writes an object.
    async fn put(&self, tenant: &TenantId, name: ObjectName, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Reads an object. Returns `None` if it does not exist.
    async fn get(&self, tenant: &TenantId, name: ObjectName) -> Result<Option<Bytes>, StoreError>;

    /// Deletes an object. Succeeds if it does not exist.
    async fn delete(&self, tenant: &TenantId, name: ObjectName) -> Result<(), StoreError>;
}

/// Names an object within its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectName {
    /// The hash of the content.
    pub(crate) hash: Hash,
    /// The id, which no other object has.
    pub(crate) id: Uuid,
}

impl ObjectName {
    /// Makes the name of a new object.
    pub(crate) fn new(hash: Hash) -> Self {
        Self {
            hash,
            id: UuidV7Source.next_uuid(),
        }
    }
}

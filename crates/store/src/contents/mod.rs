//! Contents of workspaces as a trait. Contents are written before the session that refers to them.
//! They mean nothing until a session or a journal refers to their tree.
//!
//! A sweep removes contents to which nothing refers; see `retention.rs`. It does not remove
//! contents that a run wrote a short time ago. So a run stores all contents of its tree again, or
//! asks for the missing ones, before it refers to the tree.

mod patient;
mod tenant;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

pub use self::patient::PatientContents;
pub use self::tenant::TenantContents;
use crate::error::StoreError;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{Content, StoredContent};

/// The most bytes of a content. Bounds the memory that a damaged or hostile row can allocate.
pub const MAX_CONTENT_BYTES: usize = 8 << 20;

/// The most contents of one statement.
pub(crate) const MAX_BATCH: usize = 256;

/// The most bytes of the contents of one statement that writes.
pub(crate) const MAX_BATCH_BYTES: usize = MAX_CONTENT_BYTES;

/// How exactly the time of the last write of a content is stored. A row is updated at most once in
/// this time. The statements of the engines contain the same time.
pub(crate) const WRITE_PRECISION: Duration = Duration::from_mins(10);

/// Stores contents by their hash, separately for each tenant. Does not check the hashes: the reader
/// does.
///
/// Large batches are split into statements of at most 256 contents and 8 MiB.
#[async_trait]
pub trait ContentStore: Send + Sync + fmt::Debug {
    /// Stores contents. If a content is stored already, only the time of its last write changes.
    /// Refuses contents of more than [`MAX_CONTENT_BYTES`]. May be repeated.
    ///
    /// Fails with [`StoreError::TenantFull`] if the contents of the tenant would exceed its limit.
    /// Writes at the same time do not see each other. So a tenant exceeds its limit at most by one
    /// write for each that is in progress.
    async fn content_put(&self, tenant: &TenantId, contents: &[Content]) -> Result<(), StoreError>;

    /// Reads contents, in the order of the hashes. `None` stands for a content that is not stored.
    async fn content_load(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<Option<Content>>, StoreError>;

    /// Finds the stored ones among these contents. They count as written now.
    async fn content_renew(
        &self,
        tenant: &TenantId,
        hashes: &[Hash],
    ) -> Result<HashMap<Hash, StoredContent>, StoreError>;

    /// Returns the hashes that are not stored, each once and in their order. Stored ones count as
    /// written now.
    async fn content_missing(&self, tenant: &TenantId, hashes: &[Hash]) -> Result<Vec<Hash>, StoreError> {
        let stored = self.content_renew(tenant, hashes).await?;
        let mut seen = HashSet::with_capacity(hashes.len());
        let missing = hashes.iter().copied();
        Ok(missing
            .filter(|hash| !stored.contains_key(hash) && seen.insert(*hash))
            .collect())
    }

    /// Returns whether any content is in an object store.
    async fn content_needs_objects(&self) -> Result<bool, StoreError>;

    /// Returns the bytes of all contents of a tenant, uncompressed, also of those to which nothing
    /// refers. Reads one row.
    async fn content_total(&self, tenant: &TenantId) -> Result<u64, StoreError>;
}

//! Blobs: the contents of files, stored ahead of the session that will have the files.
//!
//! Nothing refers to a new blob, so the sweep of contents removes it after its grace period.

use std::sync::Arc;

use bytes::Bytes;

use crate::run::context::RunContext;
use crate::run::refusal::Refusal;
use store::contents::TenantContents;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{TreeError, find_file, store_file};

/// A blob that was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    /// The number of bytes.
    pub size: u64,
    /// Whether the blob was stored before.
    pub is_known: bool,
}

/// Stores the contents of a file under their hash. Begins the grace period again if they are
/// stored already.
pub async fn store_blob(ctx: &RunContext, tenant: &TenantId, hash: Hash, bytes: Bytes) -> Result<StoredBlob, Refusal> {
    let contents = TenantContents::new(tenant, Arc::clone(&ctx.store) as _);
    let size = bytes.len() as u64;
    let known = find_file(&*contents, hash).await.map_err(TreeError::from)?;
    if known.is_none() {
        store_file(&*contents, hash, bytes).await.map_err(TreeError::from)?;
    }
    Ok(StoredBlob {
        size,
        is_known: known.is_some(),
    })
}

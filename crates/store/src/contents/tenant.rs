//! The contents of a tenant's workspaces: the port of workspaces over the store.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;

use super::ContentStore;
use crate::error::StoreError;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{Content, Contents, ContentsError, StoredContent};

/// Reads and writes the contents of one tenant.
#[derive(Debug)]
pub struct TenantContents<S = Arc<dyn ContentStore>> {
    tenant: TenantId,
    store: S,
}

impl TenantContents {
    /// Opens the contents of a tenant.
    pub fn new(tenant: &TenantId, store: Arc<dyn ContentStore>) -> Arc<Self> {
        Arc::new(Self {
            tenant: tenant.clone(),
            store,
        })
    }
}

impl<'s, S: ContentStore> TenantContents<&'s S> {
    /// Opens the contents of a tenant for as long as a store is borrowed.
    pub(crate) fn of(tenant: &TenantId, store: &'s S) -> Self {
        Self {
            tenant: tenant.clone(),
            store,
        }
    }
}

#[async_trait]
impl<S> Contents for TenantContents<S>
where
    S: Deref<Target: ContentStore> + Send + Sync + fmt::Debug,
{
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        let found = self
            .store
            .content_load(&self.tenant, hashes)
            .await
            .map_err(unavailable)?;
        let found = found.into_iter().zip(hashes);
        found
            .map(|(content, hash)| content.ok_or(ContentsError::Missing { hash: *hash }))
            .collect()
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        self.store
            .content_put(&self.tenant, &contents)
            .await
            .map_err(unavailable)
    }

    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError> {
        self.store
            .content_renew(&self.tenant, hashes)
            .await
            .map_err(unavailable)
    }
}

fn unavailable(error: StoreError) -> ContentsError {
    match error {
        StoreError::TenantFull { limit } => ContentsError::Full { limit },
        error => ContentsError::Unavailable(error.into()),
    }
}

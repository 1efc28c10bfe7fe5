//! The contents of the files of a command. Each operation waits while the store is unavailable, as
//! the outcome of the command does, but no longer than the worker has its lease.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::sleep;

use super::PAUSE;
use super::running::Running;
use crate::session::Hash;
use crate::store::{Store, TenantContents};
use crate::tenant::TenantId;
use crate::workspace::{Content, Contents, ContentsError};

/// Reads and writes contents for a command of a tenant.
#[derive(Debug)]
pub(super) struct CommandContents {
    contents: Arc<TenantContents>,
    running: Arc<Running>,
}

impl CommandContents {
    /// Opens the contents of a tenant for a command.
    pub(super) fn new(tenant: &TenantId, store: &Arc<dyn Store>, running: &Arc<Running>) -> Arc<Self> {
        Arc::new(Self {
            contents: TenantContents::new(tenant, store),
            running: Arc::clone(running),
        })
    }

    /// Repeats an operation while the store is unavailable and the lease is in force.
    async fn patiently<T, F>(&self, mut operation: impl FnMut() -> F) -> Result<T, ContentsError>
    where
        F: Future<Output = Result<T, ContentsError>>,
    {
        loop {
            match operation().await {
                Err(error) if TenantContents::is_transient(&error) && !self.running.is_lost() => {
                    tracing::debug!(
                        error = &error as &dyn Error,
                        "the files of a command wait for the store"
                    );
                    sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }
}

#[async_trait]
impl Contents for CommandContents {
    fn tenant(&self) -> &TenantId {
        self.contents.tenant()
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        self.patiently(|| self.contents.load(hashes)).await
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        self.patiently(|| self.contents.store(contents.clone())).await
    }

    async fn missing(&self, hashes: &[Hash]) -> Result<Vec<Hash>, ContentsError> {
        self.patiently(|| self.contents.missing(hashes)).await
    }
}

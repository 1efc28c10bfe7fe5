//! The contents of the workspaces of a run, which waits while the store is unavailable, as its
//! journal and its commit do. A request about files fails at once instead, since its caller can
//! repeat it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};

use super::active::ActiveRun;
use crate::session::Hash;
use crate::store::{Store, TenantContents};
use crate::tenant::TenantId;
use crate::workspace::{Content, Contents, ContentsError};

/// Reads and writes the contents of a run's tenant. Each operation waits for the store, but no
/// longer than until the run is cancelled or another worker may have it.
#[derive(Debug)]
pub(super) struct RunContents {
    contents: Arc<TenantContents>,
    active: Arc<ActiveRun>,
    patience: Duration,
}

impl RunContents {
    /// Opens the contents for a run. Each operation waits this long for the store.
    pub(super) fn new(active: &Arc<ActiveRun>, store: &Arc<dyn Store>, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            contents: TenantContents::new(&active.tenant, store),
            active: Arc::clone(active),
            patience,
        })
    }

    /// Repeats an operation while the store is unavailable and the run waits for it.
    async fn patiently<T, F>(&self, operation: impl FnMut() -> F) -> Result<T, ContentsError>
    where
        F: Future<Output = Result<T, ContentsError>>,
    {
        let goes_on = || !self.active.cancellation.is_cancelled() && !self.active.is_lost();
        let retried = operation
            .retry(backoff(self.patience))
            .when(|error| TenantContents::is_transient(error) && goes_on());
        let retried = retried.notify(|error, _| {
            tracing::debug!(error = error as &dyn Error, "the files of a run wait for the store");
        });
        retried.await
    }
}

fn backoff(patience: Duration) -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(1))
        .with_jitter()
        .without_max_times()
        .with_total_delay(Some(patience))
}

#[async_trait]
impl Contents for RunContents {
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

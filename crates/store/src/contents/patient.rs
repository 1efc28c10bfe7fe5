//! The contents of the files of a run or of a command, which wait while the store is unavailable,
//! as the journal and the outcome do. A request about files fails at once instead, since its caller
//! can repeat it.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};

use super::{ContentStore, TenantContents};
use crate::error::StoreError;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::{Content, Contents, ContentsError, StoredContent};

/// Reads and writes the contents of a tenant. Repeats an operation while the store is unavailable.
pub struct PatientContents {
    contents: Arc<TenantContents>,
    patience: Option<Duration>,
    goes_on: Box<dyn Fn() -> bool + Send + Sync>,
}

impl PatientContents {
    /// Opens the contents of a tenant. An operation waits for as long as `patience`, if there is
    /// one, and while `goes_on` returns true.
    pub fn new(
        tenant: &TenantId,
        store: Arc<dyn ContentStore>,
        patience: Option<Duration>,
        goes_on: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            contents: TenantContents::new(tenant, store),
            patience,
            goes_on: Box::new(goes_on),
        })
    }

    async fn patiently<T, F>(&self, operation: impl FnMut() -> F) -> Result<T, ContentsError>
    where
        F: Future<Output = Result<T, ContentsError>>,
    {
        let retried = operation
            .retry(backoff(self.patience))
            .when(|error| is_transient(error) && (self.goes_on)())
            .notify(|error, _| tracing::debug!(error = error as &dyn Error, "the files of a run wait for the store"));
        retried.await
    }
}

impl fmt::Debug for PatientContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatientContents")
            .field("contents", &self.contents)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

fn is_transient(error: &ContentsError) -> bool {
    match error {
        ContentsError::Unavailable(source) => source.downcast_ref().is_some_and(StoreError::is_transient),
        _ => false,
    }
}

fn backoff(patience: Option<Duration>) -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(1))
        .with_jitter()
        .without_max_times()
        .with_total_delay(patience)
}

#[async_trait]
impl Contents for PatientContents {
    fn tenant(&self) -> &TenantId {
        self.contents.tenant()
    }

    async fn load(&self, hashes: &[Hash]) -> Result<Vec<Content>, ContentsError> {
        self.patiently(|| self.contents.load(hashes)).await
    }

    async fn store(&self, contents: Vec<Content>) -> Result<(), ContentsError> {
        self.patiently(|| self.contents.store(contents.clone())).await
    }

    async fn renew(&self, hashes: &[Hash]) -> Result<HashMap<Hash, StoredContent>, ContentsError> {
        self.patiently(|| self.contents.renew(hashes)).await
    }
}

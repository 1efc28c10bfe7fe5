//! Opens the files of a session. Reads no file.

use std::sync::Arc;

use crate::run::error::Refusal;
use crate::run::idempotency::IdempotencyKeys;
use crate::run::read::RunReader;
use store::contents::TenantContents;
use store::{Sessions, Store};
use values::clock::Clock;
use values::ids::{IdSource, SessionId};
use values::session::{Bundle, EnvironmentState};
use values::tenant::TenantId;
use workspace::{Tree, WorkspaceLimits};

/// Reads and changes the files of sessions.
#[derive(Debug)]
pub struct SessionFiles {
    /// Reads and publishes bundles.
    pub sessions: Arc<Sessions>,
    /// Reads states, and stores contents.
    pub store: Arc<dyn Store>,
    /// Finds the reason why a session does not exist.
    pub reader: Arc<RunReader>,
    /// Recognizes repeated requests.
    pub keys: Arc<IdempotencyKeys>,
    /// The limits of workspaces.
    pub limits: WorkspaceLimits,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Creates ids.
    pub ids: Arc<dyn IdSource>,
}

impl SessionFiles {
    /// Opens the files of a session. Reads only its states.
    pub async fn open(&self, tenant: &TenantId, session_id: SessionId) -> Result<Tree, Refusal> {
        let states = self.states(tenant, session_id).await?;
        Ok(self.tree_of(tenant, &states.environment))
    }

    /// Returns the files of an environment. Reads nothing.
    pub fn tree_of(&self, tenant: &TenantId, environment: &EnvironmentState) -> Tree {
        open_tree(&self.store, tenant, environment, self.limits)
    }

    /// Reads a session without its messages.
    pub(super) async fn states(&self, tenant: &TenantId, session_id: SessionId) -> Result<Bundle, Refusal> {
        let states = self.store.states_load(tenant, session_id).await?;
        self.found(tenant, session_id, states).await
    }

    /// Reads a session with the messages that continuing it needs.
    pub(super) async fn base(&self, tenant: &TenantId, session_id: SessionId) -> Result<Arc<Bundle>, Refusal> {
        let bundle = self.sessions.bundle(tenant, session_id).await?;
        self.found(tenant, session_id, bundle).await
    }

    /// Returns the value, or the reason why the session does not exist.
    pub(super) async fn found<T>(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        value: Option<T>,
    ) -> Result<T, Refusal> {
        match value {
            Some(value) => Ok(value),
            None => Err(self.reader.absent_session(tenant, session_id).await),
        }
    }
}

/// Returns the files of an environment in a store. Reads nothing.
pub fn open_tree(
    store: &Arc<dyn Store>,
    tenant: &TenantId,
    environment: &EnvironmentState,
    limits: WorkspaceLimits,
) -> Tree {
    let contents = TenantContents::new(tenant, store);
    match environment.tree() {
        Some(root) => Tree::open(contents, limits, root),
        None => Tree::empty(contents, limits),
    }
}

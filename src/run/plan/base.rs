//! The base of a run: the session that it continues, if any.

use std::sync::Arc;

use crate::run::refusal::Refusal;
use store::sessions::SessionFilter;
use store::{Page, Store, StoreError};
use values::ids::SessionId;
use values::session::Bundle;
use values::tenant::TenantId;

/// The base of a run.
#[derive(Debug)]
pub(in crate::run) enum Base {
    /// No base: the run begins a new line of sessions.
    None,
    /// A session.
    Bundle(Arc<Bundle>),
    /// A session that can't be read, and may exist. The run begins and fails, so that the failure
    /// has a record.
    Unreadable(SessionId, StoreError),
}

impl Base {
    /// Returns the session's id.
    pub(in crate::run) fn session_id(&self) -> Option<SessionId> {
        match self {
            Self::None => None,
            Self::Bundle(bundle) => Some(bundle.head.session_id),
            Self::Unreadable(session_id, _) => Some(*session_id),
        }
    }

    /// Returns the bundle.
    pub(in crate::run) fn bundle(&self) -> Option<&Arc<Bundle>> {
        match self {
            Self::Bundle(bundle) => Some(bundle),
            Self::None | Self::Unreadable(..) => None,
        }
    }
}

/// Refuses to continue a session that another one continues.
pub(in crate::run) async fn refuse_continued(store: &dyn Store, tenant: &TenantId, base: &Base) -> Result<(), Refusal> {
    let Some(parent) = base.session_id() else { return Ok(()) };
    let filter = SessionFilter {
        parent: Some(parent),
        ..SessionFilter::default()
    };
    let first = Page { before: None, limit: 1 };
    let children = store.session_list(tenant, &filter, first).await?;
    children
        .first()
        .map_or(Ok(()), |child| Err(Refusal::Conflict { run_id: child.run_id }))
}

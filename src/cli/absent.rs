//! The error of a session that does not exist.

use anyhow::anyhow;

use crate::run::refusal::no_session;
use store::Store;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

/// Makes the error of an unknown session. It says whether the id belongs to a run.
pub(super) async fn absent(store: &dyn Store, tenant: &TenantId, session_id: SessionId) -> anyhow::Error {
    match store.run_lookup(tenant, RunId::from_uuid(session_id.as_uuid())).await {
        Ok(run) => anyhow!(no_session(session_id, run.map(|run| run.summary.session_id))),
        Err(error) => error.into(),
    }
}

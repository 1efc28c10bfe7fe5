//! Opens the files of a session. Reads no file.

use std::sync::Arc;

use crate::run::context::RunContext;
use crate::run::read::absent_session;
use crate::run::refusal::Refusal;
use agent::record::ThreadName;
use store::Store;
use store::contents::TenantContents;
use values::ids::SessionId;
use values::session::{Bundle, EnvironmentState};
use values::tenant::TenantId;
use workspace::{Tree, WorkspaceLimits};

/// Opens the files of a session. Reads only its states.
pub async fn open_files(ctx: &RunContext, tenant: &TenantId, session_id: SessionId) -> Result<Tree, Refusal> {
    let states = load_states(ctx, tenant, session_id).await?;
    Ok(tree_of(ctx, tenant, &states.environment))
}

/// Returns the session to which a thread points.
pub async fn session_of_thread(ctx: &RunContext, tenant: &TenantId, name: &ThreadName) -> Result<SessionId, Refusal> {
    let thread = ctx.store.thread_lookup(tenant, name).await?;
    let thread = thread.ok_or_else(|| Refusal::UnknownThread { name: name.clone() })?;
    let name = thread.name;
    thread.session_id.ok_or(Refusal::ThreadWithoutSession { name })
}

/// Returns the files of an environment. Reads nothing.
pub fn tree_of(ctx: &RunContext, tenant: &TenantId, environment: &EnvironmentState) -> Tree {
    open_tree(&ctx.store, tenant, environment, ctx.workspace)
}

/// Reads a session without its messages.
pub(super) async fn load_states(ctx: &RunContext, tenant: &TenantId, session_id: SessionId) -> Result<Bundle, Refusal> {
    let states = ctx.store.states_load(tenant, session_id).await?;
    found(ctx, tenant, session_id, states).await
}

/// Reads a session with the messages that continuing it needs.
pub(super) async fn load_base(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Arc<Bundle>, Refusal> {
    let bundle = ctx.sessions.bundle(tenant, session_id).await?;
    found(ctx, tenant, session_id, bundle).await
}

/// Returns the value, or the reason why the session does not exist.
pub(super) async fn found<T>(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
    value: Option<T>,
) -> Result<T, Refusal> {
    match value {
        Some(value) => Ok(value),
        None => Err(absent_session(ctx, tenant, session_id).await),
    }
}

/// Returns the files of an environment in a store. Reads nothing.
pub fn open_tree(
    store: &Arc<dyn Store>,
    tenant: &TenantId,
    environment: &EnvironmentState,
    limits: WorkspaceLimits,
) -> Tree {
    let contents = TenantContents::new(tenant, Arc::clone(store) as _);
    match environment.tree() {
        Some(root) => Tree::open(contents, limits, root),
        None => Tree::empty(contents, limits),
    }
}

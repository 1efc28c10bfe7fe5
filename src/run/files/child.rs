//! Publishes a child session that differs from its parent only in its environment.

use std::sync::Arc;

use crate::run::context::{RunContext, claim_key};
use crate::run::read::absent_session;
use crate::run::refusal::Refusal;
use crate::run::request::RequestKey;
use agent::record::ThreadName;
use store::CommitError;
use store::sessions::{Commit, ConflictPolicy};
use values::ids::{BranchId, SessionId};
use values::session::{Bundle, BundleDraft, ContextState, EnvironmentState};
use values::tenant::TenantId;

/// A session that a request without a run published.
#[derive(Debug)]
pub struct ChildSession {
    /// The session. It may lack messages that continuing it does not need.
    pub bundle: Arc<Bundle>,
    /// Whether an earlier request with the same key made it.
    pub is_replay: bool,
}

/// The id of the session that a request will publish.
#[derive(Debug)]
pub(super) struct Reserved {
    session_id: SessionId,
    /// Whether an earlier request reserved it.
    is_repeated: bool,
}

/// A session to publish.
#[derive(Debug)]
pub(super) struct NewChild {
    /// The session that it continues.
    pub(super) base: Arc<Bundle>,
    pub(super) environment: EnvironmentState,
    /// Another session whose files the environment has. It must exist until the commit, since its
    /// files may be removed with it.
    pub(super) environment_from: Option<SessionId>,
    /// The thread to move to it.
    pub(super) thread: Option<ThreadName>,
    pub(super) conflict: ConflictPolicy,
}

/// Reserves the id of a session under the request's key.
pub(super) async fn reserve(
    ctx: &RunContext,
    tenant: &TenantId,
    key: Option<&RequestKey>,
) -> Result<Reserved, Refusal> {
    let new_id = SessionId::generate(&*ctx.ids);
    let known = claim_key(ctx, tenant, key, new_id.as_uuid()).await?;
    Ok(Reserved {
        session_id: known.map_or(new_id, SessionId::from_uuid),
        is_repeated: known.is_some(),
    })
}

/// Returns the session if an earlier request with the same key has published it.
pub(super) async fn made_before(
    ctx: &RunContext,
    tenant: &TenantId,
    reserved: &Reserved,
) -> Result<Option<ChildSession>, Refusal> {
    if !reserved.is_repeated {
        return Ok(None);
    }
    let bundle = ctx.sessions.bundle(tenant, reserved.session_id).await?;
    Ok(bundle.map(|bundle| ChildSession {
        bundle,
        is_replay: true,
    }))
}

/// Publishes a session that continues another one with an environment, and adds no message.
pub(super) async fn publish_child(
    ctx: &RunContext,
    tenant: &TenantId,
    reserved: &Reserved,
    child: NewChild,
) -> Result<ChildSession, Refusal> {
    let NewChild {
        base,
        environment,
        environment_from,
        thread,
        conflict,
    } = child;
    let base_id = base.head.session_id;
    let commit = Commit {
        tenant: tenant.clone(),
        draft: child_draft(ctx, reserved.session_id, base, environment),
        run: None,
        thread,
        environment_from,
        conflict,
        children: Vec::new(),
    };
    match ctx.sessions.commit(&commit).await {
        Ok(bundle) => Ok(ChildSession {
            bundle,
            is_replay: false,
        }),
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(CommitError::TooLarge(error)) => Err(Refusal::SessionTooLarge(error)),
        Err(CommitError::MissingBase) => Err(absent_session(ctx, tenant, base_id).await),
        Err(CommitError::MissingEnvironment) => {
            let missing = environment_from.unwrap_or(base_id);
            Err(absent_session(ctx, tenant, missing).await)
        }
        Err(CommitError::Conflict { run_id }) => Err(Refusal::Conflict { run_id }),
        Err(CommitError::ThreadMoved { name }) => Err(Refusal::ThreadMoved { name }),
        Err(CommitError::ThreadBusy { name, run_id }) => Err(Refusal::ThreadAtWork { name, run_id }),
        // A concurrent copy of the same request was faster.
        Err(CommitError::Exists | CommitError::LeaseLost) => {
            let is_repeated = true;
            let reserved = Reserved {
                is_repeated,
                ..*reserved
            };
            let earlier = made_before(ctx, tenant, &reserved).await?;
            earlier.ok_or(Refusal::Conflict { run_id: None })
        }
    }
}

fn child_draft(
    ctx: &RunContext,
    session_id: SessionId,
    base: Arc<Bundle>,
    environment: EnvironmentState,
) -> BundleDraft {
    BundleDraft {
        session_id,
        run_id: None,
        subagent_of: None,
        agent: base.head.agent.clone(),
        agent_version: base.head.agent_version,
        environment: Arc::new(environment),
        context: ContextState {
            updated_at: ctx.clock.now(),
            ..base.context_state()
        },
        history: base.history.clone(),
        parent: Some(base),
        new_branch_id: BranchId::generate(&*ctx.ids),
    }
}

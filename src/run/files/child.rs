//! Publishes a changed session without a run.

use std::sync::Arc;

use crate::run::context::{RunContext, claim_key};
use crate::run::read::absent_session;
use crate::run::refusal::Refusal;
use crate::run::request::RequestKey;
use agent::record::ThreadName;
use store::CommitError;
use store::sessions::{Commit, ConflictPolicy, ThreadMove};
use values::ids::{BranchId, SessionId};
use values::session::{Bundle, BundleDraft, ContextState, EnvironmentState, History, StoredContext};
use values::tenant::TenantId;

/// How often the change of a thread is tried if the thread moves meanwhile.
const THREAD_ATTEMPTS: u32 = 16;

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
pub(in crate::run) struct Reserved {
    session_id: SessionId,
    /// Whether an earlier request reserved it.
    is_repeated: bool,
}

/// A session to publish.
#[derive(Debug)]
pub(in crate::run) struct NewChild {
    /// The session that is changed. The agent and the context are its own.
    pub(in crate::run) base: Arc<Bundle>,
    /// The session whose messages the history continues.
    pub(in crate::run) parent: Option<Arc<Bundle>>,
    pub(in crate::run) history: History,
    pub(in crate::run) environment: Arc<EnvironmentState>,
    /// The session whose changes it takes over in a merge.
    pub(in crate::run) merged: Option<SessionId>,
    /// Another session than the parent whose environment it has.
    pub(in crate::run) environment_from: Option<SessionId>,
    /// The thread to move to it, which must point to the session that is changed.
    pub(in crate::run) thread: Option<ThreadName>,
    pub(in crate::run) conflict: ConflictPolicy,
}

/// The attempts to change a thread, which another request may move meanwhile.
#[derive(Debug, Default)]
pub struct Attempts(u32);

impl Attempts {
    /// Counts an attempt, and returns whether to make another one.
    pub fn again<T>(&mut self, result: &Result<T, Refusal>) -> bool {
        self.0 += 1;
        self.0 < THREAD_ATTEMPTS && matches!(result, Err(Refusal::ThreadMoved { .. }))
    }
}

impl NewChild {
    /// Makes a session that continues another one with the same messages and environment.
    pub(in crate::run) fn of(base: Arc<Bundle>) -> Self {
        Self {
            parent: Some(Arc::clone(&base)),
            history: base.history.clone(),
            environment: Arc::clone(&base.environment),
            merged: None,
            environment_from: None,
            thread: None,
            conflict: ConflictPolicy::Fork,
            base,
        }
    }
}

/// Reserves the id of a session under the request's key.
pub(in crate::run) async fn reserve(
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
pub(in crate::run) async fn made_before(
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

/// Publishes a changed session.
pub(in crate::run) async fn publish_child(
    ctx: &RunContext,
    tenant: &TenantId,
    reserved: &Reserved,
    child: NewChild,
) -> Result<ChildSession, Refusal> {
    let base_id = child.base.head.session_id;
    // The session must exist until the commit, since its files may be removed with it.
    let environment_from = child.merged.or(child.environment_from);
    let parent_id = child.parent.as_ref().map(|parent| parent.head.session_id);
    let commit = Commit {
        tenant: tenant.clone(),
        run: None,
        thread: child.thread.clone().map(|name| ThreadMove {
            name,
            from: Some(base_id),
        }),
        environment_from,
        conflict: child.conflict,
        children: Vec::new(),
        draft: child_draft(ctx, reserved.session_id, child),
    };
    match ctx.sessions.commit(&commit).await {
        Ok(bundle) => {
            let moved = commit.thread.as_ref().map(|thread| &thread.name);
            ctx.publish_session(tenant, bundle.head.session_id, moved);
            Ok(ChildSession {
                bundle,
                is_replay: false,
            })
        }
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(CommitError::TooLarge(error)) => Err(Refusal::SessionTooLarge(error)),
        Err(CommitError::MissingBase) => Err(absent_session(ctx, tenant, parent_id.unwrap_or(base_id)).await),
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

fn child_draft(ctx: &RunContext, session_id: SessionId, child: NewChild) -> BundleDraft {
    let base = child.base;
    let context = base.context_state();
    BundleDraft {
        session_id,
        merged_session_id: child.merged,
        environment_session_id: child.environment_from,
        run_id: None,
        run_status: None,
        subagent_of: None,
        agent: base.head.agent.clone(),
        agent_version: base.head.agent_version,
        environment: child.environment,
        context: ContextState {
            stored: StoredContext {
                // With another number of messages, an outdated step would seem to wait again.
                waiting: base.waiting().cloned(),
                ..context.stored
            },
            updated_at: ctx.clock.now(),
            ..context
        },
        history: child.history,
        parent: child.parent,
        new_branch_id: BranchId::generate(&*ctx.ids),
    }
}

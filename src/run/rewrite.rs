//! Changes the messages of a thread, without a run: adds some, or replaces the last ones.
//!
//! No session changes. The result continues the newest session whose messages all stay. It has the
//! agent, the context and the environment of the changed session, and its commit moves the thread.

use std::sync::Arc;

use super::context::RunContext;
use super::files::{ChildSession, NewChild, made_before, publish_child, reserve};
use super::import::{ImportContext, ImportRequest, import_session};
use super::refusal::{OpenCalls, Refusal};
use super::request::RequestKey;
use agent::record::ThreadName;
use store::Page;
use store::retention::Ancestor;
use values::ids::SessionId;
use values::message::Message;
use values::session::{Bundle, EnvironmentState, find_history_fault};
use values::tenant::TenantId;

/// How many sessions of a line are read at once.
const PAGE: u32 = 200;

/// A change of the messages of a thread.
#[derive(Debug)]
pub struct MessageChange {
    /// The thread.
    pub thread: ThreadName,
    /// The session to which it points; `None` for none yet. It holds all messages, unless the
    /// change only adds some.
    pub base: Option<Arc<Bundle>>,
    /// How many of its messages stay, from the first on.
    pub retained: usize,
    /// The messages after those.
    pub messages: Vec<Arc<Message>>,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
}

/// Publishes a session with changed messages. Fails if the thread moves meanwhile, or if its
/// session waits for answers.
pub async fn change_messages(
    ctx: &RunContext,
    tenant: &TenantId,
    change: MessageChange,
) -> Result<ChildSession, Refusal> {
    let Some(base) = change.base.clone() else {
        return first_messages(ctx, tenant, change).await;
    };
    let reserved = reserve(ctx, tenant, change.idempotency.as_ref()).await?;
    if let Some(earlier) = made_before(ctx, tenant, &reserved).await? {
        return Ok(earlier);
    }
    let base_id = base.head.session_id;
    if let Some(step) = base.waiting() {
        return Err(Refusal::AnswersRequired(OpenCalls {
            session_id: base_id,
            step: Arc::clone(step),
            at: ctx.clock.now(),
        }));
    }
    if let Some(fault) = find_history_fault(change.messages.iter().map(AsRef::as_ref)) {
        return Err(Refusal::History(fault));
    }
    let parent = parent_of(ctx, tenant, &base, change.retained).await?;
    let history = parent.as_ref().map(|parent| parent.history.clone()).unwrap_or_default();
    let (start, parent_id) = (history.len(), parent.as_ref().map(|parent| parent.head.session_id));
    let retained = change.retained.saturating_sub(start);
    let retained = base.history.iter_from(start).take(retained).cloned();
    let child = NewChild {
        history: history.with_messages(retained).with_messages(change.messages),
        parent,
        environment_from: (parent_id != Some(base_id)).then_some(base_id),
        thread: Some(change.thread),
        ..NewChild::of(base)
    };
    publish_child(ctx, tenant, &reserved, child).await
}

/// Publishes the first session of a thread.
async fn first_messages(ctx: &RunContext, tenant: &TenantId, change: MessageChange) -> Result<ChildSession, Refusal> {
    let request = ImportRequest {
        agent: None,
        environment: EnvironmentState::default(),
        context: ImportContext::default(),
        messages: change.messages.into_iter().map(Arc::unwrap_or_clone).collect(),
        thread: Some(change.thread),
        idempotency: change.idempotency,
    };
    let imported = import_session(ctx, tenant.clone(), request).await?;
    Ok(ChildSession {
        bundle: Arc::new(imported.bundle),
        is_replay: imported.is_replay,
    })
}

/// Returns the newest session of a line that has no more than so many messages; `None` if no
/// retained one has so few.
async fn parent_of(
    ctx: &RunContext,
    tenant: &TenantId,
    base: &Arc<Bundle>,
    most: usize,
) -> Result<Option<Arc<Bundle>>, Refusal> {
    if base.history.len() <= most {
        return Ok(Some(Arc::clone(base)));
    }
    let mut page = Page {
        before: None,
        limit: PAGE,
    };
    loop {
        let line = ctx.store.session_lineage(tenant, base.head.session_id, page).await?;
        let line = line.unwrap_or_default();
        if let Some(session_id) = line.iter().find_map(|ancestor| shorter(ancestor, most)) {
            return Ok(ctx.sessions.bundle(tenant, session_id).await?);
        }
        page.before = line.last().map(Ancestor::session_id);
        if line.len() < PAGE as usize {
            return Ok(None);
        }
    }
}

fn shorter(ancestor: &Ancestor, most: usize) -> Option<SessionId> {
    match ancestor {
        Ancestor::Retained(head) => (head.message_count <= most as u64).then_some(head.session_id),
        Ancestor::Removed(_) => None,
    }
}

//! Creates a thread for a caller, before its first run.

use uuid::Uuid;

use super::context::{RunContext, stored_key};
use super::read::absent_session;
use super::refusal::Refusal;
use super::request::RequestKey;
use agent::record::{ThreadName, ThreadRecord};
use store::queue::KnownRequest;
use store::threads::{ThreadCreate, ThreadDetails, ThreadDraft};
use values::ids::SessionId;
use values::tenant::TenantId;

/// A request to create a thread.
#[derive(Debug)]
pub struct NewThread {
    /// The name.
    pub name: NewName,
    /// The title and the metadata.
    pub details: ThreadDetails,
    /// The session that it points to; `None` for none yet.
    pub session_id: Option<SessionId>,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
}

/// The name of a new thread.
#[derive(Debug)]
pub enum NewName {
    /// The one that the request has.
    Given(ThreadName),
    /// One made of a new UUID. A repeated request makes the same.
    Made(fn(Uuid) -> ThreadName),
}

impl NewName {
    fn with(&self, uuid: Uuid) -> ThreadName {
        match self {
            Self::Given(name) => name.clone(),
            Self::Made(make) => make(uuid),
        }
    }
}

/// A thread that a request has created.
#[derive(Debug)]
pub struct CreatedThread {
    /// The thread as it is now.
    pub thread: ThreadRecord,
    /// Whether an earlier request with the same key created it.
    pub is_replay: bool,
}

/// Creates a thread that does not exist yet.
pub async fn create_thread(ctx: &RunContext, tenant: &TenantId, new: NewThread) -> Result<CreatedThread, Refusal> {
    let new_id = ctx.ids.next_uuid();
    let key = new.idempotency.as_ref();
    let stored = key.map(|key| stored_key(ctx, key));
    let claim = stored.as_ref().map(|key| (key, new_id));
    let draft = ThreadDraft {
        name: new.name.with(new_id),
        details: new.details,
        session_id: new.session_id,
        created_at: ctx.clock.now(),
    };
    match ctx.store.thread_create(tenant, &draft, claim).await? {
        ThreadCreate::Created(thread) => {
            ctx.publish_thread(tenant, &thread);
            Ok(CreatedThread {
                thread,
                is_replay: false,
            })
        }
        ThreadCreate::NoSession(session_id) => Err(absent_session(ctx, tenant, session_id).await),
        ThreadCreate::Exists => Err(Refusal::ThreadExists { name: draft.name }),
        ThreadCreate::Known(known) => known_thread(ctx, tenant, &new.name, key, known).await,
    }
}

/// Finds the thread of an earlier request with the key, before a repeated request is checked.
pub async fn created_before(
    ctx: &RunContext,
    tenant: &TenantId,
    name: &NewName,
    key: &RequestKey,
) -> Result<Option<CreatedThread>, Refusal> {
    let now = ctx.process.leases.now();
    match ctx.store.idempotency_lookup(tenant, &key.key, now).await? {
        Some(known) => known_thread(ctx, tenant, name, Some(key), known).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the thread of the first request to a repeated one.
async fn known_thread(
    ctx: &RunContext,
    tenant: &TenantId,
    name: &NewName,
    key: Option<&RequestKey>,
    known: KnownRequest,
) -> Result<CreatedThread, Refusal> {
    key.map_or(Ok(()), |key| key.check(known.digest))?;
    let name = name.with(known.resource_id);
    let earlier = ctx.store.thread_lookup(tenant, &name).await?;
    let thread = earlier.ok_or(Refusal::UnknownThread { name })?;
    Ok(CreatedThread {
        thread,
        is_replay: true,
    })
}

//! Creates a thread for a caller, before its first run.

use super::context::{RunContext, stored_key};
use super::read::absent_session;
use super::refusal::Refusal;
use super::request::RequestKey;
use agent::record::{ThreadName, ThreadRecord};
use store::threads::{ThreadCreate, ThreadDetails, ThreadDraft};
use values::ids::SessionId;
use values::tenant::TenantId;

/// A request to create a thread.
#[derive(Debug)]
pub struct NewThread {
    /// The name; by default a new UUID.
    pub name: Option<ThreadName>,
    /// The title and the metadata.
    pub details: ThreadDetails,
    /// The session that it points to; `None` for none yet.
    pub session_id: Option<SessionId>,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
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
        name: new.name.clone().unwrap_or_else(|| new_id.into()),
        details: new.details,
        session_id: new.session_id,
        created_at: ctx.clock.now(),
    };
    match ctx.store.thread_create(tenant, &draft, claim).await? {
        ThreadCreate::Created(thread) => Ok(CreatedThread {
            thread,
            is_replay: false,
        }),
        ThreadCreate::NoSession(session_id) => Err(absent_session(ctx, tenant, session_id).await),
        ThreadCreate::Exists => Err(Refusal::ThreadExists { name: draft.name }),
        ThreadCreate::Known(known) => {
            key.map_or(Ok(()), |key| key.check(known.digest))?;
            let name = new.name.unwrap_or_else(|| known.resource_id.into());
            let earlier = ctx.store.thread_lookup(tenant, &name).await?;
            let thread = earlier.ok_or(Refusal::UnknownThread { name })?;
            Ok(CreatedThread {
                thread,
                is_replay: true,
            })
        }
    }
}

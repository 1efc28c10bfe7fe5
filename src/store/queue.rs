//! The queue of runs as traits: who may work on which run, how far it is, and what its callers
//! want.
//!
//! A queued run has a row in the queue from its acceptance to its end. A worker *leases* the run.
//! Each lease has a number, the *fence*, which grows with each lease of the run, and also when a
//! lease is released. Every write of a worker names its fence. So a worker that lost its lease
//! writes nothing more, even if it was frozen or its clock is wrong.
//!
//! Leases expire by the database's time. Clocks only decide when a run is taken over, never who may
//! write.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::BoxStream;

use super::codec::{Payload, decode_request, plain_request};
use super::traits::StoreFuture;
use crate::agent::JournalEntry;
use crate::clock::Timestamp;
use crate::ids::{RunId, SessionId, WorkerId};
use crate::record::{RunControl, RunEvent, RunSummary, SteeringMessage, SteeringStatus, ThreadName};
use crate::session::Hash;
use crate::tenant::TenantId;
use crate::usage::Usage;

/// The right to work on a run, until another worker has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Whose run it is.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// The number of the lease, which grows with each.
    pub fence: u64,
}

/// On which terms a worker leases runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The worker.
    pub worker: WorkerId,
    /// The time: leases that end before it have expired.
    pub now: Timestamp,
    /// When the lease expires unless it is renewed.
    pub until: Timestamp,
}

/// Which runs are leased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseChoice {
    /// Those whose lease has expired, then those that wait, in their order: at most so many.
    Next(LeaseLimits),
    /// This one, if it waits.
    This(TenantId, RunId),
}

/// A run to accept: nothing of it is lost once it is in the queue.
#[derive(Debug, Clone)]
pub struct NewQueuedRun {
    /// Whose run it is.
    pub tenant: TenantId,
    /// The record as it stands: queued, or running when the lease is taken with it.
    pub summary: RunSummary,
    /// What is asked, as [`QueuedRequest::to_json`](super::QueuedRequest::to_json) writes it.
    pub request: String,
    /// Among the runs of its tenant and level, those of a higher priority are leased first.
    pub priority: i16,
    /// Runs of a higher level are leased first, whichever tenant's they are.
    pub level: i16,
    /// The most runs that the tenant may have waiting.
    pub max_waiting: Option<u32>,
    /// What to do when the thread that the summary names has another active run.
    pub if_busy: IfBusy,
    /// The key by which a repeated request is known.
    pub idempotency: Option<IdempotencyKey>,
    /// Leases the run to this worker at once, unless it has to wait for its thread.
    pub lease: Option<LeaseTerms>,
}

/// What happens to a run on a thread that has another active run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// It is refused.
    #[default]
    Reject,
    /// It waits until the others on the thread have ended.
    Queue,
    /// It waits, and the active one is told to stop.
    Interrupt,
    /// It begins from where the thread is now, and does not move it.
    Fork,
}

/// Names a request, so that a repeated one is answered as the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's key.
    pub key: String,
    /// The hash of the request.
    pub digest: Hash,
    /// When it is claimed, by the database's time: one that others had until then is free.
    pub claimed_at: Timestamp,
    /// When it is forgotten, by the same time.
    pub expires_at: Timestamp,
}

/// What became of a run that was to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the queue, and leased if that was asked for and possible.
    Accepted {
        /// The lease.
        lease: Option<Lease>,
        /// The run on the same thread that was told to stop.
        interrupted: Option<RunId>,
    },
    /// An earlier request had the key.
    Known(KnownRequest),
    /// The thread has another active run.
    ThreadBusy(RunId),
    /// The tenant has as many runs waiting as it may.
    TenantFull,
    /// The session that a run on no thread was to continue is not there: it was removed.
    MissingBase(SessionId),
}

/// What an idempotency key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRequest {
    /// The id of what the first request made.
    pub resource_id: uuid::Uuid,
    /// The hash of the first request.
    pub digest: Hash,
}

/// A run that a worker has leased.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedRun {
    /// The lease.
    pub lease: Lease,
    /// The record as it stands; its attempts count this one.
    pub summary: RunSummary,
    /// What is asked.
    pub request: StoredRequest,
    /// How a caller wants it to end.
    pub control: Option<RunControl>,
    /// Whether its end moves its thread.
    pub moves_thread: bool,
    /// Whether another worker has had it before, and has not handed it back.
    pub is_taken_over: bool,
}

/// How many runs are leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLimits {
    /// The most.
    pub runs: u32,
    /// The most among them that are [suspect](SUSPECT_ATTEMPTS).
    pub suspects: u32,
}

/// A run whose lease has expired after as many attempts may be what ends its workers.
pub const SUSPECT_ATTEMPTS: u32 = 2;

/// With how many attempts a run fails that can't be read: what one version of agent-runtime can't read, another might.
pub const UNREADABLE_ATTEMPTS: u32 = 3;

/// What is asked of a run, as the queue has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRequest(Payload);

impl StoredRequest {
    /// Holds what was just accepted, as it is.
    pub fn new(request: String) -> Self {
        Self(plain_request(request))
    }

    /// Holds what a row has.
    pub(super) fn from_row(payload: Payload) -> Self {
        Self(payload)
    }

    /// Returns the bytes of what is asked.
    pub fn bytes(&self) -> u64 {
        self.0.as_stored().length()
    }

    /// Returns what is asked, if it can be read.
    pub fn read(&self) -> Result<String, UnreadableRequest> {
        decode_request(self.0.as_stored()).map_err(|error| {
            let reason = error.to_string();
            if error.is_of_later_version() {
                UnreadableRequest::Newer(reason)
            } else {
                UnreadableRequest::Damaged(reason)
            }
        })
    }
}

/// Why what is asked of a run can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableRequest {
    /// A later version of agent-runtime has stored it; says how that is known.
    #[error("a newer version of agent-runtime has stored the request: {0}")]
    Newer(String),
    /// It is damaged; says how.
    #[error("the stored request is damaged: {0}")]
    Damaged(String),
}

/// A lease in force that was to be renewed, and what callers want of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewedLease {
    /// The lease.
    pub lease: Lease,
    /// How a caller wants the run to end.
    pub control: Option<RunControl>,
    /// Whether messages to the run wait to be applied.
    pub has_messages: bool,
    /// Whether it lasts longer now. Otherwise another transaction holds the run's row, and the lease ends when it would have.
    pub is_prolonged: bool,
}

/// An entry of a run's journal with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRecord {
    /// Its number, from 1.
    pub sequence: u64,
    /// The execution that it belongs to; empty for that of the run's own agent.
    pub scope: String,
    /// What is kept.
    pub entry: JournalEntry,
}

/// A message to a run with what has become of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SteeringRecord {
    /// The message.
    pub message: SteeringMessage,
    /// What has become of it.
    pub status: SteeringStatus,
}

/// What became of a message that was to be kept for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePut {
    /// It is kept, or one of its key was before: what has become of that one.
    Known(SteeringStatus),
    /// The run has as many messages as it takes.
    Full,
    /// The run is not in the queue and has no message of the key.
    NoRun,
}

/// Keeps the runs that have not ended, and leases them.
pub trait QueueStore: Send + Sync + fmt::Debug {
    /// Tells the time by which leases are judged, that of the database: replicas need not agree on theirs.
    fn lease_time(&self) -> StoreFuture<'_, Timestamp>;

    /// Accepts a run: its record, its place in the queue and its idempotency key, all or nothing. A thread that does not exist is
    /// made. A run that is to wait is refused where the tenant has as many waiting as the run allows, also where requests race. Among the
    /// runs of a level, tenants take turns.
    ///
    /// The record is stored as running if the lease is taken with it, and as queued otherwise; keys are judged by the time at which
    /// the summary was created. May be repeated after [`StoreError::Unavailable`](super::StoreError::Unavailable): a second attempt
    /// that finds the first one done answers as the first would have, but for the run that was told to stop.
    fn run_enqueue<'a>(&'a self, run: &'a NewQueuedRun) -> StoreFuture<'a, Enqueued>;

    /// Leases runs: first those whose lease has expired, then queued ones, by level and turn. Each
    /// turn of a tenant goes to that of its runs that has the highest priority, and among equals to the one of the lowest id. Their records say that they run, and
    /// those on threads from where: what the thread points to at the first lease. A run that waits for its thread is leased only when it
    /// was cancelled.
    ///
    /// A run whose record can't be read is not among them: what a later version has written is deferred until these leases end, and all else is
    /// tried again then, until it fails with the attempt of the number [`UNREADABLE_ATTEMPTS`].
    fn run_lease<'a>(&'a self, terms: &'a LeaseTerms, limits: LeaseLimits) -> StoreFuture<'a, Vec<LeasedRun>>;

    /// Leases a run that waits or is deferred, out of its turn: one that a caller wants to end must not wait for a worker. `None` where
    /// it does not wait, or waits for its thread and is not cancelled.
    fn run_lease_now<'a>(
        &'a self,
        terms: &'a LeaseTerms,
        tenant: &'a TenantId,
        run_id: RunId,
    ) -> StoreFuture<'a, Option<LeasedRun>>;

    /// Renews leases, all but those whose rows another transaction holds: it waits for none. One that is missing in the answer is lost, or
    /// its run has ended.
    fn lease_renew<'a>(&'a self, leases: &'a [Lease], until: Timestamp) -> StoreFuture<'a, Vec<RenewedLease>>;

    /// Gives a run back to the queue, at the head of its level: with its old turn, or the first that waits if that is earlier. The
    /// attempt does not count. Tells whether the lease was still in force; it is not any more.
    fn lease_release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, bool>;

    /// Gives a run back that others may understand: nobody has it until that time, and then it is leased like those whose lease has
    /// expired. The attempt does not count. Tells whether the lease was still in force; it is not any more.
    fn lease_defer<'a>(&'a self, lease: &'a Lease, until: Timestamp) -> StoreFuture<'a, bool>;

    /// Counts the runs that wait to be leased or for their thread, up to the limit.
    fn queue_length(&self, limit: u32) -> StoreFuture<'_, u64>;

    /// Returns a wake-up for whenever a run may have become free to lease or a control may have come. Wake-ups may be lost: whoever
    /// waits for one polls as well.
    fn queue_wake_ups(&self) -> BoxStream<'static, ()>;

    /// Says how a run shall end; a cancellation wins over a stop. Tells whether the run is in the queue, waiting or at work.
    fn run_control<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, control: RunControl) -> StoreFuture<'a, bool>;

    /// Keeps a message for a run, unless one of its key is kept already. A run takes
    /// [`MAX_RUN_MESSAGES`](crate::record::MAX_RUN_MESSAGES) of together
    /// [`MAX_RUN_MESSAGES_BYTES`](crate::record::MAX_RUN_MESSAGES_BYTES), also when they come at once.
    fn message_insert<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        message: &'a SteeringMessage,
    ) -> StoreFuture<'a, MessagePut>;

    /// Lists the messages to a run, in the order of their arrival.
    fn run_message_list<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Vec<SteeringRecord>>;

    /// Lists the messages to a run that are not applied, in the order of their arrival.
    fn waiting_message_list<'a>(&'a self, tenant: &'a TenantId, run_id: RunId)
    -> StoreFuture<'a, Vec<SteeringMessage>>;

    /// Notes that messages are applied. Tells whether the lease is in force.
    fn message_apply<'a>(&'a self, lease: &'a Lease, keys: &'a [String]) -> StoreFuture<'a, bool>;

    /// Keeps entries of a journal, all or none; one of a number that is kept already is not kept again, so an attempt may be repeated.
    /// Tells whether the lease is in force; otherwise nothing is kept.
    fn journal_append<'a>(&'a self, lease: &'a Lease, entries: &'a [JournalRecord]) -> StoreFuture<'a, bool>;

    /// Reads the journal of a run, in order.
    fn journal_read<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Vec<JournalRecord>>;

    /// Keeps events that follow on those kept before; an attempt may be repeated, also with more events. Tells whether the lease is in
    /// force; otherwise nothing is kept.
    fn event_append<'a>(&'a self, lease: &'a Lease, events: &'a [Arc<RunEvent>]) -> StoreFuture<'a, bool>;

    /// Persists in the record of a run what it has used so far; whoever leases it next reads it there. May be repeated. Tells whether the
    /// lease is in force; otherwise nothing changes.
    fn usage_update<'a>(&'a self, lease: &'a Lease, usage: &'a Usage) -> StoreFuture<'a, bool>;

    /// Reads events in order, from the one after `after` on; at least one if there is any, and then up to about `limit` and
    /// 1 MiB.
    fn event_read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<Arc<RunEvent>>>;

    /// Returns the number of the last event that is kept; 0 when none is.
    fn event_last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, u64>;

    /// Finds what an earlier request made under a key.
    fn idempotency_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a str,
        now: Timestamp,
    ) -> StoreFuture<'a, Option<KnownRequest>>;

    /// Reserves an id under a key, or returns what an earlier request made under it. May be repeated: its own id is not an earlier
    /// request's.
    fn idempotency_claim<'a>(
        &'a self,
        tenant: &'a TenantId,
        key: &'a IdempotencyKey,
        resource_id: uuid::Uuid,
    ) -> StoreFuture<'a, Option<KnownRequest>>;
}

/// Where a thread is moved to when a run ends, if it still points where the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMove {
    /// The thread.
    pub name: ThreadName,
    /// Where it must point.
    pub from: Option<SessionId>,
}

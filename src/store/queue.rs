//! The queue of runs as traits: acceptance, leases, progress and control of runs that have not
//! ended.
//!
//! A run that outlives its connection has a row in the queue from its acceptance to its end. A
//! worker *leases* it: the lease has a fence token that grows with each lease of the run, and
//! everything that a worker writes names it. So a worker that lost its lease writes nothing any
//! more. Clocks decide only when another worker takes a run over.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::codec::{Payload, decode_request, plain_request};
use super::error::StoreError;
use crate::agent::JournalEntry;
use crate::clock::Timestamp;
use crate::ids::{RunId, SessionId, WorkerId};
use crate::record::{RunControl, RunEvent, RunSummary, SteeringMessage, SteeringStatus, ThreadName};
use crate::session::Hash;
use crate::tenant::TenantId;
use crate::usage::Usage;

/// The right to work on a run, until another worker gets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// The fence token, which grows with each lease.
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

/// A run to accept.
#[derive(Debug, Clone)]
pub struct NewQueuedRun {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The record: queued, or running if the run is leased at once.
    pub summary: RunSummary,
    /// What is asked, as [`QueuedRequest::to_json`](super::QueuedRequest::to_json) writes it.
    pub request: String,
    /// Among the runs of its tenant and level, those of a higher priority are leased first.
    pub priority: i16,
    /// Runs of a higher level are leased first, of all tenants.
    pub level: i16,
    /// The most runs that the tenant may have waiting.
    pub max_waiting: Option<u32>,
    /// What to do when the thread that the summary names has another active run.
    pub if_busy: IfBusy,
    /// The key that identifies a repeated request.
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
    /// It waits, and the active run is stopped.
    Interrupt,
    /// It starts at the session that the thread points to now, and does not move the thread.
    Fork,
}

/// Identifies a request, so that a repeated one gets the result of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's key.
    pub key: String,
    /// The hash of the request.
    pub digest: Hash,
    /// When it is claimed, in database time. A key that has expired by then is free.
    pub claimed_at: Timestamp,
    /// When it expires, in database time.
    pub expires_at: Timestamp,
}

/// The result of accepting a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the queue, and leased if that was requested and possible.
    Accepted {
        /// The lease.
        lease: Option<Lease>,
        /// The run of the same thread that is stopped for it.
        interrupted: Option<RunId>,
    },
    /// An earlier request had the key.
    Known(KnownRequest),
    /// The thread has another active run.
    ThreadBusy(RunId),
    /// The tenant has as many runs waiting as it may.
    TenantFull,
    /// The base session of a run without a thread was removed.
    MissingBase(SessionId),
}

/// The request that first used an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRequest {
    /// The id of what it created.
    pub resource_id: uuid::Uuid,
    /// Its hash.
    pub digest: Hash,
}

/// A run that a worker has leased.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedRun {
    /// The lease.
    pub lease: Lease,
    /// The record; its attempts count this one.
    pub summary: RunSummary,
    /// What is asked.
    pub request: StoredRequest,
    /// How a caller wants it to end.
    pub control: Option<RunControl>,
    /// Whether its end moves the thread.
    pub moves_thread: bool,
    /// Whether another worker leased it before and did not release it.
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

/// A run is a suspect poison run if its lease has expired after so many attempts.
pub const SUSPECT_ATTEMPTS: u32 = 2;

/// A run that can't be read fails with the attempt of this number: another version of agent-runtime
/// might read it.
pub const UNREADABLE_ATTEMPTS: u32 = 3;

/// The request of a run, as the queue stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRequest(Payload);

impl StoredRequest {
    /// Wraps a request that was just accepted.
    pub fn new(request: String) -> Self {
        Self(plain_request(request))
    }

    /// Wraps the payload of a row.
    pub(super) fn from_row(payload: Payload) -> Self {
        Self(payload)
    }

    /// Returns the size of the request in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.as_stored().length()
    }

    /// Returns the request as JSON.
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

/// Why the request of a run can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableRequest {
    /// A later version of agent-runtime stored it; holds the reason to think so.
    #[error("a newer version of agent-runtime has stored the request: {0}")]
    Newer(String),
    /// It is damaged; holds the reason.
    #[error("the stored request is damaged: {0}")]
    Damaged(String),
}

/// A lease in force that was to be renewed, and the control of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewedLease {
    /// The lease.
    pub lease: Lease,
    /// How a caller wants the run to end.
    pub control: Option<RunControl>,
    /// Whether messages to the run are not applied yet.
    pub has_messages: bool,
    /// Whether it was prolonged. Otherwise another transaction holds the run's row, and the lease
    /// expires as before.
    pub is_prolonged: bool,
}

/// An entry of a run's journal with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRecord {
    /// Its number, from 1.
    pub sequence: u64,
    /// The execution that it belongs to; empty for that of the run's own agent.
    pub scope: String,
    /// The entry.
    pub entry: JournalEntry,
}

/// A message to a run with its status.
#[derive(Debug, Clone, PartialEq)]
pub struct SteeringRecord {
    /// The message.
    pub message: SteeringMessage,
    /// Its status.
    pub status: SteeringStatus,
}

/// The result of storing a message for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePut {
    /// It is stored, or one of its key was before; holds the status of that one.
    Known(SteeringStatus),
    /// The run has as many messages as it may.
    Full,
    /// The run is not in the queue and has no message of the key.
    NoRun,
}

/// Accepts runs, and answers repeated requests.
#[async_trait]
pub trait AcceptanceStore: Send + Sync + fmt::Debug {
    /// Accepts a run: its record, its slot in the queue and its idempotency key, all or nothing.
    /// Creates the thread if it does not exist. Refuses a run that would wait if the tenant has
    /// `max_waiting` runs waiting, even if requests race. Among the runs of a level, tenants take
    /// turns.
    ///
    /// Stores the record as running if the run is leased, and as queued otherwise. May be repeated
    /// after [`StoreError::Unavailable`](super::StoreError::Unavailable): a second attempt that
    /// finds the first one done returns the result of the first, but for `interrupted`.
    async fn run_enqueue(&self, run: &NewQueuedRun) -> Result<Enqueued, StoreError>;

    /// Finds the earlier request of a key.
    async fn idempotency_lookup(
        &self,
        tenant: &TenantId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownRequest>, StoreError>;

    /// Reserves an id under a key, or returns the earlier request of the key. Idempotent: the same
    /// id is no earlier request.
    async fn idempotency_claim(
        &self,
        tenant: &TenantId,
        key: &IdempotencyKey,
        resource_id: uuid::Uuid,
    ) -> Result<Option<KnownRequest>, StoreError>;
}

/// Leases the runs that have not ended.
#[async_trait]
pub trait LeaseStore: Send + Sync + fmt::Debug {
    /// Returns the database time, by which leases expire: the clocks of replicas need not agree.
    async fn lease_time(&self) -> Result<Timestamp, StoreError>;

    /// Leases runs: first those whose lease has expired, then queued ones, by level and turn. Each
    /// turn of a tenant goes to its run of the highest priority, and among equals to the one of the
    /// lowest id. Stores that they run. A run on a thread starts at the session to which the thread
    /// points at the first lease. A run that waits for its thread is leased only if it was
    /// cancelled.
    ///
    /// Leaves out runs that can't be read. One that a later version stored is deferred until these
    /// leases expire. Any other is tried again then, and fails with the attempt of the number
    /// [`UNREADABLE_ATTEMPTS`].
    async fn run_lease(&self, terms: &LeaseTerms, limits: LeaseLimits) -> Result<Vec<LeasedRun>, StoreError>;

    /// Leases a run that waits or is deferred, out of its turn: a run that a caller ends must not
    /// wait for a worker. Returns `None` if it does not wait, or if it waits for its thread and is
    /// not cancelled.
    async fn run_lease_now(
        &self,
        terms: &LeaseTerms,
        tenant: &TenantId,
        run_id: RunId,
    ) -> Result<Option<LeasedRun>, StoreError>;

    /// Renews leases. Skips locked rows, so that one slow transaction does not stop renewals. A
    /// lease that is missing in the result is lost, or its run has ended.
    async fn lease_renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<RenewedLease>, StoreError>;

    /// Releases a run to the head of its level. It has its old turn, or gets the first one that
    /// waits if that is earlier. The attempt does not count. Returns whether the lease was in
    /// force.
    async fn lease_release(&self, lease: &Lease) -> Result<bool, StoreError>;

    /// Releases a run, not to be leased before the given time; then it is leased like one whose
    /// lease has expired. The attempt does not count. Returns whether the lease was in force.
    async fn lease_defer(&self, lease: &Lease, until: Timestamp) -> Result<bool, StoreError>;

    /// Counts the runs that wait to be leased or for their thread, up to the limit.
    async fn queue_length(&self, limit: u32) -> Result<u64, StoreError>;

    /// Returns a stream of wake-ups: a run may be free to lease, or a control may have come.
    /// Wake-ups may be lost, so callers poll as well.
    fn queue_wake_ups(&self) -> BoxStream<'static, ()>;

    /// Stores how a run is to end; a cancellation wins over a stop. Returns whether the run is in
    /// the queue, waiting or at work.
    async fn run_control(&self, tenant: &TenantId, run_id: RunId, control: RunControl) -> Result<bool, StoreError>;
}

/// Stores the messages to runs that have not ended.
#[async_trait]
pub trait MessageStore: Send + Sync + fmt::Debug {
    /// Stores a message for a run, unless one of its key is stored already. A run takes
    /// [`MAX_RUN_MESSAGES`](crate::record::MAX_RUN_MESSAGES) of
    /// [`MAX_RUN_MESSAGES_BYTES`](crate::record::MAX_RUN_MESSAGES_BYTES) in all, even if they come
    /// at once.
    async fn message_insert(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        message: &SteeringMessage,
    ) -> Result<MessagePut, StoreError>;

    /// Lists the messages to a run, in the order of their arrival.
    async fn run_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringRecord>, StoreError>;

    /// Lists the messages to a run that are not applied, in the order of their arrival.
    async fn waiting_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringMessage>, StoreError>;

    /// Marks messages as applied. Returns whether the lease is in force.
    async fn message_apply(&self, lease: &Lease, keys: &[String]) -> Result<bool, StoreError>;
}

/// Stores the progress of runs that have not ended.
#[async_trait]
pub trait ProgressStore: Send + Sync + fmt::Debug {
    /// Appends entries to a journal, all or none. Idempotent by their numbers. Returns whether the
    /// lease is in force; otherwise nothing is stored.
    async fn journal_append(&self, lease: &Lease, entries: &[JournalRecord]) -> Result<bool, StoreError>;

    /// Reads the journal of a run, in order.
    async fn journal_read(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<JournalRecord>, StoreError>;

    /// Appends events to those stored before. May be repeated, also with more events. Returns
    /// whether the lease is in force; otherwise nothing is stored.
    async fn event_append(&self, lease: &Lease, events: &[Arc<RunEvent>]) -> Result<bool, StoreError>;

    /// Persists in the record what the run has used so far, for the next attempt. May be repeated.
    /// Returns whether the lease is in force; otherwise nothing changes.
    async fn usage_update(&self, lease: &Lease, usage: &Usage) -> Result<bool, StoreError>;

    /// Reads events in order, from the one after `after` on: at least one if there is any, and up
    /// to about `limit` and 1 MiB.
    async fn event_read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Arc<RunEvent>>, StoreError>;

    /// Returns the number of the last stored event; 0 if there is none.
    async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError>;
}

/// Moves a thread to the session of a run that ends, if it still points to where the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMove {
    /// The thread.
    pub name: ThreadName,
    /// The session that it must point to.
    pub from: Option<SessionId>,
}

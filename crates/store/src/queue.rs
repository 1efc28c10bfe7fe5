//! The queue of runs as traits: acceptance, leases, progress and control of runs that have not
//! ended.
//!
//! A run that outlives its connection has a row in the queue from its acceptance to its end. A
//! worker *leases* the run. Each lease has a fence token, which grows with each lease of the run.
//! Each write of a worker checks the fence token, so a worker without the lease can't write. Clocks
//! only decide when another worker may take over a run.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::codec::{Payload, decode_request, plain_request};
use super::error::StoreError;
use agent::journal::JournalEntry;
use agent::record::{RunControl, RunEvent, RunSummary, SteeringMessage, SteeringStatus};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId, WorkerId};
use values::json::Object;
use values::session::Hash;
use values::tenant::TenantId;
use values::usage::Usage;

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

impl Lease {
    /// The fence token of a run's first lease.
    pub(crate) const FIRST_FENCE: u64 = 1;

    /// Returns whether no worker had the run before.
    pub fn is_first(&self) -> bool {
        self.fence == Self::FIRST_FENCE
    }
}

/// The number of runs in the queue, of all tenants. Each number is at most 10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFigures {
    /// Runs that wait for a worker.
    pub waiting: u64,
    /// Runs that wait for another run of their thread.
    pub held: u64,
    /// Runs that a worker has leased.
    pub leased: u64,
    /// Since when the run that waits longest waits for a worker, among those that come next.
    pub oldest_waiting: Option<Timestamp>,
}

/// The terms on which a worker leases runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The worker.
    pub worker: WorkerId,
    /// The time: leases that end before it have expired.
    pub now: Timestamp,
    /// When the lease expires unless it is renewed.
    pub until: Timestamp,
}

/// The runs to lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseChoice {
    /// Up to the limits: first the runs whose lease has expired, then waiting runs in their order.
    Next(LeaseLimits),
    /// The run with this id, if it waits.
    This(TenantId, RunId),
}

/// A run to accept.
#[derive(Debug, Clone)]
pub struct NewQueuedRun {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The record: queued, or running if the run is leased at once.
    pub summary: RunSummary,
    /// The request as its caller wrote it, for the record.
    pub echo: Option<Arc<Object>>,
    /// The request as JSON.
    pub request: String,
    /// The priority. Among the runs of a tenant and level, runs of a higher priority are leased
    /// first.
    pub priority: i16,
    /// The level. Runs of a higher level are leased first, also runs of other tenants.
    pub level: i16,
    /// The most waiting runs that the tenant may have.
    pub max_waiting: Option<u32>,
    /// The policy if the thread that the summary names has another active run.
    pub if_busy: IfBusy,
    /// Whether a run on a thread begins at the base of the summary, wherever the thread points.
    pub chooses_base: bool,
    /// The run whose open calls it answers.
    pub answer: Option<NewAnswer>,
    /// The key that identifies a repeated request.
    pub idempotency: Option<IdempotencyKey>,
    /// Leases the run to this worker at once, unless it has to wait for its thread.
    pub lease: Option<LeaseTerms>,
}

/// A run that answers the open calls of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewAnswer {
    /// The run that left the calls open.
    pub run_id: RunId,
    /// Whether it may answer them although another run has answered them.
    pub is_fork: bool,
}

/// The policy for a run on a thread that has another active run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// The run is refused.
    #[default]
    Reject,
    /// The run waits until the others on the thread have ended.
    Queue,
    /// The run waits, and the active one is stopped.
    Interrupt,
    /// The run starts at the session that the thread points to now, and does not move the thread.
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
pub enum Acceptance {
    /// The run is in the queue. It is leased if the request asked for that and it need not wait.
    Accepted {
        /// The lease.
        lease: Option<Lease>,
        /// The active run of the same thread, if it was asked to stop.
        interrupted: Option<RunId>,
    },
    /// An earlier request had the key.
    Known(KnownRequest),
    /// The thread has another active run.
    ThreadBusy(RunId),
    /// This run has answered the open calls.
    Answered(RunId),
    /// The tenant has reached its limit of waiting runs.
    TenantFull,
    /// The base session was removed, and the run does not follow a thread.
    MissingBase(SessionId),
}

/// The request that first used an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRequest {
    /// The id of the resource that it created.
    pub resource_id: uuid::Uuid,
    /// The hash of the request.
    pub digest: Hash,
}

/// A run that a worker has leased.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedRun {
    /// The lease.
    pub lease: Lease,
    /// The record; its attempts count this one.
    pub summary: RunSummary,
    /// The request.
    pub request: StoredRequest,
    /// The end that a caller wants.
    pub control: Option<RunControl>,
    /// Whether the thread moves when the run ends.
    pub moves_thread: bool,
    /// Whether another worker leased it before and did not release it.
    pub is_taken_over: bool,
}

/// The limits of one lease of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseLimits {
    /// The most runs.
    pub runs: u32,
    /// The most among them that are [suspect](SUSPECT_ATTEMPTS).
    pub suspects: u32,
}

/// A run is a suspected poison run if its lease has expired after this number of attempts.
pub const SUSPECT_ATTEMPTS: u32 = 2;

/// The attempt at which an unreadable run fails. Before that, another version of agent-runtime may
/// be able to read it.
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
    /// A later version of agent-runtime stored it. Contains the reason to assume so.
    #[error("a newer version of agent-runtime has stored the request: {0}")]
    Newer(String),
    /// The request is damaged. Contains the reason.
    #[error("the stored request is damaged: {0}")]
    Damaged(String),
}

/// A lease in force that was to be renewed, and the control of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewedLease {
    /// The lease.
    pub lease: Lease,
    /// The end that a caller wants.
    pub control: Option<RunControl>,
    /// Whether messages to the run are not applied yet.
    pub has_messages: bool,
    /// Whether the lease was renewed. If not, another transaction holds the run's row, and the
    /// lease still expires when it did before.
    pub is_prolonged: bool,
}

/// An entry of a run's journal with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalRecord {
    /// The number of the entry, from 1.
    pub sequence: u64,
    /// The execution that it belongs to; empty for the execution of the run's own agent.
    pub scope: String,
    /// The entry.
    pub entry: JournalEntry,
    /// The hash of the root directory of the run's files at this entry, if there are any. A sweep
    /// leaves them alone as long as the entry is stored.
    pub tree: Option<Hash>,
}

/// A message to a run with its status.
#[derive(Debug, Clone, PartialEq)]
pub struct SteeringRecord {
    /// The message.
    pub message: SteeringMessage,
    /// The status of the message.
    pub status: SteeringStatus,
}

/// The result of storing a message for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePut {
    /// A message with this key is stored, by this call or an earlier one. Contains its status.
    Known(SteeringStatus),
    /// The run has reached its limit of messages.
    Full,
    /// The run is not in the queue and has no message of the key.
    NoRun,
}

/// Accepts runs. Returns the first result to a repeated request.
#[async_trait]
pub trait AcceptanceStore: Send + Sync + fmt::Debug {
    /// Accepts a run: its record, its slot in the queue and its idempotency key, all or nothing.
    /// Creates the thread if it does not exist. Marks the calls that the run answers, as
    /// `run_answer` does. Refuses a run that would wait if the tenant has `max_waiting` runs
    /// waiting, even if requests race. Among the runs of a level, tenants take turns.
    ///
    /// Stores the record as running if the run is leased, and as queued otherwise. May be repeated
    /// after [`StoreError::Unavailable`]: if the first attempt took
    /// effect, the second one returns the same result, except for `interrupted`.
    async fn run_accept(&self, run: &NewQueuedRun) -> Result<Acceptance, StoreError>;

    /// Marks the open calls of a run as answered by another run, which is in the queue. Returns the
    /// run that has answered them before. They are open again if the run that answers them ends
    /// without a session. A waiting run without a record can't be marked.
    async fn run_answer(&self, tenant: &TenantId, waiting: RunId, by: RunId) -> Result<Option<RunId>, StoreError>;

    /// Finds the earlier request of a key.
    async fn idempotency_lookup(
        &self,
        tenant: &TenantId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownRequest>, StoreError>;

    /// Reserves an id under a key, or returns the earlier request of the key. Idempotent: a request
    /// with the same id does not count as an earlier one.
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
    /// Returns the database time. Leases expire by it, so the clocks of replicas need not agree.
    async fn lease_time(&self) -> Result<Timestamp, StoreError>;

    /// Leases runs: first those whose lease has expired, then queued ones, by level and turn. In
    /// its turn, a tenant gets its run with the highest priority; among equals, the one with the
    /// lowest id. Sets the status of the runs to running. The first lease of a run on a thread sets
    /// the session at which the run starts: the one to which the thread points, unless the run has
    /// chosen its base. A run that waits for its thread is leased only if it was cancelled.
    ///
    /// Leaves out runs that can't be read. They may be leased again after these leases expire.
    /// Attempts do not count for a run that a later version stored. Any other unreadable run fails
    /// at attempt [`UNREADABLE_ATTEMPTS`].
    async fn run_lease(&self, terms: &LeaseTerms, limits: LeaseLimits) -> Result<Vec<LeasedRun>, StoreError>;

    /// Leases a waiting or deferred run out of turn, so that a run that a caller ends need not wait
    /// for a worker. Returns `None` if the run does not wait. Also returns `None` if it waits for
    /// its thread and is not cancelled.
    async fn run_lease_now(
        &self,
        terms: &LeaseTerms,
        tenant: &TenantId,
        run_id: RunId,
    ) -> Result<Option<LeasedRun>, StoreError>;

    /// Renews leases. Skips locked rows, so that one slow transaction does not stop renewals. If a
    /// lease is missing in the result, it is lost or its run has ended.
    async fn lease_renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<RenewedLease>, StoreError>;

    /// Releases a run to the head of its level. The run returns to its old turn, or to the turn of
    /// the first waiting run if that is earlier. The attempt does not count. Returns whether the
    /// lease was in force.
    async fn lease_release(&self, lease: &Lease) -> Result<bool, StoreError>;

    /// Releases a run. It can't be leased before the given time. From then on it is leased like a
    /// run with an expired lease. The attempt does not count. Returns whether the lease was in
    /// force.
    async fn lease_defer(&self, lease: &Lease, until: Timestamp) -> Result<bool, StoreError>;

    /// Counts the runs that wait to be leased or for their thread, up to the limit.
    async fn queue_length(&self, limit: u32) -> Result<u64, StoreError>;

    /// Counts the runs in the queue, of all tenants.
    async fn queue_figures(&self) -> Result<QueueFigures, StoreError>;

    /// Returns a stream of wake-ups. A wake-up means that a run may be free to lease or that a
    /// caller may have stored a control. Wake-ups may be lost, so callers poll as well.
    fn queue_wake_ups(&self) -> BoxStream<'static, ()>;

    /// Stores how a run is to end; a cancellation wins over a stop. Returns whether the run is in
    /// the queue, waiting or running.
    async fn run_control(&self, tenant: &TenantId, run_id: RunId, control: RunControl) -> Result<bool, StoreError>;
}

/// Stores the messages to runs that have not ended.
#[async_trait]
pub trait MessageStore: Send + Sync + fmt::Debug {
    /// Stores a message for a run, unless a message with its key is stored already. A run accepts
    /// up to [`MAX_RUN_MESSAGES`](agent::record::MAX_RUN_MESSAGES) messages and
    /// [`MAX_RUN_MESSAGES_BYTES`](agent::record::MAX_RUN_MESSAGES_BYTES) bytes in all, even if
    /// messages arrive at the same time.
    async fn message_insert(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        message: &SteeringMessage,
    ) -> Result<MessagePut, StoreError>;

    /// Lists the messages to a run, in the order of their arrival.
    async fn run_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringRecord>, StoreError>;

    /// Lists the messages to a run that are not applied yet, in the order of their arrival.
    async fn waiting_message_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<SteeringMessage>, StoreError>;

    /// Marks messages as applied. Returns whether the lease is in force.
    async fn message_apply(&self, lease: &Lease, keys: &[String]) -> Result<bool, StoreError>;
}

/// Stores the progress of runs that have not ended.
#[async_trait]
pub trait ProgressStore: Send + Sync + fmt::Debug {
    /// Appends entries to the journal of a run, and events to those stored before, all or none.
    /// Skips entries whose numbers are already stored. May be repeated, also with more events.
    /// Returns whether the lease is in force; otherwise nothing is stored.
    async fn progress_append(
        &self,
        lease: &Lease,
        entries: &[JournalRecord],
        events: &[Arc<RunEvent>],
    ) -> Result<bool, StoreError>;

    /// Reads the journal of a run, in order.
    async fn journal_read(&self, tenant: &TenantId, run_id: RunId) -> Result<Vec<JournalRecord>, StoreError>;

    /// Persists the usage of the run so far in its record, for the next attempt. May be repeated.
    /// Returns whether the lease is in force; otherwise nothing changes.
    async fn usage_update(&self, lease: &Lease, usage: &Usage) -> Result<bool, StoreError>;

    /// Reads the events after number `after`, in order. Returns at least one if there is any, and
    /// up to about `limit` events and 1 MiB.
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

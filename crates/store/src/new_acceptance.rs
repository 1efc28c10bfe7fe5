//! The encoded acceptance of a run. Contains no SQL.

use super::codec::{EncodeError, encode_request};
use super::error::StoreError;
use super::queue::{IdempotencyKey, IfBusy, NewAnswer, NewQueuedRun};
use super::rows::{NewRun, QueueRow, StoredTime, Value, values};
use agent::record::{RunRecord, RunStatus, RunSummary};
use tasks::off_thread::by_size_of;
use values::ids::SessionId;
use values::tenant::TenantId;

/// The operation's name in errors.
pub(crate) const OPERATION: &str = "accept run";

/// The values of the rows that the acceptance of a run writes, and its conditions.
#[derive(Debug)]
pub(crate) struct NewAcceptance {
    pub(crate) tenant: TenantId,
    pub(crate) run: NewRun,
    pub(crate) queue: QueueRow,
    pub(crate) if_busy: IfBusy,
    pub(crate) answer: Option<NewAnswer>,
    pub(crate) max_waiting: Option<u32>,
    pub(crate) idempotency: Option<IdempotencyKey>,
}

impl NewAcceptance {
    /// Encodes a run, on another thread if its request is large.
    pub(crate) async fn make(run: &NewQueuedRun) -> Result<Self, StoreError> {
        let bytes = run.request.len() as u64;
        let prepared = by_size_of(&run.tenant, bytes, run, prepare).await;
        prepared.map_err(StoreError::failed(OPERATION))
    }

    /// Returns the row of a run that waits for its thread.
    pub(crate) fn held(self) -> Self {
        let mut waiting = self.unleased();
        waiting.queue.is_held = true;
        waiting
    }

    /// Returns the row of a run that waits for a worker.
    pub(crate) fn unleased(mut self) -> Self {
        RunStatus::Queued.as_str().clone_into(&mut self.run.row.status);
        self.run.row.started_at = None;
        self.run.row.attempts = 0;
        self.queue.fence = 0;
        self.queue.attempts = 0;
        self.queue.leased_until = None;
        self.queue.owner = None;
        self
    }

    /// Returns the name of its thread.
    pub(crate) fn thread(&self) -> Option<&str> {
        self.queue.thread.as_deref()
    }

    /// Returns the values of the statement that reads the state of the run's thread: the tenant,
    /// the thread, and the idempotency key with the time of its claim.
    pub(crate) fn thread_values(&self) -> Vec<Value<'_>> {
        let key = self.idempotency.as_ref();
        values![
            &self.tenant,
            self.thread(),
            key.map(|key| key.key.as_str()),
            key.map(|key| key.claimed_at)
        ]
    }

    /// Returns the session that must exist. A run that follows a thread needs none: it continues
    /// the session to which the thread points when the run begins.
    pub(crate) fn needed_base(&self) -> Option<SessionId> {
        let base = self.run.row.base_session_id.filter(|_| !self.queue.follows_thread);
        base.map(SessionId::from_uuid)
    }

    /// Returns whether the run is leased at once.
    pub(crate) fn is_leased(&self) -> bool {
        self.queue.leased_until.is_some()
    }

    /// Returns whether a worker may lease the run now.
    pub(crate) fn is_free(&self) -> bool {
        !self.is_leased() && !self.queue.is_held
    }
}

fn prepare(run: &NewQueuedRun) -> Result<NewAcceptance, EncodeError> {
    let mut summary = RunSummary {
        status: RunStatus::Queued,
        started_at: None,
        attempts: 0,
        ..run.summary.clone()
    };
    if let Some(terms) = run.lease {
        summary.status = RunStatus::Running;
        summary.attempts = 1;
        summary.begin(run.summary.started_at.unwrap_or(terms.now));
    }
    let record = RunRecord {
        echo: run.echo.clone(),
        ..RunRecord::without_output(summary)
    };
    let accepted_with_lease = i32::from(run.lease.is_some());
    let request = encode_request(&run.request)?;
    Ok(NewAcceptance {
        tenant: run.tenant.clone(),
        run: NewRun::new(&record, &[], None)?,
        queue: QueueRow {
            run_id: run.summary.run_id.as_uuid(),
            thread: run.summary.thread.as_ref().map(|thread| thread.as_str().to_owned()),
            moves_thread: run.summary.thread.is_some() && run.if_busy != IfBusy::Fork,
            follows_thread: run.summary.thread.is_some() && !run.chooses_base,
            is_held: false,
            priority: run.priority,
            level: run.level,
            enqueued_at: StoredTime(run.summary.created_at),
            fence: accepted_with_lease.into(),
            attempts: accepted_with_lease,
            leased_until: run.lease.map(|terms| StoredTime(terms.until)),
            owner: run.lease.map(|terms| terms.worker.to_string()),
            schema_version: request.schema_version,
            encoding: request.encoding,
            request: request.bytes,
        },
        if_busy: run.if_busy,
        answer: run.answer,
        max_waiting: run.max_waiting,
        idempotency: run.idempotency.clone(),
    })
}

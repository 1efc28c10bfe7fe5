//! A run to be accepted, encoded for its rows. No SQL.

use super::codec::{EncodeError, Payload, encode_request};
use super::error::StoreError;
use super::new_run::NewRun;
use super::queue::{IdempotencyKey, IfBusy, LeaseTerms, NewQueuedRun};
use super::rows::StoredTime;
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::off_thread::by_size_of;
use crate::record::{RunRecord, RunStatus, RunSummary, ThreadName};
use crate::tenant::TenantId;

/// What accepting a run is called in errors.
pub(crate) const OPERATION: &str = "enqueue run";

/// The values of the rows of a run that is to be accepted.
#[derive(Debug)]
pub(crate) struct NewQueueRow {
    pub(crate) tenant: TenantId,
    pub(crate) run: NewRun,
    pub(crate) thread: Option<ThreadName>,
    pub(crate) if_busy: IfBusy,
    pub(crate) is_held: bool,
    pub(crate) priority: i16,
    pub(crate) level: i16,
    pub(crate) max_waiting: Option<u32>,
    pub(crate) request: Payload,
    pub(crate) accepted_at: Timestamp,
    pub(crate) idempotency: Option<IdempotencyKey>,
    pub(crate) lease: Option<LeaseTerms>,
}

impl NewQueueRow {
    /// Encodes a run, beside the async workers if what is asked of it is large. It is at work already when it is leased at once.
    pub(crate) async fn make(run: &NewQueuedRun) -> Result<Self, StoreError> {
        let bytes = run.request.len() as u64;
        let prepared = by_size_of(&run.tenant, bytes, run, prepare).await;
        prepared.map_err(|error| StoreError::Failed {
            operation: OPERATION,
            source: error.into(),
        })
    }

    /// Makes it wait for its thread.
    pub(crate) fn held(self) -> Self {
        Self {
            is_held: true,
            ..self.unleased()
        }
    }

    /// Makes it wait: nobody has a lease yet.
    pub(crate) fn unleased(self) -> Self {
        Self {
            lease: None,
            run: NewRun {
                status: RunStatus::Queued.as_str(),
                started_at: None,
                attempts: 0,
                ..self.run
            },
            ..self
        }
    }

    /// Returns the session that must be there. A run on a thread continues what that points to when it begins.
    pub(crate) fn needed_base(&self) -> Option<SessionId> {
        let base = self.run.base_session_id.filter(|_| self.thread.is_none());
        base.map(SessionId::from_uuid)
    }

    /// Tells whether its end moves a thread.
    pub(crate) fn moves_thread(&self) -> bool {
        self.thread.is_some() && self.if_busy != IfBusy::Fork
    }

    /// Tells whether a worker may lease it now.
    pub(crate) fn is_free(&self) -> bool {
        self.lease.is_none() && !self.is_held
    }

    /// Returns the number of the lease that it begins with: 0 for none.
    pub(crate) fn fence(&self) -> i64 {
        i64::from(self.lease.is_some())
    }

    /// Returns when the lease that it begins with expires.
    pub(crate) fn leased_until(&self) -> Option<StoredTime> {
        self.lease.map(|terms| StoredTime(terms.until))
    }

    /// Returns who leases it at once.
    pub(crate) fn owner(&self) -> Option<String> {
        self.lease.map(|terms| terms.worker.to_string())
    }
}

fn prepare(run: &NewQueuedRun) -> Result<NewQueueRow, EncodeError> {
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
        summary,
        output: Vec::new(),
        value: None,
        stop_signal: None,
    };
    Ok(NewQueueRow {
        tenant: run.tenant.clone(),
        run: NewRun::new(&record, &[])?,
        thread: run.summary.thread.clone(),
        if_busy: run.if_busy,
        is_held: false,
        priority: run.priority,
        level: run.level,
        max_waiting: run.max_waiting,
        request: encode_request(&run.request)?,
        accepted_at: run.summary.created_at,
        idempotency: run.idempotency.clone(),
        lease: run.lease,
    })
}

//! The last events of a run: `session.committed`, if it has a session, and the terminal event.
//!
//! Both are derived from the run's record and its session: by the worker that ends the run, and
//! later by readers. The record determines their numbers: the terminal event has the number
//! `event_count`. So they need not be stored, and never change.

use std::sync::Arc;

use agent::record::{RunEvent, RunEventPayload, RunRecord, RunSummary};
use store::{Store, StoreError};
use values::session::SessionHead;
use values::tenant::TenantId;

/// The last events of a run that has ended. They may be large, so all readers share them.
#[derive(Debug, Clone)]
pub(in crate::run) struct EndEvents {
    /// The event `session.committed`; `None` if the run has no session or the session was removed.
    committed: Option<Arc<RunEvent>>,
    terminal: Arc<RunEvent>,
    first: u64,
}

impl EndEvents {
    /// Returns how many last events a run has. Its status is final.
    pub(in crate::run) fn count(run: &RunSummary) -> u64 {
        if run.has_session() { 2 } else { 1 }
    }

    /// Creates the events from the record of a run and its session.
    pub(in crate::run) fn new(record: &Arc<RunRecord>, session: Option<&SessionHead>) -> Self {
        let run = &record.summary;
        let last = run.event_count.max(1);
        let event = |sequence, time, payload| {
            Arc::new(RunEvent {
                sequence,
                run_id: run.run_id,
                time,
                payload,
            })
        };
        Self {
            committed: session.map(|head| event(last - 1, head.created_at, RunEventPayload::committed(head))),
            terminal: event(last, run.ended_at(), RunEventPayload::terminal(Arc::clone(record))),
            first: (last + 1).saturating_sub(Self::count(run)).max(1),
        }
    }

    /// Creates the events from the record of a run. Reads the session from the store.
    pub(in crate::run) async fn read(
        store: &dyn Store,
        tenant: &TenantId,
        record: RunRecord,
    ) -> Result<Self, StoreError> {
        let session = if record.summary.has_session() {
            store.session_lookup(tenant, record.summary.session_id).await?
        } else {
            None
        };
        Ok(Self::new(&Arc::new(record), session.as_ref()))
    }

    /// Returns the number of the first of these events.
    pub(in crate::run) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the events whose number is higher than `after`. Always includes the terminal event.
    pub(in crate::run) fn after(self, after: u64) -> impl Iterator<Item = Arc<RunEvent>> {
        let committed = self.committed.filter(|event| after < event.sequence);
        committed.into_iter().chain([self.terminal])
    }
}

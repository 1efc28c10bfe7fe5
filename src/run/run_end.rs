//! The last events of an ended run, made from its record and its session. All readers share them,
//! since they may be large.

use std::sync::Arc;

use crate::record::{RunEvent, RunEventPayload, RunRecord};
use crate::store::{Store, StoreError};
use crate::tenant::TenantId;

/// The last events of a run.
#[derive(Debug, Clone)]
pub(super) struct RunEnd {
    pub(super) terminal: Arc<RunEvent>,
    /// The publication of its session, unless that was removed since.
    committed: Option<Arc<RunEvent>>,
    has_session: bool,
}

impl RunEnd {
    /// Makes the last events of a run that has ended.
    pub(super) async fn read(store: &dyn Store, tenant: &TenantId, run: RunRecord) -> Result<Self, StoreError> {
        let (run_id, session_id) = (run.summary.run_id, run.summary.session_id);
        let last = run.summary.event_count.max(1);
        let event = |sequence, time, payload| {
            Arc::new(RunEvent {
                sequence,
                run_id,
                time,
                payload,
            })
        };
        let has_session = run.summary.status.has_session();
        let terminal = event(last, run.summary.ended_at(), RunEventPayload::terminal(Arc::new(run)));
        let mut committed = None;
        if has_session {
            let head = store.session_lookup(tenant, session_id).await?;
            committed = head.map(|head| event(last - 1, head.created_at, RunEventPayload::committed(&head)));
        }
        Ok(Self {
            terminal,
            committed,
            has_session,
        })
    }

    /// Returns how many events the run has told at its end.
    pub(super) fn event_count(&self) -> u64 {
        if self.has_session { 2 } else { 1 }
    }

    /// Returns the events for a reader that has read so far. One that has them all reads the terminal one once more.
    pub(super) fn events_after(self, after: u64) -> Vec<Arc<RunEvent>> {
        let committed = self.committed.filter(|event| after < event.sequence);
        committed.into_iter().chain([self.terminal]).collect()
    }
}

//! The sources of the events of a run, in the order in which they are read:
//!
//! ```text
//! memory   the log of this process, which works on the run or has   Board::event_read_here
//! Redis    what other processes share of their runs                 BoardEvents
//! store    the events of queued runs, a second after they happen    StoredEvents
//! record   the last events of a run that has ended, for ever        EndEvents
//! ```
//!
//! The first source with the next event wins. No source repairs another one: if Redis is down or
//! was emptied, the events come from the store, a little later. The sources agree, since no attempt
//! at a queued run shows an event that a later attempt could not find. They disagree only after
//! events were lost. Then the events after the newest `run.resumed` are the valid ones.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::end::EndEvents;
use agent::record::{RunEvent, RunEventPayload};
use board::Board;
use store::{Store, StoreError};
use values::ids::RunId;
use values::tenant::TenantId;

/// The most events of one read.
pub(in crate::run) const BATCH: u32 = 256;

/// Events in their order.
pub(in crate::run) type Events = Vec<Arc<RunEvent>>;

/// A source of events of runs.
pub(in crate::run) trait EventSource: Send + Sync {
    /// Reads the events whose number is higher than `after`, without a gap. Returns none if this
    /// source does not have the next one.
    fn read<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, after: u64)
    -> BoxFuture<'a, Result<Events, StoreError>>;

    /// Returns the number of the last event, or 0 if there is none. Returns `None` if the number is
    /// unknown now.
    fn last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;
}

/// The events on the board, of this process and of others. Has none while the board can't be
/// reached.
pub(in crate::run) struct BoardEvents<'s>(pub(in crate::run) &'s Board);

/// The events in the store.
pub(in crate::run) struct StoredEvents<'s>(pub(in crate::run) &'s dyn Store);

/// The result of a read after the last event that a reader has.
#[derive(Debug, Clone)]
pub(in crate::run) enum Found {
    /// The events that follow.
    Events(Events),
    /// No event yet.
    Nothing,
    /// Only the last events of the run.
    Ended(EndEvents),
    /// No event, and the reader has events that were lost. Contains the number of the newest
    /// `run.resumed`.
    Resumed(u64),
    /// No event, and the cursor of the reader is beyond the last event. Contains the number of the
    /// last event.
    Ahead(u64),
    /// The next event is no longer retained. Only this process had it.
    Gone,
    /// No source knows the run.
    Unknown,
    /// The store can't be read.
    Unreadable(Arc<StoreError>),
}

impl EventSource for BoardEvents<'_> {
    fn read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
    ) -> BoxFuture<'a, Result<Events, StoreError>> {
        Box::pin(async move {
            let events = self.0.event_read(tenant, run_id, after, BATCH as usize).await;
            Ok(events.unwrap_or_default())
        })
    }

    fn last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move { Ok(self.0.event_last(tenant, run_id).await.ok()) })
    }
}

impl EventSource for StoredEvents<'_> {
    fn read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
    ) -> BoxFuture<'a, Result<Events, StoreError>> {
        self.0.event_read(tenant, run_id, after, BATCH)
    }

    fn last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move { self.0.event_last(tenant, run_id).await.map(Some) })
    }
}

/// Returns the number of the last event of any source; `None` if it is unknown now.
pub(in crate::run) async fn last_event(
    sources: &[&dyn EventSource],
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<u64>, StoreError> {
    let mut newest = 0;
    for source in sources {
        let Some(last) = source.last(tenant, run_id).await? else {
            return Ok(None);
        };
        newest = newest.max(last);
    }
    Ok(Some(newest))
}

/// Finds the number of the newest `run.resumed` of any source.
pub(in crate::run) async fn newest_resumption(
    sources: &[&dyn EventSource],
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<u64>, StoreError> {
    let (mut newest, mut after) = (None, 0);
    'next: loop {
        for source in sources {
            let events = source.read(tenant, run_id, after).await?;
            if let Some(last) = events.last() {
                after = last.sequence;
                let is_resumption = |event: &&Arc<RunEvent>| matches!(event.payload, RunEventPayload::Resumed { .. });
                let resumed = events.iter().rfind(is_resumption);
                newest = resumed.map(|event| event.sequence).or(newest);
                continue 'next;
            }
        }
        return Ok(newest);
    }
}

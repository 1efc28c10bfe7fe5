//! The encoded end of a run: its record, its events and its webhooks. Contains no SQL.

use std::sync::Arc;

use super::codec::{EncodeError, Payload, encode_events};
use super::rows::{LeaseKey, NewDeliveryRow, NewRun, Row, SettlementRow, StoredTime, Value, stored_count};
use super::runs::RunEnd;
use agent::record::{RunEvent, RunStatus, ThreadName, event_weight};
use tasks::off_thread::by_size_of;
use values::json::weight;
use values::tenant::TenantId;

/// The values of the rows that the end of a run writes.
#[derive(Debug)]
pub(crate) struct NewEnd {
    pub(crate) run: NewRun,
    pub(crate) lease: Option<LeaseKey>,
    pub(crate) thread: Option<ThreadName>,
    pub(crate) events: Option<NewEvents>,
    pub(crate) applied: Vec<String>,
    pub(crate) deliveries: Vec<NewDeliveryRow>,
    pub(crate) settlement: Option<SettlementRow>,
}

/// The values of a row of `run_events`.
#[derive(Debug)]
pub(crate) struct NewEvents {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) created_at: StoredTime,
    pub(crate) payload: Payload,
}

impl NewEnd {
    /// Encodes the end of a run without a session, on another thread if it is large.
    pub(crate) async fn make(tenant: &TenantId, end: &RunEnd) -> Result<Self, EncodeError> {
        by_size_of(tenant, end_weight(end), end, |end| Self::new(end, None)).await
    }

    /// Encodes the end of a run. `output_messages` is how many of the last messages of its session
    /// are its output, if the record refers to them.
    pub(super) fn new(end: &RunEnd, output_messages: Option<i16>) -> Result<Self, EncodeError> {
        let run_id = end.record.summary.run_id;
        let deliveries = end.deliveries.iter();
        let deliveries = deliveries.map(|delivery| NewDeliveryRow::new(Some(run_id), delivery));
        Ok(Self {
            run: NewRun::new(&end.record, &end.steps, output_messages)?,
            lease: end.lease.as_ref().map(LeaseKey::from),
            thread: end.record.summary.thread.clone(),
            events: NewEvents::new(&end.events)?,
            applied: end.applied.clone(),
            deliveries: deliveries.collect::<Result<_, _>>()?,
            settlement: end.is_metered.then(|| SettlementRow {
                spent: end.record.summary.usage.known_cost().microdollars(),
            }),
        })
    }

    /// Returns whether the run ends without a session.
    pub(crate) fn is_without_session(&self) -> bool {
        let statuses = [RunStatus::Failed, RunStatus::Cancelled];
        statuses.iter().any(|status| self.run.row.status == status.as_str())
    }

    /// Returns the name of the run's thread.
    pub(crate) fn thread_name(&self) -> Option<&str> {
        self.thread.as_ref().map(ThreadName::as_str)
    }

    /// Returns whether it writes only the record and the events, apart from rows that leave the
    /// queue.
    pub(crate) fn is_plain(&self) -> bool {
        let is_on_thread = self.lease.is_some() && self.thread.is_some();
        self.deliveries.is_empty() && self.applied.is_empty() && !is_on_thread
    }

    /// Returns about how many bytes it sends to the database.
    pub(crate) fn bytes(&self) -> usize {
        self.run.bytes() + self.events.as_ref().map_or(0, |events| events.payload.bytes.len())
    }

    /// Returns whether the record is all that is written.
    pub(crate) fn is_record_only(&self) -> bool {
        self.lease.is_none() && self.events.is_none() && self.deliveries.is_empty() && self.settlement.is_none()
    }
}

impl NewEvents {
    /// Encodes events, on another thread if they are large. Returns `None` for an empty list.
    pub(crate) async fn make(tenant: &TenantId, events: &[Arc<RunEvent>]) -> Result<Option<Self>, EncodeError> {
        by_size_of(tenant, events_weight(events), events, Self::new).await
    }

    /// Encodes events; returns `None` for an empty list.
    fn new(events: &[Arc<RunEvent>]) -> Result<Option<Self>, EncodeError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return Ok(None);
        };
        Ok(Some(Self {
            first: stored_count(first.sequence),
            last: stored_count(last.sequence),
            created_at: StoredTime(last.time),
            payload: encode_events(events)?,
        }))
    }
}

/// Estimates the memory of the data that the end of a run encodes, in bytes.
pub(super) fn end_weight(end: &RunEnd) -> u64 {
    let deliveries = end.deliveries.iter().map(|delivery| delivery.body.len());
    let rest = weight(&end.record) + weight(&end.steps) + deliveries.sum::<usize>();
    rest as u64 + events_weight(&end.events)
}

fn events_weight(events: &[Arc<RunEvent>]) -> u64 {
    events.iter().map(|event| event_weight(&event.payload) as u64).sum()
}

impl Row for NewEvents {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("first_sequence", self.first.into());
        column("last_sequence", self.last.into());
        column("created_at", self.created_at.into());
        self.payload.visit(column);
    }
}

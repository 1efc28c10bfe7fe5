//! The retained events of one attempt at a run: the newest ones, without gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use agent::record::{RunEvent, event_weight};
use values::tenant::TenantId;

/// The number of events that most runs emit at least.
const USUAL_EVENTS: usize = 16;

/// The fence token of the first attempt at a queued run. Its events begin with the number 1, like
/// those of a light run.
const FIRST_FENCE: u64 = 1;

/// The events of one attempt at a run.
#[derive(Debug)]
pub(super) struct RunLog {
    pub(super) tenant: TenantId,
    /// The fence token of the attempt; 0 for a run that was never in the queue.
    pub(super) fence: u64,
    /// When the attempt ended; `None` while it is active.
    pub(super) ended_at: Option<Instant>,
    pub(super) weight: usize,
    /// The number of the last event that readers may get. A later attempt finds all events up to
    /// it, and never contradicts them.
    pub(super) durable: u64,
    /// The number of the last event that the server of a shared board has; 0 if the server needs
    /// all events.
    pub(super) shared: u64,
    events: VecDeque<Arc<RunEvent>>,
}

impl RunLog {
    pub(super) fn new(tenant: TenantId, fence: u64, durable: u64) -> Self {
        Self {
            tenant,
            fence,
            ended_at: None,
            weight: 0,
            durable,
            shared: 0,
            events: VecDeque::with_capacity(USUAL_EVENTS),
        }
    }

    /// Adds an event, and drops the oldest ones beyond the bound. Ignores a known event. Returns
    /// whether the event is new.
    pub(super) fn append(&mut self, event: Arc<RunEvent>, max_bytes: usize) -> bool {
        match self.last() {
            Some(last) if event.sequence <= last => return false,
            // Events are missing in between, so the earlier ones are dropped.
            Some(last) if event.sequence != last + 1 => self.clear(),
            _ => {}
        }
        self.weight += event_weight(&event.payload);
        self.events.push_back(event);
        self.trim(max_bytes);
        true
    }

    /// Drops the oldest events beyond the bound, but not the last one.
    pub(super) fn trim(&mut self, max_bytes: usize) {
        while self.weight > max_bytes
            && self.events.len() > 1
            && let Some(oldest) = self.events.pop_front()
        {
            self.weight -= event_weight(&oldest.payload);
        }
    }

    /// Returns the durable events whose number is higher than `after`. The list is empty if the
    /// next one does not exist yet. Returns `None` if the caller must read another source.
    pub(super) fn read(&self, after: u64, limit: usize) -> Option<Vec<Arc<RunEvent>>> {
        let Some(mut events) = self.range(after, limit) else {
            let is_first_to_come = after == 0 && self.fence <= FIRST_FENCE && self.events.is_empty();
            return (is_first_to_come && self.ended_at.is_none()).then(Vec::new);
        };
        events.truncate(events.partition_point(|event| event.sequence <= self.durable));
        (!events.is_empty() || self.ended_at.is_none()).then_some(events)
    }

    /// Returns the events whose number is higher than `after`, durable or not. Returns `None` if
    /// they are not retained here.
    pub(super) fn range(&self, after: u64, limit: usize) -> Option<Vec<Arc<RunEvent>>> {
        let (first, last) = (self.first()?, self.last()?);
        if after > last {
            return None;
        }
        let skipped = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(self.events.range(skipped..).take(limit).map(Arc::clone).collect())
    }

    /// Returns the number of the first retained event.
    pub(super) fn first(&self) -> Option<u64> {
        self.events.front().map(|event| event.sequence)
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> Option<u64> {
        self.events.back().map(|event| event.sequence)
    }

    fn clear(&mut self) {
        self.events.clear();
        self.weight = 0;
    }
}

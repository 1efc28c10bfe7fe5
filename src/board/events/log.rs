//! The retained events of one run: from some event to the last, without gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use crate::record::{RunEvent, event_weight};
use crate::tenant::TenantId;

/// How many events most runs tell at least.
const USUAL_EVENTS: usize = 16;

/// The events of one run.
#[derive(Debug)]
pub(super) struct RunLog {
    pub(super) tenant: TenantId,
    /// Which attempt at the run this process has made; a later one, wherever it is, tells the truth.
    pub(super) attempt: u64,
    pub(super) state: LogState,
    pub(super) weight: usize,
    events: VecDeque<Arc<RunEvent>>,
}

/// Whether more events are to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogState {
    /// The run is at work here.
    Live,
    /// The run has ended.
    Ended(Instant),
    /// Another process works on the run, and knows better.
    Released(Instant),
}

impl LogState {
    /// Returns since when the log only waits to be forgotten.
    pub(super) fn closed_at(self) -> Option<Instant> {
        match self {
            Self::Live => None,
            Self::Ended(at) | Self::Released(at) => Some(at),
        }
    }
}

impl RunLog {
    pub(super) fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            attempt: 0,
            state: LogState::Live,
            weight: 0,
            events: VecDeque::with_capacity(USUAL_EVENTS),
        }
    }

    /// Adds an event, and forgets the oldest beyond the bound. Tells whether it is new: one that is known already changes nothing.
    pub(super) fn append(&mut self, event: Arc<RunEvent>, max_bytes: usize) -> bool {
        match self.last() {
            Some(last) if event.sequence <= last => return false,
            // What is between is not known, so what is before can't be kept.
            Some(last) if event.sequence != last + 1 => self.clear(),
            _ => {}
        }
        self.weight += event_weight(&event.payload);
        self.events.push_back(event);
        self.trim(max_bytes);
        true
    }

    /// Forgets the oldest events beyond the bound, but not the last one.
    pub(super) fn trim(&mut self, max_bytes: usize) {
        while self.weight > max_bytes
            && self.events.len() > 1
            && let Some(oldest) = self.events.pop_front()
        {
            self.weight -= event_weight(&oldest.payload);
        }
    }

    /// Returns the events that follow on the one with the number `after`; `None` where the next one is not kept and is not the one to come.
    pub(super) fn read(&self, after: u64, limit: usize) -> Option<Vec<Arc<RunEvent>>> {
        let (first, last) = (self.first()?, self.last()?);
        if after > last {
            return None;
        }
        let skipped = (after + 1).checked_sub(first)?;
        let skipped = usize::try_from(skipped).ok()?;
        Some(self.events.range(skipped..).take(limit).map(Arc::clone).collect())
    }

    /// Returns the number of the first event that is kept.
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

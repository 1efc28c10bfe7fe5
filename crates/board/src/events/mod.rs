//! The events of this process's runs, in memory.
//!
//! Each run has one log, of its newest attempt in this process. If a log exceeds its bound, its
//! oldest events are dropped. All live runs share another bound. Events of ended runs are retained
//! for a time, as long as all of them fit. Thousands of runs begin and end each second, so no run
//! has a task or a timer.
//!
//! Readers get the *durable* events only. The events of a light run are durable at once. So are all
//! events on a board that no other process shares. The events of a queued run on a shared board are
//! durable once the server or the store has them.

mod log;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use self::log::RunLog;
use super::settings::BoardSettings;
use super::shards::Sharded;
use agent::record::RunEvent;
use values::ids::RunId;
use values::tenant::TenantId;

/// The logs of all runs. A run's id is unique among all tenants. The tenant is checked anyway.
#[derive(Debug)]
pub(super) struct EventLogs {
    settings: BoardSettings,
    logs: Sharded<HashMap<RunId, RunLog>>,
    closed: Mutex<ClosedLogs>,
    /// The total weight of the logs of live runs.
    live_weight: AtomicUsize,
    /// The total weight above which the oldest events are dropped next. It may exceed the bound,
    /// since each log retains at least its last event.
    shed_above: AtomicUsize,
    /// Locked while the oldest events are dropped.
    shedding: Mutex<()>,
}

/// The logs that wait to be dropped, in the order in which they ended.
#[derive(Debug, Default)]
struct ClosedLogs {
    queue: VecDeque<ClosedLog>,
    weight: usize,
}

#[derive(Debug)]
struct ClosedLog {
    run_id: RunId,
    at: Instant,
    weight: usize,
}

/// Events to send to the server of a shared board.
#[derive(Debug)]
pub(super) struct Unshared {
    /// The fence token of the attempt that emitted them.
    pub(super) fence: u64,
    /// Whether the server must start a new stream, since it is not known to have the events before
    /// these.
    pub(super) starts_stream: bool,
    /// The number of the first event.
    pub(super) first: u64,
    /// The first of the events to send, in order; empty if the append only compares the server with
    /// the log.
    pub(super) events: Vec<Arc<RunEvent>>,
}

impl EventLogs {
    /// Creates logs for a board that no other process shares.
    pub(super) fn new(settings: BoardSettings) -> Self {
        Self {
            settings,
            logs: Sharded::default(),
            closed: Mutex::default(),
            live_weight: AtomicUsize::default(),
            shed_above: AtomicUsize::new(settings.max_live_event_bytes),
            shedding: Mutex::default(),
        }
    }

    /// Begins the log of an attempt at a run, and drops the log of an earlier attempt. Its events
    /// are durable at once, or once they are [shared](Self::shared) or
    /// [persisted](Self::persisted).
    pub(super) fn open(&self, tenant: &TenantId, run_id: RunId, fence: u64, is_durable_at_once: bool) {
        let durable = if is_durable_at_once { u64::MAX } else { 0 };
        let log = RunLog::new(tenant.clone(), fence, durable);
        let earlier = self.logs.of(run_id).insert(run_id, log);
        self.uncount(earlier);
    }

    /// Adds an event to a log that was opened. Returns whether it is new.
    pub(super) fn append(&self, tenant: &TenantId, event: Arc<RunEvent>) -> bool {
        let run_id = event.run_id;
        let is_last = event.payload.is_terminal();
        let mut logs = self.logs.of(run_id);
        // After the end of the attempt, only the last event may follow.
        let is_expected = |log: &&mut RunLog| log.tenant == *tenant && (log.ended_at.is_none() || is_last);
        let Some(log) = logs.get_mut(&run_id).filter(is_expected) else {
            return false;
        };
        let before = log.weight;
        if !log.append(event, self.settings.max_run_event_bytes) {
            return false;
        }
        if log.ended_at.is_none() {
            self.weigh(before, log.weight);
        }
        if is_last {
            // The last event of a queued run is emitted only after the store has the record and all
            // earlier events.
            log.durable = u64::MAX;
        }
        let fence = log.fence;
        drop(logs);
        if is_last {
            self.end(run_id, fence);
        }
        if self.live_weight.load(Ordering::Relaxed) > self.shed_above.load(Ordering::Relaxed) {
            self.shed();
        }
        true
    }

    /// Records that the store has the events up to this number. Returns whether more events are
    /// durable than before.
    pub(super) fn persisted(&self, run_id: RunId, last: u64) -> bool {
        let mut logs = self.logs.of(run_id);
        let log = logs.get_mut(&run_id).filter(|log| log.durable < last);
        log.map(|log| log.durable = last).is_some()
    }

    /// Records that the server of a shared board has the events of an attempt up to this number.
    /// Returns whether there are more events to send.
    pub(super) fn shared(&self, run_id: RunId, fence: u64, last: u64) -> bool {
        let mut logs = self.logs.of(run_id);
        let log = logs.get_mut(&run_id).filter(|log| log.fence == fence);
        log.is_some_and(|log| {
            log.shared = last;
            log.durable = log.durable.max(last);
            log.last().is_some_and(|newest| last < newest)
        })
    }

    /// Returns the next events of a run to send to the server of a shared board; `None` if no event
    /// of the run is retained.
    pub(super) fn unshared(&self, tenant: &TenantId, run_id: RunId, limit: usize) -> Option<Unshared> {
        let logs = self.logs.of(run_id);
        let log = logs.get(&run_id).filter(|log| self.is_readable(log, tenant))?;
        let (first, last) = (log.first()?, log.last()?);
        // The log may have dropped events that the server lacks. Then a new stream starts, too.
        let starts_stream = log.shared + 1 < first || log.shared == 0;
        let first = if starts_stream { first } else { log.shared.min(last) + 1 };
        Some(Unshared {
            fence: log.fence,
            starts_stream,
            first,
            events: log.range(first - 1, limit)?,
        })
    }

    /// Ends the log of an attempt, unless a newer attempt has begun. The log is retained for a
    /// while.
    pub(super) fn end(&self, run_id: RunId, fence: u64) {
        let at = Instant::now();
        let mut logs = self.logs.of(run_id);
        let is_ending = |log: &&mut RunLog| log.ended_at.is_none() && log.fence <= fence;
        let Some(log) = logs.get_mut(&run_id).filter(is_ending) else {
            return;
        };
        self.weigh(log.weight, 0);
        if log.last().is_none() {
            logs.remove(&run_id);
            return;
        }
        log.ended_at = Some(at);
        let weight = log.weight;
        drop(logs);
        let dropped = self.closed.lock().add(ClosedLog { run_id, at, weight }, self.settings);
        for ClosedLog { run_id, at, .. } in dropped {
            let mut logs = self.logs.of(run_id);
            // A log that was opened since then has another time.
            if logs.get(&run_id).is_some_and(|log| log.ended_at == Some(at)) {
                logs.remove(&run_id);
            }
        }
    }

    /// Drops the log of an attempt that this process has given up, unless a newer attempt has
    /// begun.
    pub(super) fn forget(&self, run_id: RunId, fence: u64) {
        let mut logs = self.logs.of(run_id);
        let is_newer = logs.get(&run_id).is_some_and(|log| log.fence > fence);
        let dropped = if is_newer { None } else { logs.remove(&run_id) };
        drop(logs);
        self.uncount(dropped);
    }

    /// Reads events whose number is higher than `after`. The list is empty if this process will
    /// emit the next one. Returns `None` if the caller must read another source.
    pub(super) fn read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Option<Vec<Arc<RunEvent>>> {
        let logs = self.logs.of(run_id);
        let log = logs.get(&run_id).filter(|log| self.is_readable(log, tenant))?;
        log.read(after, limit)
    }

    /// Returns the number of the last event, durable or not; `None` if no event of the run is
    /// retained.
    pub(super) fn last(&self, tenant: &TenantId, run_id: RunId) -> Option<u64> {
        let logs = self.logs.of(run_id);
        logs.get(&run_id).filter(|log| self.is_readable(log, tenant))?.last()
    }

    /// Lists the runs of which events are retained.
    pub(super) fn all(&self) -> Vec<(TenantId, RunId)> {
        let mut all = Vec::new();
        for logs in self.logs.all() {
            let readable = logs
                .iter()
                .filter(|(_, log)| self.is_readable(log, &log.tenant) && log.last().is_some());
            all.extend(readable.map(|(run_id, log)| (log.tenant.clone(), *run_id)));
        }
        all
    }

    fn is_readable(&self, log: &RunLog, tenant: &TenantId) -> bool {
        let is_expired = |at: Instant| at.elapsed() >= self.settings.event_retention;
        log.tenant == *tenant && !log.ended_at.is_some_and(is_expired)
    }

    /// Subtracts the weight of a dropped live log.
    fn uncount(&self, dropped: Option<RunLog>) {
        if let Some(log) = dropped.filter(|log| log.ended_at.is_none()) {
            self.weigh(log.weight, 0);
        }
    }

    /// Updates the total weight for a live log whose weight has changed.
    fn weigh(&self, before: usize, after: usize) {
        // Adds first, so that the sum is never below zero.
        self.live_weight.fetch_add(after, Ordering::Relaxed);
        let weight = self.live_weight.fetch_sub(before, Ordering::Relaxed) - before;
        let max = self.settings.max_live_event_bytes;
        // The weight is below the limit again, so the next drop of events begins at the limit.
        if weight < max && self.shed_above.load(Ordering::Relaxed) > max {
            self.shed_above.store(max, Ordering::Relaxed);
        }
    }

    /// Drops the oldest events of the largest live logs, until an eighth of the bound is free. It
    /// visits all logs, so it frees that much at once and rarely runs.
    fn shed(&self) {
        let Some(_one_at_a_time) = self.shedding.try_lock() else {
            return;
        };
        let max = self.settings.max_live_event_bytes;
        let room = max - max / 8;
        let mut weights = Vec::new();
        for logs in self.logs.all() {
            let live = logs.values().filter(|log| log.ended_at.is_none());
            weights.extend(live.map(|log| log.weight));
        }
        let most = fair_level(&mut weights, room);
        for mut logs in self.logs.all() {
            let too_heavy = |log: &&mut RunLog| log.ended_at.is_none() && log.weight > most;
            for log in logs.values_mut().filter(too_heavy) {
                let before = log.weight;
                log.trim(most);
                self.weigh(before, log.weight);
            }
        }
        let left = self.live_weight.load(Ordering::Relaxed);
        self.shed_above
            .store(max.max(left.saturating_add(max / 8)), Ordering::Relaxed);
    }
}

impl ClosedLogs {
    /// Adds a log, and removes and returns the logs to drop.
    fn add(&mut self, log: ClosedLog, settings: BoardSettings) -> Vec<ClosedLog> {
        let now = log.at;
        self.weight += log.weight;
        self.queue.push_back(log);
        let mut dropped = Vec::new();
        while let Some(oldest) = self.queue.front()
            && (self.weight > settings.max_ended_event_bytes || is_over(oldest.at, now, settings.event_retention))
            && let Some(oldest) = self.queue.pop_front()
        {
            self.weight -= oldest.weight;
            dropped.push(oldest);
        }
        dropped
    }
}

/// Finds a bound for each log. If every weight above the bound is cut to it, the sum fits into the
/// room.
fn fair_level(weights: &mut [usize], room: usize) -> usize {
    weights.sort_unstable();
    let (mut left, mut count) = (room, weights.len());
    for weight in weights {
        let level = left / count;
        if *weight > level {
            return level;
        }
        left -= *weight;
        count -= 1;
    }
    usize::MAX
}

fn is_over(since: Instant, now: Instant, retention: Duration) -> bool {
    now.saturating_duration_since(since) >= retention
}

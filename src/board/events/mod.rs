//! The events of this process's runs, in memory.
//!
//! A run that grows beyond its bound loses its oldest events. All live runs share another bound.
//! Events of ended runs are retained for a time, as long as all of them fit.
//!
//! Thousands of runs pass each second, so no run has a task or a timer.

mod log;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::log::{LogState, RunLog};
use super::settings::BoardSettings;
use super::shards::Sharded;
use crate::ids::RunId;
use crate::record::RunEvent;
use crate::tenant::TenantId;

/// The logs of all runs. A run's id is unique among all tenants; its tenant is checked all the same.
#[derive(Debug)]
pub(super) struct EventLogs {
    settings: BoardSettings,
    logs: Sharded<HashMap<RunId, RunLog>>,
    closed: Mutex<ClosedLogs>,
    /// What the logs of runs at work weigh.
    live_weight: AtomicUsize,
    /// Above which weight the next room is made. Each log keeps its last event, so that what is left may be more than the bound.
    shed_above: AtomicUsize,
    /// Held by the one who makes room.
    shedding: Mutex<()>,
}

/// The logs that wait to be forgotten, in the order in which they were closed.
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

/// What this process holds of a run's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldLog {
    /// Whether another process works on the run.
    pub(super) is_released: bool,
    /// Which attempt at the run told them.
    pub(super) attempt: u64,
    /// The number of the first.
    pub(super) first: u64,
    /// The number of the last.
    pub(super) last: u64,
}

/// What a log has for a reader.
#[derive(Debug, PartialEq)]
pub(super) enum LogReading {
    /// All that there is: this process tells the run's events.
    Known(Vec<Arc<RunEvent>>),
    /// What was known before another process went on with the run.
    Released(Vec<Arc<RunEvent>>),
    /// What the reader wants is not here.
    Missing,
}

impl EventLogs {
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

    /// Begins the log of a run, or goes on with one that was closed.
    pub(super) fn open(&self, tenant: &TenantId, run_id: RunId, attempt: u64) {
        let mut logs = self.logs.of(run_id);
        let log = logs.entry(run_id).or_insert_with(|| RunLog::new(tenant.clone()));
        log.attempt = attempt;
        if log.state.closed_at().is_some() {
            log.state = LogState::Live;
            self.weigh(0, log.weight);
        }
    }

    /// Adds an event to a log that was opened. Tells whether it is new.
    pub(super) fn append(&self, tenant: &TenantId, event: Arc<RunEvent>) -> bool {
        let run_id = event.run_id;
        let is_last = event.payload.is_terminal();
        let mut logs = self.logs.of(run_id);
        // Whoever has nothing to say any more may not know it yet.
        let log = logs.get_mut(&run_id).filter(|log| log.tenant == *tenant);
        let Some(log) = log.filter(|log| !matches!(log.state, LogState::Released(_))) else {
            return false;
        };
        let before = log.weight;
        if !log.append(event, self.settings.max_run_event_bytes) {
            return false;
        }
        if log.state == LogState::Live {
            self.weigh(before, log.weight);
        }
        drop(logs);
        if is_last {
            self.end(run_id);
        }
        if self.live_weight.load(Ordering::Relaxed) > self.shed_above.load(Ordering::Relaxed) {
            self.shed();
        }
        true
    }

    /// Ends the log of a run, which is kept for a while.
    pub(super) fn end(&self, run_id: RunId) {
        self.close(run_id, LogState::Ended);
    }

    /// Closes the log of a run that another process works on.
    pub(super) fn release(&self, run_id: RunId) {
        self.close(run_id, LogState::Released);
    }

    /// Forgets a log at once.
    pub(super) fn forget(&self, run_id: RunId) {
        let forgotten = self.logs.of(run_id).remove(&run_id);
        if let Some(log) = forgotten.filter(|log| log.state == LogState::Live) {
            self.weigh(log.weight, 0);
        }
    }

    /// Reads events after the one with the number `after`.
    pub(super) fn read(&self, tenant: &TenantId, run_id: RunId, after: u64, limit: usize) -> LogReading {
        let logs = self.logs.of(run_id);
        let Some(log) = logs.get(&run_id).filter(|log| self.is_readable(log, tenant)) else {
            return LogReading::Missing;
        };
        match (log.read(after, limit), log.state) {
            (None, _) => LogReading::Missing,
            (Some(events), LogState::Released(_)) => LogReading::Released(events),
            (Some(events), LogState::Live | LogState::Ended(_)) => LogReading::Known(events),
        }
    }

    /// Returns what is held of a run.
    pub(super) fn held(&self, tenant: &TenantId, run_id: RunId) -> Option<HeldLog> {
        let logs = self.logs.of(run_id);
        let log = logs.get(&run_id).filter(|log| self.is_readable(log, tenant))?;
        Some(HeldLog {
            is_released: matches!(log.state, LogState::Released(_)),
            attempt: log.attempt,
            first: log.first()?,
            last: log.last()?,
        })
    }

    /// Lists the runs that [`Self::held`] finds.
    pub(super) fn all_held(&self) -> Vec<(TenantId, RunId)> {
        let mut all = Vec::new();
        for logs in self.logs.all() {
            let held = logs.iter().filter(|(_, log)| {
                self.is_readable(log, &log.tenant)
                    && !matches!(log.state, LogState::Released(_))
                    && log.last().is_some()
            });
            all.extend(held.map(|(run_id, log)| (log.tenant.clone(), *run_id)));
        }
        all
    }

    /// Tells whether anything of the run is kept.
    pub(super) fn is_kept(&self, run_id: RunId) -> bool {
        self.logs.of(run_id).contains_key(&run_id)
    }

    fn is_readable(&self, log: &RunLog, tenant: &TenantId) -> bool {
        let expired = |at: Instant| at.elapsed() >= self.settings.event_retention;
        log.tenant == *tenant && !log.state.closed_at().is_some_and(expired)
    }

    fn close(&self, run_id: RunId, state: fn(Instant) -> LogState) {
        let at = Instant::now();
        let mut logs = self.logs.of(run_id);
        let Some(log) = logs.get_mut(&run_id) else { return };
        match log.state {
            // Its terminal event has ended it.
            LogState::Ended(_) => return,
            LogState::Live => self.weigh(log.weight, 0),
            LogState::Released(_) => {}
        }
        if log.last().is_none() {
            logs.remove(&run_id);
            return;
        }
        log.state = state(at);
        let weight = log.weight;
        drop(logs);
        let forgotten = self.closed().add(ClosedLog { run_id, at, weight }, self.settings);
        for ClosedLog { run_id, at, .. } in forgotten {
            let mut logs = self.logs.of(run_id);
            // A log that was opened again, or closed again, has another time.
            if logs.get(&run_id).is_some_and(|log| log.state.closed_at() == Some(at)) {
                logs.remove(&run_id);
            }
        }
    }

    /// Counts a live log that has another weight now.
    fn weigh(&self, before: usize, after: usize) {
        // In this order the sum is never below zero.
        self.live_weight.fetch_add(after, Ordering::Relaxed);
        let weight = self.live_weight.fetch_sub(before, Ordering::Relaxed) - before;
        let max = self.settings.max_live_event_bytes;
        // The weight is below the limit again, so the next shedding begins at the limit.
        if weight < max && self.shed_above.load(Ordering::Relaxed) > max {
            self.shed_above.store(max, Ordering::Relaxed);
        }
    }

    /// Takes the oldest events from the live logs that have most, until an eighth of the room is free: looking through all logs then
    /// costs little for each event.
    fn shed(&self) {
        let Ok(_one_at_a_time) = self.shedding.try_lock() else {
            return;
        };
        let max = self.settings.max_live_event_bytes;
        let room = max - max / 8;
        let mut weights = Vec::new();
        for logs in self.logs.all() {
            let live = logs.values().filter(|log| log.state == LogState::Live);
            weights.extend(live.map(|log| log.weight));
        }
        let most = fair_level(&mut weights, room);
        for mut logs in self.logs.all() {
            let too_heavy = |log: &&mut RunLog| log.state == LogState::Live && log.weight > most;
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

    fn closed(&self) -> MutexGuard<'_, ClosedLogs> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClosedLogs {
    /// Adds a log, and takes out those that shall be forgotten.
    fn add(&mut self, log: ClosedLog, settings: BoardSettings) -> Vec<ClosedLog> {
        let now = log.at;
        self.weight += log.weight;
        self.queue.push_back(log);
        let mut forgotten = Vec::new();
        while let Some(oldest) = self.queue.front()
            && (self.weight > settings.max_ended_event_bytes || is_over(oldest.at, now, settings.event_retention))
            && let Some(oldest) = self.queue.pop_front()
        {
            self.weight -= oldest.weight;
            forgotten.push(oldest);
        }
        forgotten
    }
}

/// Finds the bound that makes the weights fit into the room when those above are cut to it, and no others are.
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

//! The board: shows which runs are live, where they stand, and their events, and reaches them.
//!
//! The board is best effort: it promises nothing, and everything on it can be rebuilt from the
//! store, or is emitted again by the process that works on the run. Each process holds its own runs
//! and their events in memory (`local.rs`, `events/`). That memory is authoritative for its runs
//! and is read first. Redis (`redis/`) adds the runs of other processes, where there are several,
//! and is never the only copy of anything.
//!
//! A reader that waits for a change is registered when it asks (`changes.rs`). So it asks first,
//! then reads, then waits, and misses nothing.
//!
//! *Events.* The board retains the events of a run from the beginning of its newest attempt until
//! some time after its end, as far as there is room. They have no gaps: from some event to the
//! last. Readers get the *durable* ones only: those that another attempt at a queued run would
//! find. So a takeover never contradicts an event that a reader has.

mod changes;
mod control;
mod error;
mod events;
mod live_run;
mod local;
mod redis;
mod settings;
mod shards;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use self::control::{AddressedMessage, ControlMessage};
pub use self::error::BoardError;
pub use self::live_run::LiveRun;
use self::local::LocalBoard;
use self::redis::SharedBoard;
pub use self::settings::{BoardSettings, RedisSettings};
use crate::ids::{RunId, SessionId};
use crate::limits::{RateStanding, RequestRate};
use crate::record::RunEvent;
use crate::supervision::Supervisor;
use crate::tenant::TenantId;

/// Shows live runs, retains what they emit, and passes control messages to them.
#[derive(Debug)]
pub struct Board {
    local: Arc<LocalBoard>,
    /// What is shared with other processes.
    shared: Option<SharedBoard>,
}

impl Default for Board {
    fn default() -> Self {
        Self::new(BoardSettings::default())
    }
}

impl Board {
    /// Makes the board of a process that shares nothing.
    pub fn new(settings: BoardSettings) -> Self {
        Self {
            local: Arc::new(LocalBoard::new(settings)),
            shared: None,
        }
    }

    /// Opens a board that is shared on a `redis://` URL, `rediss://` for TLS;
    /// `redis+sentinel://HOST,HOST/MASTER` and `redis+cluster://HOST,HOST` name several hosts.
    /// Fails for a malformed URL or authority only: a server that is away is tried again.
    pub async fn open(url: &str, settings: RedisSettings, supervisor: &Supervisor) -> Result<Self, BoardError> {
        let local = Arc::new(LocalBoard::new(settings.board));
        Ok(Self {
            shared: Some(SharedBoard::open(url, settings, supervisor, &local).await?),
            local,
        })
    }

    /// Checks that a board could be opened there and the server answers now, within a few times the
    /// time limit.
    pub async fn check(url: &str, settings: RedisSettings) -> Result<(), BoardError> {
        SharedBoard::check(url, settings).await
    }

    /// Returns whether runs of other processes are shown, which may take a moment.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Shows a run that begins, or an attempt at it. With `exclusive`, fails with the id of another
    /// run at work from the same base, if there is one. A run whose status is terminal is no longer
    /// at work.
    pub async fn run_open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        match &self.shared {
            Some(shared) => shared.run_open(tenant, run, exclusive).await,
            None => self.local.open(tenant, run, exclusive, true),
        }
    }

    /// Shows where a live run stands now. Never waits: what can't be shown is dropped.
    pub fn run_update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        let run_id = run.summary.run_id;
        self.local.update(tenant, run);
        if let Some(shared) = &self.shared {
            shared.run_update(tenant, run_id);
        }
    }

    /// Takes a run off that has ended and whose record is stored. Never waits.
    pub fn run_close(&self, tenant: &TenantId, run_id: RunId) {
        let run = self.local.close(tenant, run_id, u64::MAX);
        if let (Some(shared), Some(run)) = (&self.shared, run) {
            shared.run_close(tenant, &run);
        }
    }

    /// Takes an attempt at a run off that has not ended and that this process no longer makes: its
    /// lease was lost or handed back. A newer attempt of this process stays. What other processes
    /// show of the run is theirs to change. Never waits.
    pub fn run_release(&self, tenant: &TenantId, run_id: RunId, attempt: u64) {
        if self.is_shared() {
            // Before long another process may emit other events under the same numbers.
            self.local.events.forget(run_id, attempt);
        }
        self.local.close(tenant, run_id, attempt);
    }

    /// Finds a live run.
    pub async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        match (self.local.lookup(tenant, run_id), &self.shared) {
            (None, Some(shared)) => shared.run_lookup(tenant, run_id).await,
            (run, _) => run,
        }
    }

    /// Finds the live run that has reserved the session id.
    pub async fn run_lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId> {
        match (self.local.lookup_by_session(tenant, session_id), &self.shared) {
            (None, Some(shared)) => shared.run_lookup_by_session(tenant, session_id).await,
            (run, _) => run,
        }
    }

    /// Lists the tenant's live runs, newest first. Steps and output of other processes' runs are
    /// missing.
    pub async fn run_list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let Some(shared) = &self.shared else {
            return self.local.list(tenant);
        };
        let mut runs = shared.run_list(tenant).await;
        // Own runs come first, and so win over what the server has of them.
        runs.splice(0..0, self.local.list(tenant));
        runs.sort_by_key(|run| std::cmp::Reverse(run.summary.run_id));
        runs.dedup_by_key(|run| run.summary.run_id);
        runs
    }

    /// Retains an event of a run that was opened here, and wakes those who wait for a change.
    /// Events come in the order of their numbers: one that is not beyond the last changes nothing,
    /// and one that leaves a gap begins anew. Never waits: what can't be retained is dropped.
    pub fn event_append(&self, tenant: &TenantId, event: Arc<RunEvent>) {
        let run_id = event.run_id;
        if self.local.append(tenant, event)
            && let Some(shared) = &self.shared
        {
            shared.event_append(tenant, run_id);
        }
    }

    /// Records that the store has the events of a run up to this number, which makes them durable.
    pub fn event_persisted(&self, run_id: RunId, last: u64) {
        if self.local.events.persisted(run_id, last) {
            self.local.changes.notify(run_id);
        }
    }

    /// Reads durable events in order, from the one after `after` on: at most `limit`, and none
    /// where that first one is not retained. Fails where another process emits the run's events and
    /// can't be asked.
    pub async fn event_read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<RunEvent>>, BoardError> {
        match (self.event_read_here(tenant, run_id, after, limit), &self.shared) {
            (None, Some(shared)) => shared.event_read(tenant, run_id, after, limit).await,
            (events, _) => Ok(events.unwrap_or_default()),
        }
    }

    /// Reads as [`Self::event_read`] does, in the memory of this process alone. Returns no events
    /// where this process emits the next one and it is not durable yet, and `None` where another
    /// source has to be asked.
    pub fn event_read_here(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Option<Vec<Arc<RunEvent>>> {
        self.local.events.read(tenant, run_id, after, limit)
    }

    /// Returns the number of the last event that is retained, durable or not; 0 when none is. Fails
    /// as reading does.
    pub async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, BoardError> {
        match (self.local.events.last(tenant, run_id), &self.shared) {
            (None, Some(shared)) => shared.event_last(tenant, run_id).await,
            (last, _) => Ok(last.unwrap_or_default()),
        }
    }

    /// Waits for a change of a run: a durable event, or where it stands. Every change counts that
    /// comes after this call, before the future is polled as well. Notifications may be lost, so
    /// who waits reads from time to time all the same.
    pub fn run_change(&self, run_id: RunId) -> BoxFuture<'static, ()> {
        self.local.changes.wait(run_id)
    }

    /// Sends a control message to the process that executes a run, through all subscribers. Returns
    /// whether one received it that may execute the run: this process, which shows the run, or any
    /// other. It may be received twice.
    pub async fn control_send(&self, tenant: &TenantId, run_id: RunId, message: ControlMessage) -> bool {
        let is_here = self.local.lookup(tenant, run_id).is_some();
        let message = (tenant.clone(), run_id, message);
        let is_received = self.local.control.send(message.clone()) && is_here;
        match &self.shared {
            Some(shared) if !is_received => shared.control_send(message).await,
            _ => is_received,
        }
    }

    /// Subscribes to the control messages to runs of all processes.
    pub fn control_messages(&self) -> BoxStream<'static, AddressedMessage> {
        self.local.control.subscribe()
    }

    /// Counts a request of a tenant together with those of all processes, and returns where it
    /// stands; `None` where there is no such count now.
    pub async fn rate_take(&self, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding> {
        self.shared.as_ref()?.rate_take(tenant, rate).await
    }

    /// Removes all that the server has of a tenant; returns the number of keys. What processes at
    /// work hold they write again.
    pub async fn tenant_remove(&self, tenant: &TenantId) -> Result<u64, BoardError> {
        match &self.shared {
            Some(shared) => shared.tenant_remove(tenant).await,
            None => Ok(0),
        }
    }

    /// Sends other processes what they don't have yet, and ends. Runs that still live expire there
    /// after a while.
    pub async fn close(&self) {
        if let Some(shared) = &self.shared {
            shared.close().await;
        }
    }
}

//! The board: shows live runs with their status and events, and delivers control messages to them.
//!
//! The board is best effort: it guarantees nothing. Everything on it can be rebuilt from the store,
//! or is emitted again by the process that executes the run. Each process holds its own runs and
//! their events in memory (`local.rs`, `events/`). That memory is authoritative for its runs and is
//! read first. With several processes, Redis (`redis/`) adds the runs of the others. It is never
//! the only copy of anything.
//!
//! A reader registers for changes first (`changes.rs`), then reads, then waits. So it misses no
//! change.
//!
//! *Changes.* A reader of a tenant's changes (`feed.rs`) gets the ids of runs with a new status,
//! and of sessions and threads that requests without a run have changed. Nothing of that is
//! retained.
//!
//! *Events.* The board retains the events of a run's newest attempt until some time after its end.
//! If there is too little room, it drops the oldest ones, so there are no gaps. Readers get
//! *durable* events only, which another attempt at a queued run would find. So a takeover never
//! contradicts an event that a reader has.

#![cfg_attr(
    not(feature = "redis"),
    expect(dead_code, reason = "only Redis asks for runs and events to send to other processes")
)]

mod changes;
mod control;
mod error;
mod events;
mod feed;
mod live_run;
mod local;
#[cfg_attr(not(feature = "redis"), path = "without_redis.rs")]
mod redis;
mod settings;
mod shards;
mod shared;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use self::control::{AddressedMessage, ControlMessage};
pub use self::error::BoardError;
pub use self::feed::{ChangeReader, ChangesLost, TenantChange};
pub use self::live_run::LiveRun;
use self::local::LocalBoard;
pub use self::settings::{BoardSettings, RedisSettings};
use self::shared::SharedBoard;
use agent::record::RunEvent;
use tasks::supervision::Supervisor;
use values::ids::{RunId, SessionId};
use values::limits::{RateStanding, RequestRate};
use values::tenant::TenantId;

/// Whether this build has the client of Redis.
pub const HAS_REDIS: bool = cfg!(feature = "redis");

/// Shows live runs, retains their events, and sends control messages to them.
#[derive(Debug)]
pub struct Board {
    local: Arc<LocalBoard>,
    /// The part that processes share.
    shared: Option<Box<dyn SharedBoard>>,
}

impl Default for Board {
    fn default() -> Self {
        Self::new(BoardSettings::default())
    }
}

impl Board {
    /// Creates a board that no other process shares.
    pub fn new(settings: BoardSettings) -> Self {
        Self {
            local: Arc::new(LocalBoard::new(settings)),
            shared: None,
        }
    }

    /// Opens a board that processes share on a `redis://` URL, `rediss://` for TLS. Fails only if
    /// the URL or the certificate authority is malformed. An unreachable server is retried.
    pub async fn open(url: &str, settings: RedisSettings, supervisor: &Supervisor) -> Result<Self, BoardError> {
        let local = Arc::new(LocalBoard::new(settings.board));
        Ok(Self {
            shared: Some(self::redis::open(url, settings, supervisor, &local).await?),
            local,
        })
    }

    /// Checks that a board could be opened at the URL and that the server accepts writes. May take
    /// a few times the timeout.
    pub async fn check(url: &str, settings: RedisSettings) -> Result<(), BoardError> {
        self::redis::check(url, settings).await
    }

    /// Returns whether the board also shows runs of other processes. Then operations may take a
    /// moment.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns whether the server of a shared board responds now; `None` if there is none.
    pub fn is_connected(&self) -> Option<bool> {
        self.shared.as_ref().map(|shared| shared.is_subscribed())
    }

    /// Adds a run that begins, or a new attempt at it. With `exclusive`, fails if another live run
    /// has the same base, and returns its id. A run with a terminal status does not count as live.
    pub async fn run_open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        let change = TenantChange::of_run(&run.summary);
        let opened = match &self.shared {
            Some(shared) => shared.run_open(tenant, run, exclusive).await,
            None => self.local.open(tenant, run, exclusive, true),
        };
        if opened.is_ok() {
            self.change_publish(tenant, change);
        }
        opened
    }

    /// Updates the state of a live run. Never waits: an update that can't be shown is dropped.
    pub fn run_update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        let change = TenantChange::of_run(&run.summary);
        let run_id = run.summary.run_id;
        let has_new_status = self.local.update(tenant, run);
        if let Some(shared) = &self.shared {
            shared.run_update(tenant, run_id);
        }
        if has_new_status {
            self.change_publish(tenant, change);
        }
    }

    /// Removes a run that has ended and whose record is stored. Never waits.
    pub fn run_close(&self, tenant: &TenantId, run_id: RunId) {
        let run = self.local.close(tenant, run_id, u64::MAX);
        if let (Some(shared), Some(run)) = (&self.shared, run) {
            shared.run_close(tenant, &run);
        }
    }

    /// Removes an attempt that this process has given up, since its lease was lost or released. A
    /// newer attempt of this process stays. The state of the run at other processes does not
    /// change. Never waits.
    pub fn run_release(&self, tenant: &TenantId, run_id: RunId, fence: u64) {
        if self.is_shared() {
            // Another process may soon emit other events under the same numbers.
            self.local.events.forget(run_id, fence);
        }
        self.local.close(tenant, run_id, fence);
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
        // Runs of this process come first, so they replace the server's copies.
        runs.splice(0..0, self.local.list(tenant));
        runs.sort_by_key(|run| std::cmp::Reverse(run.summary.run_id));
        runs.dedup_by_key(|run| run.summary.run_id);
        runs
    }

    /// Retains an event of a run that was opened here, and wakes the readers that wait for a
    /// change. Ignores an event whose number is not beyond the last one. An event after a gap drops
    /// the earlier ones. Never waits: an event that can't be retained is dropped.
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

    /// Reads up to `limit` durable events whose number is higher than `after`, in order. Returns
    /// none if the next one is not retained. Fails if another process emits the run's events and
    /// the server can't be reached.
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

    /// Reads like [`Self::event_read`], but only the memory of this process. Returns no events if
    /// this process emits the next one and it is not durable yet. Returns `None` if the caller must
    /// read another source.
    pub fn event_read_here(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Option<Vec<Arc<RunEvent>>> {
        self.local.events.read(tenant, run_id, after, limit)
    }

    /// Returns the number of the last retained event, durable or not; 0 if there is none. Fails
    /// like [`Self::event_read`].
    pub async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, BoardError> {
        match (self.local.events.last(tenant, run_id), &self.shared) {
            (None, Some(shared)) => shared.event_last(tenant, run_id).await,
            (last, _) => Ok(last.unwrap_or_default()),
        }
    }

    /// Waits for a change of a run: a durable event or a new state. Counts every change after this
    /// call, even before the future is polled. Notifications may be lost, so callers poll as well.
    pub fn run_change(&self, run_id: RunId) -> BoxFuture<'static, ()> {
        self.local.changes.wait(run_id)
    }

    /// Publishes a change to the readers of the tenant in all processes. The board itself publishes
    /// the changes of the runs that it shows. Never waits. If a change can't be sent to another
    /// process, the readers there get an error.
    pub fn change_publish(&self, tenant: &TenantId, change: TenantChange) {
        self.local.feeds.publish(tenant, &change);
        if let Some(shared) = &self.shared {
            shared.change_publish(tenant, change);
        }
    }

    /// Returns a reader of the changes of a tenant from now on, in all processes.
    pub fn change_reader(&self, tenant: &TenantId) -> ChangeReader {
        self.local.feeds.subscribe(tenant)
    }

    /// Sends a control message to the process that executes a run. All subscribers receive it, some
    /// of them maybe twice. Returns whether it reached this process, if the run is live here, or
    /// any other process.
    pub async fn control_send(&self, tenant: &TenantId, run_id: RunId, message: ControlMessage) -> bool {
        let is_here = self.local.lookup(tenant, run_id).is_some();
        let message = (tenant.clone(), run_id, message);
        let is_received = self.local.control.send(message.clone()) && is_here;
        match &self.shared {
            Some(shared) if !is_received => shared.control_publish(message).await.is_some_and(|others| others > 0),
            _ => is_received,
        }
    }

    /// Sends a control message about a run of this process to all other processes. Returns whether
    /// any received it; `None` if that is not known, or if the board reaches none.
    pub async fn control_ask(&self, tenant: &TenantId, run_id: RunId, message: ControlMessage) -> Option<bool> {
        // Otherwise no response would arrive.
        let shared = self.shared.as_ref().filter(|shared| shared.is_subscribed())?;
        let others = shared.control_publish((tenant.clone(), run_id, message)).await;
        others.map(|others| others > 0)
    }

    /// Subscribes to the control messages of all processes.
    pub fn control_messages(&self) -> BoxStream<'static, AddressedMessage> {
        self.local.control.subscribe()
    }

    /// Counts a request of a tenant across all processes, and returns the tenant's use of its rate.
    /// Returns `None` if no shared count is available now.
    pub async fn rate_take(&self, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding> {
        self.shared.as_ref()?.rate_take(tenant, rate).await
    }

    /// Removes all keys of a tenant from the server, and returns their number. Processes with live
    /// runs of the tenant write theirs again.
    pub async fn tenant_remove(&self, tenant: &TenantId) -> Result<u64, BoardError> {
        match &self.shared {
            Some(shared) => shared.tenant_remove(tenant).await,
            None => Ok(0),
        }
    }

    /// Sends pending changes to other processes and ends. Runs that are still live expire there
    /// after a while.
    pub async fn close(&self) {
        if let Some(shared) = &self.shared {
            shared.close().await;
        }
    }
}

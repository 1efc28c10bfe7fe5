//! The board: shows which runs are live, where they stand, and their events.
//!
//! The board is best effort: it promises nothing, and everything on it can be rebuilt from the
//! store. Each process holds its own runs and their events in memory (`in_process.rs`, `events/`).
//! That memory is authoritative for its runs and is read first. Redis (`redis/`) adds the runs of
//! other processes, and is never the only copy of anything.
//!
//! A reader that waits for a change is registered when it asks (`changes.rs`). So it asks first,
//! then reads, then waits, and misses nothing.

mod changes;
mod events;
mod in_process;
mod live_run;
mod redis;
mod settings;
mod shards;
mod signals;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

pub use self::in_process::InProcessBoard;
pub use self::live_run::LiveRun;
pub use self::redis::{RedisBoard, RedisBoardSettings};
pub use self::settings::BoardSettings;
use crate::ids::{RunId, SessionId};
use crate::limits::{RateStanding, RequestRate};
use crate::record::{RunControl, RunEvent, SteeringMessage};
use crate::tenant::TenantId;

/// A board that can't be reached; live status is unknown then, and runs go on.
#[derive(Debug, thiserror::Error)]
#[error("the board is unavailable: {operation}")]
pub struct BoardError {
    /// What was tried.
    pub operation: &'static str,
    /// The driver's error.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// What an operation of a board gives.
pub type BoardFuture<'a, T> = BoxFuture<'a, Result<T, BoardError>>;

/// What whoever runs a run is told from elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum RunSignal {
    /// The store has news of the run: a control or a message.
    Look,
    /// A run that is not in the queue shall end so.
    Control(RunControl),
    /// A message to a run that is not in the queue.
    Message(Box<SteeringMessage>),
}

/// A signal with its run.
pub type AddressedSignal = (TenantId, RunId, RunSignal);

/// Shows live runs, keeps what they tell, and passes signals to them.
///
/// The events of a run are kept from its beginning until some time after its end, as far as there is room. What is kept is never with
/// gaps: from some event on to the last.
pub trait Board: Send + Sync + fmt::Debug {
    /// Tells whether runs of other processes are shown, which may take a moment.
    fn is_shared(&self) -> bool;

    /// Shows a run that begins. With `exclusive`, answers the id of another run at work from the same base instead, if there is
    /// one; a run whose status is terminal is no longer at work.
    fn run_open<'a>(
        &'a self,
        tenant: &'a TenantId,
        run: Arc<LiveRun>,
        exclusive: bool,
    ) -> BoardFuture<'a, Result<(), RunId>>;

    /// Shows where a live run stands now. Never waits: what can't be shown is dropped.
    fn run_update(&self, tenant: &TenantId, run: Arc<LiveRun>);

    /// Takes a run off that has ended and whose record is stored. Never waits.
    fn run_close(&self, tenant: &TenantId, run_id: RunId);

    /// Lets go of a run that this process works on no more and that has not ended: its lease was lost or handed back. What other
    /// processes see of it is theirs to change, and what was told here may be read until one of them tells more. Never waits.
    fn run_release(&self, tenant: &TenantId, run_id: RunId);

    /// Finds a live run.
    fn run_lookup<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, Option<Arc<LiveRun>>>;

    /// Finds the live run that has reserved the session id.
    fn run_lookup_by_session<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> BoardFuture<'a, Option<RunId>>;

    /// Lists the tenant's live runs, newest first. Steps and output may be left out of those of other processes.
    fn run_list<'a>(&'a self, tenant: &'a TenantId) -> BoardFuture<'a, Vec<Arc<LiveRun>>>;

    /// Keeps an event of a run that was opened here, and tells those who wait for a change. Events come in the order of their numbers: one
    /// that is not beyond the last changes nothing, and one that leaves a gap begins anew. Never waits: what can't be kept is dropped.
    fn event_append(&self, tenant: &TenantId, event: Arc<RunEvent>);

    /// Reads events in order, from the one after `after` on: at most `limit`, and none where that first one is not kept. Fails where
    /// another process tells the run's events and can't be asked.
    fn event_read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> BoardFuture<'a, Vec<Arc<RunEvent>>>;

    /// Returns the number of the last event that is kept; 0 when none is. Fails as reading does. Whoever takes a run over goes on with
    /// the next number.
    fn event_last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, u64>;

    /// Returns the number of the last event of a run of this process that other processes would find if this one ended now. Whoever is
    /// shown a later one may be told another in its place.
    fn event_shared(&self, tenant: &TenantId, run_id: RunId) -> u64;

    /// Waits for a change of a run: an event, or where it stands. Every change counts that comes after this call, before the future
    /// is polled as well. Signs may be lost, so whoever waits looks from time to time all the same.
    fn run_change(&self, tenant: &TenantId, run_id: RunId) -> BoxFuture<'static, ()>;

    /// Passes a signal to the process that runs the run, by way of all that hear signals. Tells whether one heard of it that may run it:
    /// this one, which shows the run, or any other. It may be heard twice.
    fn signal_send<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, signal: RunSignal) -> BoardFuture<'a, bool>;

    /// Hears signals to runs of all processes from now on.
    fn signals(&self) -> BoxStream<'static, AddressedSignal>;

    /// Counts a request of a tenant together with those of all processes, and returns where it stands; `None` where there is no such
    /// count now.
    fn rate_take<'a>(&'a self, tenant: &'a TenantId, rate: RequestRate) -> BoxFuture<'a, Option<RateStanding>>;

    /// Tells other processes what they don't know yet, and ends. Runs that still live are forgotten there after a while.
    fn close(&self) -> BoxFuture<'_, ()>;
}

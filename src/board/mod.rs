//! The board: which runs are live and where they stand. Everything on it can be rebuilt from the store; nothing on it is a promise.

mod in_process;
mod live_run;
mod redis;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use self::in_process::InProcessBoard;
pub use self::live_run::LiveRun;
pub use self::redis::{RedisBoard, RedisBoardSettings};
use crate::ids::{RunId, SessionId};
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

/// Shows live runs.
pub trait Board: Send + Sync + fmt::Debug {
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

    /// Tells other processes what they don't know yet, and ends. Runs that still live are forgotten there after a while.
    fn close(&self) -> BoxFuture<'_, ()>;
}

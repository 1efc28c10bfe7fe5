//! The port to limits of spending that runs share.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::state::{AgentError, StopSignal};
use values::usage::Cost;

/// Reserves money for one run, of limits that it shares with other runs.
pub trait SpendSource: Send + Sync + fmt::Debug {
    /// Has the run hold at least `least` and, if there is as much, `wanted`: both in total, with
    /// what it has spent. Returns what it holds in total. It may be more than `wanted`.
    fn reserve(&self, least: Cost, wanted: Cost) -> BoxFuture<'_, Result<Cost, SpendError>>;
}

/// The reason why a request must not be sent, or a completion ends.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SpendError {
    /// Too little is left of a limit, or the run is to end.
    #[error("{}", _0.message)]
    Stopped(StopSignal),
    /// The limits can't be read.
    #[error("{}", _0.message)]
    Unavailable(AgentError),
}

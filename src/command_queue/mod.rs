//! Commands at workers: the replicas put commands into the queue of the store, and workers on other
//! machines run them, with the same code that runs commands in the service itself.
//!
//! ```text
//! replica                                   worker
//! backend.rs  store the files, add the      worker.rs     take a command, renew its lease
//!             command, wait                 execution.rs  write its files, run it, store the
//! progress    events ◀── output ───────────               new files, then the outcome
//! ```
//!
//! A command has an effect once at most, so it is never taken a second time. Each side renews its
//! part of the row: a worker stops a command for which no replica waits any more, and a replica
//! gives up a command whose worker is lost.

mod backend;
mod directories;
mod execution;
mod host;
mod messages;
mod running;
mod worker;

use std::time::Duration;

pub use self::backend::QueuedCommands;
pub use self::worker::{CommandWorker, CommandWorkerSettings};

/// How long a worker has a command, and how long a replica waits for one, unless they renew it.
const LEASE: Duration = Duration::from_secs(15);
/// How often both renew it.
const RENEWAL: Duration = Duration::from_secs(2);
/// The pause before a failed operation of the store is repeated.
const PAUSE: Duration = Duration::from_millis(250);
/// How long only the worker takes a command that has the files of its execution.
const HEAD_START: Duration = Duration::from_millis(250);

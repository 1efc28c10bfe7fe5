//! Commands for workers, as a trait: the queue between the replicas that wait for commands and the
//! workers that run them.
//!
//! A command is taken by one worker at most, and never again: it may have had an effect. Both sides
//! renew their part of the row. If the waiter stops, the worker stops the command. If the worker
//! stops, the waiter gives the command up. Every write of a worker names its lease, and changes
//! nothing once the lease has expired or the row is gone.
//!
//! The store does not read requests and outcomes.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::error::StoreError;
use values::clock::Timestamp;
use values::ids::{CommandId, ExecutionId, WorkerId};
use values::tenant::TenantId;

/// The most bytes of a request or an outcome.
pub const MAX_COMMAND_TEXT_BYTES: usize = 1 << 20;
/// The most bytes of a piece of output.
pub const MAX_OUTPUT_PIECE_BYTES: usize = 256 << 10;
/// The most pieces of output that one read returns.
pub(crate) const MAX_OUTPUT_PIECES: u32 = 16;

/// The key of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommandKey {
    /// The tenant of its run.
    pub tenant: TenantId,
    /// The id of the command.
    pub command_id: CommandId,
}

/// A command to add.
#[derive(Debug, Clone)]
pub struct NewCommand {
    /// The key of the command.
    pub key: CommandKey,
    /// The execution that it belongs to.
    pub execution_id: ExecutionId,
    /// The worker that has its files. Others wait a moment before they take the command.
    pub preferred_worker: Option<WorkerId>,
    /// The time of the store.
    pub now: Timestamp,
    /// Until when a caller waits for it, unless the caller renews this.
    pub awaited_until: Timestamp,
    /// The program to run, as text that the store does not read.
    pub request: String,
}

/// The right of a worker to write about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLease {
    /// The command.
    pub key: CommandKey,
    /// The worker.
    pub worker: WorkerId,
}

/// The terms on which a worker takes a command.
#[derive(Debug, Clone, Copy)]
pub struct CommandTerms {
    /// The worker.
    pub worker: WorkerId,
    /// The time of the store.
    pub now: Timestamp,
    /// The end of the lease, unless it is renewed.
    pub until: Timestamp,
    /// A command that was added before this time is taken even if another worker is preferred.
    pub preferred_before: Timestamp,
}

/// A command that a worker has taken.
#[derive(Debug, Clone)]
pub struct TakenCommand {
    /// The key of the command.
    pub key: CommandKey,
    /// The execution that it belongs to.
    pub execution_id: ExecutionId,
    /// The program to run, as text that the store does not read.
    pub request: String,
}

/// The state of a command, as a worker reads it when it renews its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewedCommand {
    /// Whether it is to be stopped.
    pub is_stopped: bool,
    /// Whether a caller still waits for it.
    pub is_awaited: bool,
}

/// A piece of the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPiece {
    /// The number of the piece, from 0.
    pub position: u64,
    /// The output.
    pub bytes: Bytes,
}

/// The progress of a command, as its waiter reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandProgress {
    /// The worker that has taken it, and the end of its lease.
    pub taken: Option<(WorkerId, Timestamp)>,
    /// The end of the command.
    pub outcome: Option<String>,
    /// The next pieces of its output.
    pub output: Vec<OutputPiece>,
}

/// A hint that something has changed. Wake-ups may be lost, so both sides poll as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandWakeUp {
    /// A command waits for a worker.
    Waiting,
    /// A command has output, or has ended.
    Progressed(CommandId),
    /// A command is to be stopped.
    Stopped(CommandId),
    /// Any of it: wake-ups were missed.
    Missed,
}

/// The queue of commands.
#[async_trait]
pub trait CommandStore: Send + Sync + fmt::Debug {
    /// Adds a command, and wakes workers. May be repeated.
    async fn command_insert(&self, command: &NewCommand) -> Result<(), StoreError>;

    /// Takes the next command for which a caller waits. The tenant with the fewest commands at work
    /// comes first, then the oldest command.
    async fn command_take(&self, terms: &CommandTerms) -> Result<Option<TakenCommand>, StoreError>;

    /// Renews a lease. Returns `None` if it is not in force.
    async fn command_renew(
        &self,
        lease: &CommandLease,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<RenewedCommand>, StoreError>;

    /// Adds a piece of output. Returns `false` if the lease is not in force.
    async fn command_add_output(
        &self,
        lease: &CommandLease,
        piece: &OutputPiece,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores how a command ended, with its last output. Returns `false` if the lease is not in
    /// force, also if an earlier call has stored the end.
    async fn command_end(
        &self,
        lease: &CommandLease,
        last: Option<&OutputPiece>,
        outcome: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Sets until when a caller waits for a command. Returns whether the command exists.
    async fn command_await(&self, key: &CommandKey, until: Timestamp) -> Result<bool, StoreError>;

    /// Reads how far a command is, with the output from a position on: some pieces at a time. An
    /// outcome comes with the first read that has the last output or some before it.
    async fn command_progress(&self, key: &CommandKey, from: u64) -> Result<Option<CommandProgress>, StoreError>;

    /// Removes a command unless a worker has taken it. Returns whether it did.
    async fn command_withdraw(&self, key: &CommandKey) -> Result<bool, StoreError>;

    /// Asks the worker of a command to stop it.
    async fn command_stop(&self, key: &CommandKey) -> Result<(), StoreError>;

    /// Removes a command with its output.
    async fn command_remove(&self, key: &CommandKey) -> Result<(), StoreError>;

    /// Returns a stream of wake-ups.
    fn command_wake_ups(&self) -> BoxStream<'static, CommandWakeUp>;
}

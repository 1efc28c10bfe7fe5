//! The side of a replica: adds a command to the queue and waits for its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::messages::{Outcome, Request};
use super::{LEASE, PAUSE, RENEWAL};
use sandbox::{Exit, Output};
use store::commands::{CommandKey, CommandProgress, CommandWakeUp, MAX_COMMAND_TEXT_BYTES, NewCommand};
use store::{LeaseClock, Store, StoreError};
use tools::{BackendError, CommandBackend, CommandOutcome, ShellCommand, restorable_shell};
use values::clock::Clock;
use values::ids::{CommandId, ExecutionId, IdSource, WorkerId};
use values::session::ShellState;
use workspace::Tree;
use workspace::checkout::{Skipped, SkippedFiles};

/// Of how many executions it is known which worker has their files.
const MAX_KNOWN: usize = 1_000;
/// The most output of a command that is passed on. A worker's own limit is lower.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// Runs commands at workers.
#[derive(Debug)]
pub struct QueuedCommands {
    store: Arc<dyn Store>,
    clock: LeaseClock,
    ids: Arc<dyn IdSource>,
    /// How long a command waits for a worker.
    max_wait: Duration,
    /// The workers that ran the last command of an execution, the oldest first.
    last_workers: Mutex<VecDeque<(ExecutionId, WorkerId)>>,
}

impl QueuedCommands {
    /// Puts commands into the queue of the store. A command that no worker takes within `max_wait`
    /// fails.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, max_wait: Duration) -> Self {
        Self {
            store,
            clock: LeaseClock::new(clock),
            ids,
            max_wait,
            last_workers: Mutex::default(),
        }
    }

    fn last_worker(&self, execution_id: ExecutionId) -> Option<WorkerId> {
        let known = self.last_workers.lock();
        known
            .iter()
            .find(|(id, _)| *id == execution_id)
            .map(|(_, worker)| *worker)
    }

    fn remember(&self, execution_id: ExecutionId, worker: WorkerId) {
        let mut known = self.last_workers.lock();
        known.retain(|(id, _)| *id != execution_id);
        known.push_back((execution_id, worker));
        if known.len() > MAX_KNOWN {
            known.pop_front();
        }
    }

    /// Repeats an operation of the store while the store is unavailable, but not for long.
    async fn patiently<T, F>(&self, operation: impl Fn() -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let begun = Instant::now();
        loop {
            match operation().await {
                Ok(done) => return Ok(done),
                Err(error) if error.is_transient() && begun.elapsed() < LEASE => sleep(PAUSE).await,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the queue of commands can't be used"
                    );
                    return Err(failed("the queue of commands can't be used at the moment"));
                }
            }
        }
    }
}

#[async_trait]
impl CommandBackend for QueuedCommands {
    async fn run(
        &self,
        command: ShellCommand,
        output: &mut (dyn FnMut(Output) + Send),
        cancel: CancellationToken,
    ) -> Result<CommandOutcome, BackendError> {
        let request = Request {
            command: command.command.clone(),
            line: command.line.clone(),
            tree: command.tree.hash(),
            shell: restorable_shell(command.shell.as_ref()),
            wall_time: command.wall_time,
            deadline: command.deadline,
            trace: command.trace,
        };
        let request = serde_json::to_string(&request).unwrap_or_default();
        if request.is_empty() || request.len() > MAX_COMMAND_TEXT_BYTES {
            return Err(failed("the command is too long"));
        }
        let waiting = Waiting {
            queue: self,
            key: CommandKey {
                tenant: command.tree.tenant().clone(),
                command_id: CommandId::generate(&*self.ids),
            },
        };
        let outcome = waiting.run(&command, request, output, cancel).await;
        waiting.remove().await;
        Ok(match outcome? {
            None => unchanged(&command, Exit::Cancelled),
            Some(outcome) => received(&command, outcome)?,
        })
    }
}

/// A command in the queue.
struct Waiting<'a> {
    queue: &'a QueuedCommands,
    key: CommandKey,
}

impl Waiting<'_> {
    /// Adds the command and waits for its outcome. Returns `None` if it was cancelled before any
    /// worker took it.
    async fn run(
        &self,
        command: &ShellCommand,
        request: String,
        output: &mut (dyn FnMut(Output) + Send),
        cancel: CancellationToken,
    ) -> Result<Option<Outcome>, BackendError> {
        let QueuedCommands { store, clock, .. } = self.queue;
        let mut wake_ups = store.command_wake_ups();
        self.set_clock().await;
        let new = NewCommand {
            key: self.key.clone(),
            execution_id: command.execution_id,
            preferred_worker: self.queue.last_worker(command.execution_id),
            now: clock.now(),
            awaited_until: clock.now() + LEASE,
            request,
        };
        self.queue.patiently(|| store.command_insert(&new)).await?;
        let mut read = Read {
            output,
            position: 0,
            bytes: 0,
        };
        let mut taken_by = None;
        let mut is_stopped = false;
        let given_up = Instant::now() + self.queue.max_wait;
        let mut ticks = interval_at(Instant::now() + RENEWAL, RENEWAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(wake_up) = wake_ups.next() => if !self.is_concerned(wake_up) {
                    continue;
                },
                _ = ticks.tick() => self.renew().await?,
                () = cancel.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    if self.withdraw().await? {
                        return Ok(None);
                    }
                    self.stop().await?;
                }
                () = sleep_until(given_up), if taken_by.is_none() => {
                    if self.withdraw().await? {
                        return Err(failed(format!(
                            "no worker has taken the command within {:?}: none runs, or all are busy. It did not run",
                            self.queue.max_wait
                        )));
                    }
                }
            }
            let progress = self.progress(&mut read).await?;
            if let Some((worker, leased_until)) = progress.taken {
                if taken_by.replace(worker).is_none() {
                    self.queue.remember(command.execution_id, worker);
                }
                if progress.outcome.is_none() && leased_until < clock.now() {
                    return Err(failed(
                        "the worker that ran the command is lost, and the changes of the files with it. Other effects \
                         of the command are uncertain: check them before you run it again",
                    ));
                }
            }
            if let Some(text) = progress.outcome {
                let outcome = serde_json::from_str(&text);
                return outcome.map(Some).map_err(|error| {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the outcome of a command can't be read"
                    );
                    failed("the outcome of the command can't be read")
                });
            }
        }
    }

    fn is_concerned(&self, wake_up: CommandWakeUp) -> bool {
        match wake_up {
            CommandWakeUp::Progressed(command_id) => command_id == self.key.command_id,
            CommandWakeUp::Missed => true,
            CommandWakeUp::Waiting | CommandWakeUp::Stopped(_) => false,
        }
    }

    /// Reads on to the end of the output so far.
    async fn progress(&self, read: &mut Read<'_>) -> Result<CommandProgress, BackendError> {
        let store = &self.queue.store;
        loop {
            let position = read.position;
            let reading = || store.command_progress(&self.key, position);
            let Some(progress) = self.queue.patiently(reading).await? else {
                return Err(failed("the command was removed from the queue before it had ended"));
            };
            if progress.output.is_empty() {
                return Ok(progress);
            }
            read.add(&progress);
        }
    }

    async fn renew(&self) -> Result<(), BackendError> {
        self.set_clock().await;
        let QueuedCommands { store, clock, .. } = self.queue;
        let renewing = || store.command_await(&self.key, clock.now() + LEASE);
        self.queue.patiently(renewing).await.map(drop)
    }

    /// Removes the command, unless a worker has it.
    async fn withdraw(&self) -> Result<bool, BackendError> {
        let store = &self.queue.store;
        self.queue.patiently(|| store.command_withdraw(&self.key)).await
    }

    async fn stop(&self) -> Result<(), BackendError> {
        let store = &self.queue.store;
        self.queue.patiently(|| store.command_stop(&self.key)).await
    }

    /// A row that stays is removed by a sweep.
    async fn remove(&self) {
        if let Err(error) = self.queue.store.command_remove(&self.key).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a command is removed from the queue later"
            );
        }
    }

    async fn set_clock(&self) {
        let QueuedCommands { store, clock, .. } = self.queue;
        clock.refresh(&**store, LEASE, RENEWAL).await;
    }
}

/// The output that was read.
struct Read<'a> {
    output: &'a mut (dyn FnMut(Output) + Send),
    /// The position of the next piece.
    position: u64,
    bytes: usize,
}

impl Read<'_> {
    fn add(&mut self, progress: &CommandProgress) {
        for piece in &progress.output {
            self.position = piece.position + 1;
            self.bytes = self.bytes.saturating_add(piece.bytes.len());
            if self.bytes <= MAX_OUTPUT_BYTES {
                (self.output)(Output::Stdout(piece.bytes.clone()));
            }
        }
    }
}

fn failed(message: impl Into<String>) -> BackendError {
    BackendError::Failed(message.into())
}

fn unchanged(command: &ShellCommand, exit: Exit) -> CommandOutcome {
    CommandOutcome {
        exit,
        wall_time: Duration::ZERO,
        tree: command.tree.clone(),
        checkout: None,
        shell: None,
        skipped: SkippedFiles::default(),
    }
}

fn received(command: &ShellCommand, outcome: Outcome) -> Result<CommandOutcome, BackendError> {
    let end = match outcome {
        Outcome::Ended(end) => *end,
        Outcome::Failed { message } => return Err(BackendError::Failed(message)),
    };
    let (contents, limits) = command.tree.source();
    let tree = match end.tree {
        None => command.tree.emptied(),
        Some(hash) => Tree::open(contents, limits, hash),
    };
    let is_same = end.tree == command.tree.hash();
    let skipped = end.skipped.into_iter();
    // The worker has no keys of the stored state that this version does not know.
    let other = command.shell.as_ref().map(|before| before.other.clone());
    let other = other.unwrap_or_default();
    Ok(CommandOutcome {
        tree: if is_same { command.tree.clone() } else { tree },
        wall_time: end.wall_time,
        shell: end.shell.map(|shell| ShellState { other, ..shell }),
        skipped: SkippedFiles {
            named: skipped.map(|(path, reason)| Skipped { path, reason }).collect(),
            more: end.more_skipped,
        },
        ..unchanged(command, end.exit)
    })
}

//! The side of a worker: takes commands while it has room, and renews their leases.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::directories::Directories;
use super::execution::Execution;
use super::host::Host;
use super::running::{AllRunning, Reason, Running};
use super::{HEAD_START, LEASE, RENEWAL};
use store::commands::{CommandKey, CommandLease, CommandTerms, CommandWakeUp, TakenCommand};
use store::{LeaseClock, Outage, Store, StoreError};
use tools::Commands;
use values::clock::Clock;
use values::ids::{IdSource, WorkerId};
use workspace::WorkspaceLimits;

/// How many leases are renewed at the same time.
const AT_ONCE: usize = 4;
/// How long commands may take to end once they are stopped.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// The settings of a worker.
#[derive(Debug, Clone, Copy)]
pub struct CommandWorkerSettings {
    /// The most commands at the same time.
    pub concurrency: usize,
    /// How often the worker polls the queue without a wake-up.
    pub poll_interval: Duration,
    /// The limits of workspaces.
    pub workspace: WorkspaceLimits,
}

/// Takes commands from the queue and runs them.
#[derive(Debug)]
pub struct CommandWorker {
    host: Host,
    id: WorkerId,
    /// How often the worker polls the queue without a wake-up.
    poll_interval: Duration,
    running: Arc<AllRunning>,
    slots: Arc<Semaphore>,
    /// The commands at work.
    tasks: TaskTracker,
    /// Cancelled to take no more commands.
    closing: CancellationToken,
    /// Cancelled when no more commands are taken.
    closed: CancellationToken,
    /// Cancelled when the last command has ended.
    ended: CancellationToken,
}

impl CommandWorker {
    /// Makes a worker. It takes no command yet.
    pub fn new(
        store: Arc<dyn Store>,
        commands: Arc<Commands>,
        settings: CommandWorkerSettings,
        clock: Arc<dyn Clock>,
        ids: &dyn IdSource,
    ) -> Arc<Self> {
        let capacity = commands.settings().retained_directories;
        Arc::new(Self {
            host: Host {
                store,
                commands,
                clock: LeaseClock::new(clock),
                directories: Directories::new(capacity),
                workspace: settings.workspace,
            },
            poll_interval: settings.poll_interval,
            id: WorkerId::generate(ids),
            running: Arc::default(),
            slots: Arc::new(Semaphore::new(settings.concurrency)),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Returns the id of the worker in the queue.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Takes commands and renews their leases, until [`shut_down`](Self::shut_down) has ended.
    pub async fn run(self: Arc<Self>) -> Result<(), StoreError> {
        self.host.clock.adjust(&*self.host.store).await?;
        let taking = async {
            self.take_commands().await;
            self.closed.cancel();
        };
        tokio::join!(taking, self.renew_leases());
        Ok(())
    }

    /// Takes no more commands, and waits for those at work.
    pub async fn drain(&self) {
        self.closing.cancel();
        self.closed.cancelled().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Stops the commands at work, and ends [`run`](Self::run). Returns how many it stopped.
    pub async fn shut_down(&self) -> usize {
        let running = self.running.list();
        for (_, running) in &running {
            running.stop(Reason::Shutdown);
        }
        if timeout(STOP_PATIENCE, self.drain()).await.is_err() {
            tracing::warn!("some commands did not end in time");
        }
        self.ended.cancel();
        running.len()
    }

    async fn take_commands(self: &Arc<Self>) {
        let mut wake_ups = self.host.store.command_wake_ups();
        let mut outage = Outage::default();
        // Another worker may be preferred for a command that has just arrived.
        let mut pause = 2 * HEAD_START;
        loop {
            let Some(slot) = self.closing.run_until_cancelled(self.slot()).await else {
                return;
            };
            // A request is not cut: a command that it had taken would be lost.
            let taken = self.take(slot).await;
            outage.note("no commands are taken from the queue", &taken);
            if taken.unwrap_or_default() {
                continue;
            }
            let waiting = async {
                tokio::select! {
                    () = news(&mut wake_ups) => 2 * HEAD_START,
                    () = sleep(pause) => self.poll_interval,
                }
            };
            let Some(next) = self.closing.run_until_cancelled(waiting).await else {
                return;
            };
            pause = next;
        }
    }

    async fn slot(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.slots).acquire_owned().await {
            Ok(slot) => slot,
            // They are never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes a command, if one waits, and begins it.
    async fn take(self: &Arc<Self>, slot: OwnedSemaphorePermit) -> Result<bool, StoreError> {
        let now = self.host.clock.now();
        let terms = CommandTerms {
            worker: self.id,
            now,
            until: now + LEASE,
            preferred_before: now - HEAD_START,
        };
        let Some(taken) = self.host.store.command_take(&terms).await? else {
            return Ok(false);
        };
        let running = Running::new(self.host.clock.instant_of(terms.until));
        let entry = self.running.add(taken.key.clone(), Arc::clone(&running));
        let worker = Arc::clone(self);
        self.tasks.spawn(async move {
            worker.execute(taken, running).await;
            drop((entry, slot));
        });
        Ok(true)
    }

    async fn execute(&self, taken: TakenCommand, running: Arc<Running>) {
        let key = &taken.key;
        tracing::debug!(command_id = %key.command_id, tenant = %key.tenant, "a command begins");
        let execution = Execution {
            host: &self.host,
            lease: self.lease(key),
            running,
        };
        execution.run(taken).await;
    }

    /// Renews the leases until the last command has ended.
    async fn renew_leases(&self) {
        let mut wake_ups = self.host.store.command_wake_ups();
        let outage = Mutex::new(Outage::default());
        let mut ticks = interval(RENEWAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.ended.cancelled() => return,
                _ = ticks.tick() => {
                    self.host.directories.release_idle().await;
                    self.read_time().await;
                }
                Some(wake_up) = wake_ups.next() => {
                    let is_ours = matches!(wake_up, CommandWakeUp::Stopped(id)
                        if self.running.list().iter().any(|(key, _)| key.command_id == id));
                    if !is_ours {
                        continue;
                    }
                }
            }
            let running = self.running.list();
            if running.is_empty() {
                continue;
            }
            let renewing = stream::iter(&running).for_each_concurrent(AT_ONCE, async |(key, running)| {
                let renewed = timeout(RENEWAL, self.renew(key, running)).await;
                let renewed =
                    renewed.unwrap_or_else(|elapsed| Err(StoreError::late("renew lease of command", elapsed)));
                outage.lock().note("leases of commands are not renewed", &renewed);
            });
            renewing.await;
            let next = Instant::now() + 2 * RENEWAL;
            for (_, running) in running.iter().filter(|(_, running)| running.has_expired(next)) {
                running.lose();
            }
        }
    }

    async fn renew(&self, key: &CommandKey, running: &Running) -> Result<(), StoreError> {
        let now = self.host.clock.now();
        let until = now + LEASE;
        match self.host.store.command_renew(&self.lease(key), now, until).await? {
            // It has ended, or was given up.
            None => running.lose(),
            Some(renewed) => {
                running.renewed(self.host.clock.instant_of(until));
                if renewed.is_stopped {
                    running.stop(Reason::Cancelled);
                } else if !renewed.is_awaited {
                    running.stop(Reason::Abandoned);
                }
            }
        }
        Ok(())
    }

    fn lease(&self, key: &CommandKey) -> CommandLease {
        CommandLease {
            key: key.clone(),
            worker: self.id,
        }
    }

    async fn read_time(&self) {
        let Host { store, clock, .. } = &self.host;
        clock.refresh(&**store, LEASE, RENEWAL).await;
    }
}

/// Waits until a command may wait for a worker.
async fn news(wake_ups: &mut BoxStream<'static, CommandWakeUp>) {
    while let Some(wake_up) = wake_ups.next().await {
        if matches!(wake_up, CommandWakeUp::Waiting | CommandWakeUp::Missed) {
            return;
        }
    }
    std::future::pending::<()>().await;
}

//! The service that runs agents: its ports, its settings and its shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::active::{ActiveRuns, Handover};
use super::agents::AgentDirectory;
use super::follow::Sight;
use super::queue::{LeaseClock, Quarantine, WaitingCount};
use super::rates::Rates;
use super::shared_looks::{self, SharedLooks};
use super::wait::Look;
use crate::agent::RequestRoom;
use crate::agent::hooks::HookRegistry;
use crate::agent::ports::{EnvironmentRuntime, ModelCatalog, ToolCatalog};
use crate::agent::state::ExecutionBudget;
use crate::board::Board;
use crate::clock::Clock;
use crate::fair_share::FairShare;
use crate::ids::{IdSource, RunId, WorkerId};
use crate::limits::{Limits, TenantShares};
use crate::store::{Sessions, Store, StoreError};
use crate::supervision::Supervisor;
use crate::tenant::TenantId;
use crate::usage::PriceTable;

/// How long runs that are cancelled at shutdown may take to store their records.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What runs work with.
#[derive(Debug, Clone)]
pub struct RunPorts {
    /// Reads and publishes bundles, through a cache.
    pub sessions: Arc<Sessions>,
    /// Reads and writes everything else.
    pub store: Arc<dyn Store>,
    /// Shows live runs.
    pub board: Arc<dyn Board>,
    /// Finds agents.
    pub agents: Arc<AgentDirectory>,
    /// Finds models.
    pub models: Arc<dyn ModelCatalog>,
    /// Finds tools.
    pub tools: Arc<dyn ToolCatalog>,
    /// Makes the hooks that agents attach.
    pub hooks: Arc<HookRegistry>,
    /// Restores environments.
    pub environments: Arc<dyn EnvironmentRuntime>,
    /// What models cost.
    pub prices: PriceTable,
    /// What tenants may do at most.
    pub limits: Arc<Limits>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Notified when messages for webhooks were stored.
    pub outbox: Arc<Notify>,
    /// Watches the loops of this process.
    pub supervisor: Supervisor,
}

/// How runs are bounded.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The agent of a request that names none and continues nothing.
    pub default_agent: String,
    /// The most runs at once.
    pub max_concurrent: usize,
    /// The limits that apply where neither the request nor the agent names one.
    pub budget: ExecutionBudget,
    /// How long a commit is tried again while the store is unavailable.
    pub commit_patience: Duration,
    /// How long a request that carries an idempotency key is known.
    pub idempotency_retention: Duration,
    /// How many agents may work below one run.
    pub subagents: SubagentSettings,
    /// The most bytes of the record of one run, its steps and those of its subagents.
    pub max_record_bytes: u64,
    /// The bytes of all large requests to models that were not answered yet; a tenant takes no more than it leaves.
    pub max_model_request_bytes: usize,
    /// How the queue is worked on.
    pub queue: QueueSettings,
}

/// How many agents may work below one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentSettings {
    /// The most in all.
    pub max: usize,
    /// The most at work at the same time; those that wait for others don't count.
    pub concurrency: usize,
    /// The most at work at the same time in this process, beside one of each run.
    pub max_concurrent: usize,
}

/// How this process works on the runs of the queue.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The most runs of the queue at work here at once; with 0 this process accepts runs and leaves them to others.
    pub concurrency: usize,
    /// How long a lease lasts that is not renewed. It is renewed three times in this time.
    pub lease: Duration,
    /// How often the queue is read when nothing wakes the worker.
    pub poll_interval: Duration,
    /// The most runs that wait; further ones are refused.
    pub max_waiting: u32,
    /// Whether a run of a higher priority goes before those of other tenants as well.
    pub ranks_tenants: bool,
    /// How often a run is begun that its workers don't end, before it fails.
    pub max_attempts: u32,
}

/// Runs agents.
#[derive(Debug)]
pub struct RunService {
    pub(super) ports: RunPorts,
    pub(super) settings: RunSettings,
    /// Places for runs that live in this process only.
    pub(super) permits: Arc<Semaphore>,
    /// The light runs of each tenant.
    pub(super) light_runs: Arc<TenantShares>,
    pub(super) rates: Rates,
    /// The bytes of large requests to models.
    pub(super) model_room: RequestRoom,
    /// Places for runs of the queue.
    pub(super) places: Arc<Semaphore>,
    /// Slots for subagents, beside one of each run.
    pub(super) subagent_slots: Arc<FairShare>,
    /// Names this process in the queue.
    pub(super) worker: WorkerId,
    pub(super) lease_clock: LeaseClock,
    pub(super) waiting: WaitingCount,
    pub(super) quarantine: Quarantine,
    pub(super) active: Arc<ActiveRuns>,
    /// What those have seen who wait for a change of a run.
    pub(super) waiting_looks: SharedLooks<(TenantId, RunId), Look>,
    /// What those have seen who follow a run from the event of a number on.
    pub(super) following_looks: SharedLooks<(TenantId, RunId, u64), Sight>,
    /// The runs, and what callers have left to be done.
    pub(super) tasks: TaskTracker,
    /// Cancels all runs that live in this process only.
    pub(super) cancellation: CancellationToken,
    /// Hands back all runs of the queue.
    pub(super) handover: Handover,
    /// Cancelled when no run is begun any more.
    pub(super) closing: CancellationToken,
    /// Cancelled when all runs have ended, and what serves them ends as well.
    pub(super) ended: CancellationToken,
    pub(super) background: TaskTracker,
}

impl RunService {
    /// Makes a service. It takes no run from the queue before [`RunService::begin`].
    pub fn new(ports: RunPorts, settings: RunSettings) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(settings.max_concurrent));
        let places = Arc::new(Semaphore::new(settings.queue.concurrency));
        let subagent_slots = FairShare::new(settings.subagents.max_concurrent);
        let looks = FairShare::new(shared_looks::AT_ONCE);
        Arc::new(Self {
            permits,
            light_runs: Arc::default(),
            rates: Rates::new(&ports.limits),
            model_room: RequestRoom::new(settings.max_model_request_bytes),
            places,
            subagent_slots,
            worker: WorkerId::generate(&*ports.ids),
            lease_clock: LeaseClock::new(Arc::clone(&ports.clock)),
            waiting: WaitingCount::default(),
            quarantine: Quarantine::default(),
            active: Arc::default(),
            waiting_looks: SharedLooks::new(&looks),
            following_looks: SharedLooks::new(&looks),
            tasks: TaskTracker::new(),
            cancellation: CancellationToken::new(),
            handover: Handover::default(),
            closing: CancellationToken::new(),
            ended: CancellationToken::new(),
            background: TaskTracker::new(),
            ports,
            settings,
        })
    }

    /// Begins to work: hears signals, keeps leases and, if it has places for them, takes runs from the queue.
    pub fn begin(self: &Arc<Self>) {
        self.supervise("hear signals", Self::hear_signals);
        self.supervise("renew leases", Self::keep_leases);
        self.supervise("watch leases", Self::watch_leases);
        self.supervise("persist progress", Self::persist_progress);
        if self.takes_runs() {
            self.supervise("lease runs", Self::take_runs);
        }
    }

    /// Sets the clock by which leases and keys expire to the database's time. A process that takes no runs from the queue does so only
    /// once.
    pub async fn set_clock(&self) -> Result<(), StoreError> {
        self.lease_clock.adjust(&*self.ports.store).await
    }

    fn supervise<L>(self: &Arc<Self>, name: &'static str, work: fn(Arc<Self>) -> L)
    where
        L: Future<Output = ()> + Send + 'static,
    {
        let service = Arc::clone(self);
        let keeping = self
            .ports
            .supervisor
            .clone()
            .keep(name, move || work(Arc::clone(&service)));
        self.background.spawn(keeping);
    }

    /// Returns what watches the loops of this process.
    pub fn supervisor(&self) -> &Supervisor {
        &self.ports.supervisor
    }

    /// Tells whether this process works on runs of the queue.
    pub fn takes_runs(&self) -> bool {
        self.settings.queue.concurrency > 0
    }

    /// Returns the number of runs that are at work.
    pub fn active_runs(&self) -> usize {
        let alone = self
            .settings
            .max_concurrent
            .saturating_sub(self.permits.available_permits());
        let leased = self
            .settings
            .queue
            .concurrency
            .saturating_sub(self.places.available_permits());
        alone + leased
    }

    /// Takes no more runs and lets those at work finish within the grace; what was leased and has not begun is handed back. In the middle of
    /// it, runs of the queue that keep their steps are handed back after the step that they are in; at its end all runs of the queue are
    /// handed back, and the others cancelled.
    pub async fn shut_down(&self, grace: Duration) {
        self.permits.close();
        self.places.close();
        self.closing.cancel();
        self.tasks.close();
        if timeout(grace / 2, self.tasks.wait()).await.is_err() {
            self.handover.pause.cancel();
            if timeout(grace / 2, self.tasks.wait()).await.is_err() {
                self.cut_runs().await;
            }
        }
        self.ended.cancel();
        self.background.close();
        if timeout(LAST_WORDS, self.background.wait()).await.is_err() {
            tracing::error!("what serves runs did not end");
        }
    }

    async fn cut_runs(&self) {
        let runs = self.active_runs();
        tracing::warn!(runs, "handing back and cancelling runs that outlast the shutdown grace");
        self.cancellation.cancel();
        self.handover.departure.cancel();
        if timeout(LAST_WORDS, self.tasks.wait()).await.is_err() {
            tracing::error!(runs = self.active_runs(), "runs did not end when they were cancelled");
        }
    }
}

//! The context of all runs: ports, settings, and the state of this process. Every function about
//! runs borrows it. The module `app` creates it once.

pub mod settings;

mod run_tasks;

mod active;
mod backoff;
mod event_readers;
mod inbox;

mod leases;
mod quarantine;
mod queue_length;

mod run_slots;
mod subagent_slots;

mod changes;
mod idempotency;
mod rates;
mod shared_reads;

pub(super) use self::active::{ActiveGuard, ActiveRun, HeldLease, Recording};
pub(super) use self::backoff::backoff;
pub use self::idempotency::check_key;
pub(super) use self::idempotency::{claim_key, stored_key};
pub(super) use self::run_slots::{OpenSlot, RunSlot};
pub(super) use self::shared_reads::{ReadSlot, RunReading};
pub(super) use self::subagent_slots::ExecutionSlot;

use std::sync::Arc;

use tokio::sync::Notify;

use self::active::ActiveRuns;
use self::event_readers::EventReaders;
use self::leases::Leases;
use self::quarantine::Quarantine;
use self::queue_length::QueueLength;
use self::rates::Rates;
use self::run_slots::{LightSlots, QueueSlots};
use self::run_tasks::RunTasks;
use self::settings::{IdempotencySettings, QueueSettings, RunSettings, SubagentSettings};
use self::shared_reads::{AT_ONCE, SharedReads};
use self::subagent_slots::SubagentSlots;
use crate::metrics::Metrics;
use crate::run::agents::AgentDirectory;
use crate::run::events::Found;
use crate::spans::Traces;
use agent::RequestRoom;
use agent::answers::AnswerExpiry;
use agent::hooks::HookRegistry;
use agent::ports::{ModelCatalog, ToolCatalog, ToolServers};
use board::Board;
use store::{Sessions, Store};
use tasks::fair_share::FairShare;
use tasks::supervision::Supervisor;
use values::clock::Clock;
use values::ids::{IdSource, RunId};
use values::limits::{Limits, RateStanding};
use values::tenant::TenantId;
use values::usage::PriceTable;
use workspace::WorkspaceLimits;

/// The context of all runs.
#[derive(Debug)]
pub struct RunContext {
    /// Reads and publishes bundles, through a cache.
    pub sessions: Arc<Sessions>,
    /// Reads and writes everything else.
    pub store: Arc<dyn Store>,
    /// Shows live runs.
    pub board: Arc<Board>,
    /// Finds agents.
    pub agents: Arc<AgentDirectory>,
    /// Finds models.
    pub models: Arc<dyn ModelCatalog>,
    /// Finds tools.
    pub tools: Arc<dyn ToolCatalog>,
    /// Finds MCP servers.
    pub servers: Arc<dyn ToolServers>,
    /// Creates the hooks that agents attach.
    pub hooks: Arc<HookRegistry>,
    /// The prices of models.
    pub prices: PriceTable,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// Reads the time.
    pub clock: Arc<dyn Clock>,
    /// Creates ids.
    pub ids: Arc<dyn IdSource>,
    /// Notified after messages for webhooks are stored.
    pub outbox: Arc<Notify>,
    /// Counts runs and requests; `None` if metrics are off.
    pub metrics: Option<Arc<Metrics>>,
    /// Records spans of runs and requests; `None` without a collector.
    pub traces: Option<Arc<Traces>>,
    /// Watches the loops of this process.
    pub supervisor: Supervisor,
    /// The settings of runs.
    pub settings: RunSettings,
    /// The settings of queued runs.
    pub queue: QueueSettings,
    /// The limits of subagents.
    pub subagents: SubagentSettings,
    /// How long idempotency keys are retained.
    pub idempotency: IdempotencySettings,
    /// The limits of workspaces.
    pub workspace: WorkspaceLimits,
    /// How long open calls wait for answers.
    pub answer_expiry: AnswerExpiry,
    /// The state of this process.
    pub process: ProcessState,
}

/// The runs that this process executes, and the resources that they share.
#[derive(Debug)]
pub struct ProcessState {
    /// The tasks of runs.
    pub(super) tasks: RunTasks,
    /// The active runs.
    pub(super) active: Arc<ActiveRuns>,
    /// The terms on which this process leases runs.
    pub(super) leases: Leases,
    /// Slots for light runs, which exist in this process only.
    pub(super) light_slots: LightSlots,
    /// Slots for queued runs.
    pub(super) queue_slots: QueueSlots,
    /// Slots for subagents.
    pub(super) subagent_slots: SubagentSlots,
    /// The number of waiting runs in the queue.
    pub(super) queue_length: QueueLength,
    /// Isolates suspected poison runs.
    pub(super) quarantine: Quarantine,
    /// The memory that large requests to models share.
    pub(super) room: RequestRoom,
    /// Counts the requests of tenants while the board is unavailable.
    pub(super) rates: Rates,
    /// The readers of events at this process.
    pub(super) event_readers: EventReaders,
    /// Reads of runs, shared by all callers that wait for a change of the same run.
    pub(super) run_reads: SharedReads<(TenantId, RunId), RunReading>,
    /// Reads of events, shared by all followers of the same run at the same cursor.
    pub(super) event_reads: SharedReads<(TenantId, RunId, u64), Found>,
}

impl RunContext {
    /// Counts a request of the tenant. Returns its use of the limit; `None` if its rate is not
    /// limited. While the board is unavailable, this process counts its own requests only.
    pub async fn count_request(&self, tenant: &TenantId) -> Option<RateStanding> {
        let rate = self.limits.of(tenant).requests?;
        match self.board.rate_take(tenant, rate).await {
            Some(standing) => Some(standing),
            None => self.process.rates.take(tenant, rate),
        }
    }
}

impl ProcessState {
    /// Creates the state of a process that has no runs yet.
    pub fn new(
        settings: &RunSettings,
        queue: &QueueSettings,
        subagents: SubagentSettings,
        limits: &Arc<Limits>,
        clock: &Arc<dyn Clock>,
        ids: &dyn IdSource,
    ) -> Self {
        let at_once = FairShare::new(AT_ONCE);
        Self {
            tasks: RunTasks::default(),
            active: Arc::default(),
            leases: Leases::new(Arc::clone(clock), ids, queue.lease),
            light_slots: LightSlots::new(settings.max_concurrent, limits),
            queue_slots: QueueSlots::new(queue.slots()),
            subagent_slots: SubagentSlots::new(subagents),
            queue_length: QueueLength::default(),
            quarantine: Quarantine::default(),
            room: RequestRoom::new(settings.max_model_request_bytes),
            rates: Rates::new(limits),
            event_readers: EventReaders::default(),
            run_reads: SharedReads::new(&at_once),
            event_reads: SharedReads::new(&at_once),
        }
    }
}

//! Assembles the parts that accept and execute runs.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::config::Config;
use crate::run::{
    ActiveRuns, AgentDirectory, AgentLoops, Attempts, Callers, Executor, Followers, IdempotencyKeys, LeaseRenewal,
    Leases, LightSlots, ModelSelection, Planner, PriorityScope, ProgressWriter, Publisher, Quarantine, QueueLength,
    QueueSlots, QueueWorker, Redelivery, RequestRates, RunController, RunLifecycle, RunQueue, RunReader, RunStarter,
    RunTasks, Runs, SessionFiles, SessionImporter, SessionRemover, SubagentPorts, SubagentSlots,
};
use agent::RequestRoom;
use agent::hooks::HookRegistry;
use agent::ports::{ModelCatalog, ToolCatalog, ToolServers};
use board::Board;
use store::{Sessions, Store};
use tasks::supervision::Supervisor;
use values::clock::Clock;
use values::ids::IdSource;
use values::limits::Limits;
use values::usage::PriceTable;

/// The resources of runs.
#[derive(Debug, Clone)]
pub struct RunPorts {
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
    /// Makes the hooks that agents attach.
    pub hooks: Arc<HookRegistry>,
    /// The prices of models.
    pub prices: PriceTable,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// Reads the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Notified after messages for webhooks are stored.
    pub outbox: Arc<Notify>,
    /// Watches the loops of this process.
    pub supervisor: Supervisor,
}

/// The resources that several parts share.
struct Shared<'a> {
    config: &'a Config,
    tasks: RunTasks,
    active: Arc<ActiveRuns>,
    reader: Arc<RunReader>,
    leases: Arc<Leases>,
    keys: Arc<IdempotencyKeys>,
    renewal: Arc<LeaseRenewal>,
    progress: Arc<ProgressWriter>,
    light_slots: Arc<LightSlots>,
    queue_slots: Arc<QueueSlots>,
    /// The memory that large requests to models share.
    room: RequestRoom,
}

/// Makes all parts. No run leaves the queue before [`RunLifecycle::begin`].
pub fn assemble_runs(ports: &RunPorts, config: &Config) -> Runs {
    let shared = Shared::new(ports, config);
    let planner = Arc::new(planner(ports, &shared));
    let executor = Arc::new(executor(ports, &shared));
    let attempts = Arc::new(attempts(ports, &shared, &planner, &executor));
    let controller = Arc::new(controller(ports, &shared, &attempts));
    let followers = Arc::new(Followers::new(Arc::clone(&shared.reader)));
    let callers = Arc::new(Callers {
        reader: Arc::clone(&shared.reader),
        followers: Arc::clone(&followers),
        controller: Arc::clone(&controller),
        tasks: shared.tasks.clone(),
    });
    let starter = RunStarter {
        queue: queue(ports, &shared, &planner, &attempts, &callers),
        planner,
        slots: Arc::clone(&shared.light_slots),
        executor,
        callers,
        store: Arc::clone(&ports.store),
        board: Arc::clone(&ports.board),
        active: Arc::clone(&shared.active),
        clock: Arc::clone(&ports.clock),
        tasks: shared.tasks.clone(),
    };
    Runs {
        starter: Arc::new(starter),
        reader: Arc::clone(&shared.reader),
        followers,
        importer: Arc::new(importer(ports, &shared)),
        files: Arc::new(files(ports, &shared)),
        remover: Arc::new(SessionRemover {
            sessions: Arc::clone(&ports.sessions),
            board: Arc::clone(&ports.board),
            tasks: shared.tasks.clone(),
        }),
        redelivery: Arc::new(Redelivery {
            store: Arc::clone(&ports.store),
            keys: Arc::clone(&shared.keys),
            clock: Arc::clone(&ports.clock),
            outbox: Arc::clone(&ports.outbox),
        }),
        keys: Arc::clone(&shared.keys),
        rates: Arc::new(RequestRates::new(Arc::clone(&ports.limits), Arc::clone(&ports.board))),
        lifecycle: Arc::new(lifecycle(ports, &shared, &controller, attempts)),
        controller,
    }
}

impl<'a> Shared<'a> {
    fn new(ports: &RunPorts, config: &'a Config) -> Self {
        let tasks = RunTasks::default();
        let active = Arc::<ActiveRuns>::default();
        let (store, clock) = (&ports.store, Arc::clone(&ports.clock));
        let leases = Arc::new(Leases::new(Arc::clone(store), clock, &*ports.ids, config.queue.lease));
        let board = Arc::clone(&ports.board);
        let reader = RunReader::new(Arc::clone(store), board, Arc::clone(&active), tasks.clone());
        Self {
            reader: Arc::new(reader),
            keys: Arc::new(IdempotencyKeys {
                store: Arc::clone(store),
                leases: Arc::clone(&leases),
                retention: config.idempotency.retention,
            }),
            renewal: Arc::new(LeaseRenewal {
                store: Arc::clone(store),
                leases: Arc::clone(&leases),
                active: Arc::clone(&active),
                tasks: tasks.clone(),
            }),
            progress: Arc::new(ProgressWriter {
                store: Arc::clone(store),
                leases: Arc::clone(&leases),
                active: Arc::clone(&active),
                board: Arc::clone(&ports.board),
                tasks: tasks.clone(),
            }),
            light_slots: Arc::new(LightSlots::new(config.runs.max_concurrent, &ports.limits)),
            queue_slots: Arc::new(QueueSlots::new(config.queue.slots())),
            room: RequestRoom::new(config.runs.max_model_request_bytes),
            config,
            tasks,
            active,
            leases,
        }
    }
}

fn planner(ports: &RunPorts, shared: &Shared<'_>) -> Planner {
    Planner {
        sessions: Arc::clone(&ports.sessions),
        store: Arc::clone(&ports.store),
        reader: Arc::clone(&shared.reader),
        agents: Arc::clone(&ports.agents),
        models: ModelSelection {
            models: Arc::clone(&ports.models),
            hooks: Arc::clone(&ports.hooks),
            prices: ports.prices.clone(),
            room: shared.room.clone(),
        },
        tools: Arc::clone(&ports.tools),
        servers: Arc::clone(&ports.servers),
        limits: Arc::clone(&ports.limits),
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
        default_agent: shared.config.runs.default_agent.clone(),
        budget: shared.config.runs.budget.clone(),
    }
}

fn executor(ports: &RunPorts, shared: &Shared<'_>) -> Executor {
    let loops = AgentLoops {
        tools: Arc::clone(&ports.tools),
        hooks: Arc::clone(&ports.hooks),
        answer_expiry: shared.config.answer_expiry,
        room: shared.room.clone(),
        subagents: SubagentPorts {
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&ports.ids),
            tasks: shared.tasks.clone(),
            budget: shared.config.runs.budget.clone(),
        },
    };
    Executor {
        workspace: shared.config.workspace,
        store: Arc::clone(&ports.store),
        loops: Arc::new(loops),
        servers: Arc::clone(&ports.servers),
        subagents: SubagentSlots::new(shared.config.subagents),
        publisher: Publisher {
            sessions: Arc::clone(&ports.sessions),
            store: Arc::clone(&ports.store),
            ids: Arc::clone(&ports.ids),
            tasks: shared.tasks.clone(),
            commit_patience: shared.config.runs.commit_patience,
        },
        board: Arc::clone(&ports.board),
        outbox: Arc::clone(&ports.outbox),
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
        max_record_bytes: shared.config.runs.max_record_bytes,
    }
}

fn files(ports: &RunPorts, shared: &Shared<'_>) -> SessionFiles {
    SessionFiles {
        sessions: Arc::clone(&ports.sessions),
        store: Arc::clone(&ports.store),
        reader: Arc::clone(&shared.reader),
        keys: Arc::clone(&shared.keys),
        limits: shared.config.workspace,
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
    }
}

fn attempts(ports: &RunPorts, shared: &Shared<'_>, planner: &Arc<Planner>, executor: &Arc<Executor>) -> Attempts {
    Attempts {
        planner: Arc::clone(planner),
        executor: Arc::clone(executor),
        leases: Arc::clone(&shared.leases),
        renewal: Arc::clone(&shared.renewal),
        progress: Arc::clone(&shared.progress),
        store: Arc::clone(&ports.store),
        board: Arc::clone(&ports.board),
        active: Arc::clone(&shared.active),
        clock: Arc::clone(&ports.clock),
        tasks: shared.tasks.clone(),
        max_attempts: shared.config.queue.max_attempts,
    }
}

fn controller(ports: &RunPorts, shared: &Shared<'_>, attempts: &Arc<Attempts>) -> RunController {
    RunController {
        store: Arc::clone(&ports.store),
        board: Arc::clone(&ports.board),
        active: Arc::clone(&shared.active),
        reader: Arc::clone(&shared.reader),
        leases: Arc::clone(&shared.leases),
        renewal: Arc::clone(&shared.renewal),
        attempts: Arc::clone(attempts),
        clock: Arc::clone(&ports.clock),
        tasks: shared.tasks.clone(),
    }
}

fn queue(
    ports: &RunPorts,
    shared: &Shared<'_>,
    planner: &Arc<Planner>,
    attempts: &Arc<Attempts>,
    callers: &Arc<Callers>,
) -> Arc<RunQueue> {
    Arc::new(RunQueue {
        planner: Arc::clone(planner),
        store: Arc::clone(&ports.store),
        length: QueueLength::new(Arc::clone(&ports.store), shared.config.queue.max_waiting),
        slots: Arc::clone(&shared.queue_slots),
        leases: Arc::clone(&shared.leases),
        keys: Arc::clone(&shared.keys),
        attempts: Arc::clone(attempts),
        callers: Arc::clone(callers),
        limits: Arc::clone(&ports.limits),
        tasks: shared.tasks.clone(),
        ranks_tenants: shared.config.queue.priority == PriorityScope::Global,
    })
}

fn importer(ports: &RunPorts, shared: &Shared<'_>) -> SessionImporter {
    SessionImporter {
        sessions: Arc::clone(&ports.sessions),
        store: Arc::clone(&ports.store),
        workspace: shared.config.workspace,
        agents: Arc::clone(&ports.agents),
        models: Arc::clone(&ports.models),
        prices: ports.prices.clone(),
        limits: Arc::clone(&ports.limits),
        keys: Arc::clone(&shared.keys),
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
        default_agent: shared.config.runs.default_agent.clone(),
    }
}

fn lifecycle(
    ports: &RunPorts,
    shared: &Shared<'_>,
    controller: &Arc<RunController>,
    attempts: Arc<Attempts>,
) -> RunLifecycle {
    let worker = QueueWorker {
        store: Arc::clone(&ports.store),
        leases: Arc::clone(&shared.leases),
        slots: Arc::clone(&shared.queue_slots),
        quarantine: Quarantine::default(),
        attempts,
        tasks: shared.tasks.clone(),
        poll_interval: shared.config.queue.poll_interval,
    };
    RunLifecycle {
        tasks: shared.tasks.clone(),
        supervisor: ports.supervisor.clone(),
        light_slots: Arc::clone(&shared.light_slots),
        queue_slots: Arc::clone(&shared.queue_slots),
        controller: Arc::clone(controller),
        renewal: Arc::clone(&shared.renewal),
        progress: Arc::clone(&shared.progress),
        worker: Arc::new(worker),
    }
}

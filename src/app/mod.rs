//! The composition root: the only module that names every concrete type.

mod agent_files;
mod check;
mod command_network;
mod command_worker;
#[cfg(test)]
mod definition_folder;
mod derived_settings;
mod extensions;
mod ingredients;
mod mcp_files;
mod toml_file;
mod tool_files;
mod tool_settings;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::check::{Finding, check};
pub use self::command_worker::CommandWorkerApp;
pub use self::extensions::Extensions;
use self::ingredients::Ingredients;
use crate::audit::log_heads;
use crate::config::{Backend, Config};
use crate::http::{McpSettings, OpenAiSettings};
use crate::metrics::Metrics;
use crate::outbox::{OutboxPorts, OutboxWorker};
use crate::retention::Sweeper;
use crate::run::agents::AgentDirectory;
use crate::run::settings::ProcessRole;
use crate::run::{ProcessState, RunContext, process};
use crate::spans::{ProviderSpans, Traces};
use crate::tokens::{Fetch, HttpFetch, Tokens};
use agent::ports::ModelCatalog;
use board::Board;
use net::outgoing::SystemResolver;
use store::audit::AuditChain;
use store::{self, Sessions, Store, StoreSettings};
use tasks::supervision::Supervisor;
use tools::Commands;
use tools::mcp::McpServers;
use values::clock::Clock;
use values::ids::IdSource;

/// How long closing may take. All results are stored already.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The service, assembled.
#[derive(Debug)]
pub struct App {
    /// The context of runs.
    pub runs: Arc<RunContext>,
    /// Runs the commands of agents.
    pub commands: Arc<Commands>,
    /// Whether they run in this process, not at workers.
    pub runs_commands_here: bool,
    /// The MCP servers that agents list.
    pub servers: Arc<McpServers>,
    /// `None` if the configuration has no identity provider, or if the process serves only probes.
    pub tokens: Option<Arc<Tokens>>,
    /// `None` if `/mcp` is not served.
    pub mcp: Option<Arc<McpSettings>>,
    /// How the routes for OpenAI's clients work.
    pub openai: Arc<OpenAiSettings>,
    /// The number of the last act on the service before the files of agents were read.
    pub acts_before: u64,
    outbox: Arc<OutboxWorker>,
    sweeper: Sweeper,
    /// The background loops.
    background: TaskTracker,
    /// Cancelled to end the background loops.
    stop: CancellationToken,
}

impl App {
    /// Opens the store and puts everything together.
    pub async fn build(config: &Config, extensions: Extensions) -> anyhow::Result<Self> {
        let metrics = config.metrics.is_on().then(|| Arc::new(Metrics::new(&config.metrics)));
        let store = open_measured_store(config, metrics.as_deref()).await?;
        let acts_before = store.audit_head(&AuditChain::Service).await?.number;
        let ingredients = Ingredients::make(config, extensions, Some(&store), metrics.as_ref())?;
        let agents = ingredients.directory(&store, config)?;
        let Ingredients {
            models,
            tools,
            servers,
            commands,
            hooks,
            sender,
            secrets,
            prices,
            limits,
            clock,
            ids,
        } = ingredients;
        let traces = traces(config, &*models, metrics.as_ref(), &clock, &ids)?;
        let sessions = Sessions::new(Arc::clone(&store), config.store.cache_bytes, Arc::clone(&clock));
        let supervisor = Supervisor::default();
        let outbox_ports = OutboxPorts {
            store: Arc::clone(&store) as _,
            sender,
            secrets,
            wake_up: Arc::new(Notify::new()),
            clock: Arc::clone(&clock),
            metrics: metrics.clone(),
        };
        let runs = RunContext {
            process: ProcessState::new(&config.runs, &config.queue, config.subagents, &limits, &clock, &*ids),
            sessions: Arc::new(sessions.with_max_part_bytes(config.store.max_session_bytes)),
            store,
            board: open_board(config, &supervisor).await?,
            agents: Arc::new(agents),
            models,
            tools: tools as _,
            servers: Arc::clone(&servers) as _,
            hooks,
            prices,
            limits,
            clock,
            ids,
            outbox: Arc::clone(&outbox_ports.wake_up),
            metrics,
            traces,
            supervisor,
            settings: config.runs.clone(),
            queue: config.queue,
            subagents: config.subagents,
            idempotency: config.idempotency,
            workspace: config.workspace,
            answer_expiry: config.answer_expiry,
        };
        process::set_clock(&runs).await?;
        let (background, stop) = (TaskTracker::new(), CancellationToken::new());
        if let Some(traces) = &runs.traces {
            background.spawn(Arc::clone(traces).send(stop.child_token()));
        }
        Ok(Self {
            acts_before,
            sweeper: sweeper(Arc::clone(&runs.store), config),
            outbox: OutboxWorker::new(outbox_ports, config.outbox, &*runs.ids),
            runs: Arc::new(runs),
            commands,
            runs_commands_here: config.sandbox.backend == Backend::Local,
            servers,
            tokens: tokens(config)?,
            mcp: derived_settings::mcp(config)?.map(Arc::new),
            openai: Arc::new(derived_settings::openai(config)?),
            background,
            stop,
        })
    }

    /// Starts the background work of the role of this process: executes queued runs, delivers the
    /// outbox, sweeps expired data, and receives control messages for its runs.
    pub fn begin(&self) {
        process::begin(&self.runs);
        if let Some(tokens) = &self.tokens {
            let (tokens, clock, stop) = (Arc::clone(tokens), Arc::clone(&self.runs.clock), self.stop.clone());
            let refreshing = move || Arc::clone(&tokens).refresh(Arc::clone(&clock), stop.child_token());
            let supervisor = self.runs.supervisor.clone();
            self.background
                .spawn(supervisor.keep("read the keys of token issuers", refreshing));
        }
        if !process::takes_runs(&self.runs) {
            return;
        }
        let (outbox, stop) = (Arc::clone(&self.outbox), self.stop.clone());
        let sending = move || Arc::clone(&outbox).run(stop.child_token());
        let (store, stop) = (Arc::clone(&self.runs.store), self.stop.clone());
        let logging = move || log_heads(Arc::clone(&store), stop.child_token());
        let (sweeper, stop) = (self.sweeper.clone(), self.stop.clone());
        let sweeping = move || sweeper.clone().run(stop.child_token());
        let supervisor = &self.runs.supervisor;
        self.background.spawn(supervisor.clone().keep("send webhooks", sending));
        self.background
            .spawn(supervisor.clone().keep("sweep the store", sweeping));
        self.background
            .spawn(supervisor.clone().keep("log the ends of the audit log", logging));
    }

    /// Ends the background work and closes the board and the store. No run may be in progress.
    pub async fn disconnect(&self) {
        self.stop.cancel();
        self.background.close();
        let closing = async {
            self.background.wait().await;
            self.servers.close().await;
            self.commands.close().await;
            self.runs.board.close().await;
            self.runs.store.close().await;
        };
        if tokio::time::timeout(CLOSE_PATIENCE, closing).await.is_err() {
            tracing::warn!("the connections to the board and the store did not close in time");
        }
    }
}

/// Makes the verifier of tokens; `None` if the process needs none.
fn tokens(config: &Config) -> anyhow::Result<Option<Arc<Tokens>>> {
    if config.tokens.issuers.is_empty() || config.queue.role == ProcessRole::Worker {
        return Ok(None);
    }
    let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new(Arc::new(SystemResolver))?);
    Ok(Some(Arc::new(Tokens::new(config.tokens.clone(), &fetch))))
}

/// Makes the traces of the process; `None` if the standard variables name no collector.
fn traces(
    config: &Config,
    models: &dyn ModelCatalog,
    metrics: Option<&Arc<Metrics>>,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> anyhow::Result<Option<Arc<Traces>>> {
    if !config.traces.has_collector {
        return Ok(None);
    }
    let providers = ProviderSpans::new(models.providers());
    let traces = Traces::new(
        config.traces,
        providers,
        metrics.cloned(),
        Arc::clone(clock),
        Arc::clone(ids),
    );
    Ok(Some(Arc::new(traces.context("no spans can be sent")?)))
}

/// Opens the configured store. Creates or migrates it if the configuration allows that.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    open_store_with(config, config.connections.clone()).await
}

/// Opens the configured store. Neither creates nor migrates it.
pub async fn open_existing_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let settings = StoreSettings {
        migrate: false,
        ..config.connections.clone()
    };
    open_store_with(config, settings).await
}

/// Opens the store of the service, whose operations are measured.
async fn open_measured_store(config: &Config, metrics: Option<&Metrics>) -> anyhow::Result<Arc<dyn Store>> {
    let settings = StoreSettings {
        observer: metrics.map(|metrics| Arc::clone(&metrics.store) as _),
        ..config.connections.clone()
    };
    let store = open_store_with(config, settings).await?;
    if let Some(metrics) = metrics {
        metrics.standing.set_build(config.queue.role.as_str(), store.engine());
    }
    Ok(store)
}

async fn open_store_with(config: &Config, settings: StoreSettings) -> anyhow::Result<Arc<dyn Store>> {
    let opened = store::open_with(config.store.url.expose(), settings, &derived_settings::contents(config)).await;
    opened.with_context(|| format!("can't open the store {}", config.store.address()))
}

/// Makes the directory of stored agents and of valid configured ones, and reports invalid files.
pub fn agent_directory(
    store: &Arc<dyn Store>,
    config: &Config,
    extensions: Extensions,
) -> anyhow::Result<(AgentDirectory, Vec<anyhow::Error>)> {
    Ingredients::make(config, extensions, Some(store), None)?.usable_directory(store, config)
}

/// Refuses to listen beyond this machine without any API key, any identity provider and any name of
/// a client certificate, since everybody who reaches the port could run agents.
pub fn require_keys_beyond_loopback(has_keys: bool, config: &Config) -> anyhow::Result<()> {
    let listen = config.http.listen;
    let needs_credentials = has_keys || !config.tokens.issuers.is_empty() || !config.tls.clients.is_empty();
    if needs_credentials || listen.ip().is_loopback() || config.http.is_exposed {
        return Ok(());
    }
    bail!(
        "there is no API key, so the service listens on loopback only, not on {listen}: make a key with `agent-runtime keys create --tenant NAME`, \
         or serve without any with --insecure-no-auth"
    )
}

/// Makes the sweeper of the store, with the configured rules.
pub fn sweeper(store: Arc<dyn Store>, config: &Config) -> Sweeper {
    Sweeper::new(store, config.retention, config.sweeps)
}

async fn open_board(config: &Config, supervisor: &Supervisor) -> anyhow::Result<Arc<Board>> {
    let shared = open_shared_board(config, supervisor).await?;
    Ok(Arc::new(shared.unwrap_or_else(|| Board::new(config.events))))
}

/// Opens the board that replicas share, if one is configured.
pub async fn open_shared_board(config: &Config, supervisor: &Supervisor) -> anyhow::Result<Option<Board>> {
    let Some(url) = &config.board.url else {
        return Ok(None);
    };
    let board = Board::open(url.expose(), derived_settings::redis_board(config)?, supervisor).await;
    Ok(Some(board.with_context(|| format!("can't use the board {url}"))?))
}

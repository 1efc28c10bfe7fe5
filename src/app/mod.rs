//! The composition root: the only module that names every concrete type.

mod agent_files;
mod check;
mod command_network;
mod command_worker;
#[cfg(test)]
mod definition_folder;
mod extensions;
mod ingredients;
mod mcp_files;
mod runs;
mod settings;
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
pub use self::runs::{RunPorts, assemble_runs};
use crate::config::{Backend, Config};
use crate::http::{HttpState, McpSettings};
use crate::outbox::{OutboxPorts, OutboxWorker};
use crate::retention::Sweeper;
use crate::run::{AgentDirectory, Runs};
use board::Board;
use store::{self, Sessions, Store, StoreSettings};
use tasks::supervision::Supervisor;
use tools::Commands;
use tools::mcp::McpServers;
use values::clock::Clock;
use values::ids::IdSource;
use values::limits::Limits;

/// How long closing may take. All results are stored already.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The service, assembled.
#[derive(Debug)]
pub struct App {
    /// Runs agents.
    pub runs: Runs,
    /// Finds agents.
    pub agents: Arc<AgentDirectory>,
    /// Reads and publishes bundles.
    pub sessions: Arc<Sessions>,
    /// Reads and writes everything.
    pub store: Arc<dyn Store>,
    /// Shows live runs.
    pub board: Arc<Board>,
    /// Runs the commands of agents.
    pub commands: Arc<Commands>,
    /// Whether they run in this process, not at workers.
    pub runs_commands_here: bool,
    /// The MCP servers that agents list.
    pub servers: Arc<McpServers>,
    limits: Arc<Limits>,
    mcp: Option<Arc<McpSettings>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
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
        let store = open_store(config).await?;
        let ingredients = Ingredients::make(config, extensions, Some(&store))?;
        let agents = Arc::new(ingredients.directory(&store, config)?);
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
        let sessions = Sessions::new(Arc::clone(&store), config.store.cache_bytes, Arc::clone(&clock));
        let sessions = Arc::new(sessions.with_max_part_bytes(config.store.max_session_bytes));
        let supervisor = Supervisor::default();
        let board = open_board(config, &supervisor).await?;
        let outbox_ports = OutboxPorts {
            store: Arc::clone(&store) as _,
            sender,
            secrets,
            wake_up: Arc::new(Notify::new()),
            clock: Arc::clone(&clock),
        };
        let ports = RunPorts {
            sessions: Arc::clone(&sessions),
            store: Arc::clone(&store),
            board: Arc::clone(&board),
            agents: Arc::clone(&agents),
            models: models as _,
            tools: tools as _,
            servers: Arc::clone(&servers) as _,
            hooks,
            prices,
            limits: Arc::clone(&limits),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            outbox: Arc::clone(&outbox_ports.wake_up),
            supervisor,
        };
        let runs = assemble_runs(&ports, config);
        runs.lifecycle.set_clock().await?;
        Ok(Self {
            runs,
            agents,
            sessions,
            sweeper: sweeper(Arc::clone(&store), config),
            outbox: OutboxWorker::new(outbox_ports, config.outbox, &*ids),
            store,
            board,
            commands,
            runs_commands_here: config.sandbox.backend == Backend::Local,
            servers,
            limits,
            mcp: settings::mcp(config)?.map(Arc::new),
            clock,
            ids,
            background: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Starts the background work of the role of this process: executes queued runs, delivers the
    /// outbox, sweeps expired data, and receives control messages for its runs.
    pub fn begin(&self) {
        let lifecycle = &self.runs.lifecycle;
        lifecycle.begin();
        if !lifecycle.takes_runs() {
            return;
        }
        let (outbox, stop) = (Arc::clone(&self.outbox), self.stop.clone());
        let sending = move || Arc::clone(&outbox).run(stop.child_token());
        let (sweeper, stop) = (self.sweeper.clone(), self.stop.clone());
        let sweeping = move || sweeper.clone().run(stop.child_token());
        let supervisor = &lifecycle.supervisor;
        self.background.spawn(supervisor.clone().keep("send webhooks", sending));
        self.background
            .spawn(supervisor.clone().keep("sweep the store", sweeping));
    }

    /// Returns the resources of HTTP handlers.
    pub fn http_state(&self) -> HttpState {
        HttpState {
            runs: self.runs.clone(),
            agents: Arc::clone(&self.agents),
            store: Arc::clone(&self.store),
            limits: Arc::clone(&self.limits),
            mcp: self.mcp.clone(),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Ends the background work and closes the board and the store. No run may be in progress.
    pub async fn disconnect(&self) {
        self.stop.cancel();
        self.background.close();
        let closing = async {
            self.background.wait().await;
            self.servers.close().await;
            self.commands.close().await;
            self.board.close().await;
            self.store.close().await;
        };
        if tokio::time::timeout(CLOSE_PATIENCE, closing).await.is_err() {
            tracing::warn!("the connections to the board and the store did not close in time");
        }
    }
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

async fn open_store_with(config: &Config, settings: StoreSettings) -> anyhow::Result<Arc<dyn Store>> {
    let opened = store::open_with(config.store.url.expose(), settings, &settings::contents(config)).await;
    opened.with_context(|| format!("can't open the store {}", config.store.address()))
}

/// Makes the directory of stored agents and of valid configured ones, and reports invalid files.
pub fn agent_directory(
    store: &Arc<dyn Store>,
    config: &Config,
    extensions: Extensions,
) -> anyhow::Result<(AgentDirectory, Vec<anyhow::Error>)> {
    Ingredients::make(config, extensions, Some(store))?.usable_directory(store, config)
}

/// Refuses to listen beyond this machine without any API key, since everybody who reaches the port
/// could run agents.
pub fn require_keys_beyond_loopback(has_keys: bool, config: &Config) -> anyhow::Result<()> {
    let listen = config.http.listen;
    if has_keys || listen.ip().is_loopback() || config.http.is_exposed {
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
    let board = Board::open(url.expose(), settings::redis_board(config)?, supervisor).await;
    Ok(Some(board.with_context(|| format!("can't use the board {url}"))?))
}

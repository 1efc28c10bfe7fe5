//! The composition root: the only module that names every concrete type.

mod agent_files;
mod check;
mod extensions;
mod ingredients;
mod runs;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::check::{Finding, check};
pub use self::extensions::Extensions;
use self::ingredients::Ingredients;
pub use self::runs::{RunPorts, assemble_runs};
use crate::board::Board;
use crate::clock::Clock;
use crate::config::Config;
use crate::environment::InMemoryEnvironments;
use crate::http::{HttpLimits, HttpState};
use crate::ids::IdSource;
use crate::limits::Limits;
use crate::outbox::{OutboxPorts, OutboxWorker};
use crate::retention::Sweeper;
use crate::run::{AgentDirectory, Runs};
use crate::store::{self, Sessions, Store, StoreSettings};
use crate::supervision::Supervisor;
use crate::webhooks::WebhookSender;

/// How long closing may take; responses were stored before.
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
    limits: Arc<Limits>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    outbox: Arc<OutboxWorker>,
    sweeper: Sweeper,
    /// What works beside the runs.
    background: TaskTracker,
    /// Cancelled when all of that ends.
    stop: CancellationToken,
}

impl App {
    /// Opens the store and puts everything together.
    pub async fn build(config: &Config) -> anyhow::Result<Self> {
        Self::build_with(config, Extensions::default()).await
    }

    /// Opens the store and puts everything together, with what is not part of the service itself.
    pub async fn build_with(config: &Config, extensions: Extensions) -> anyhow::Result<Self> {
        let store = open_store(config).await?;
        let made = Ingredients::make(config, extensions)?;
        let Ingredients {
            models,
            tools,
            hooks,
            sender,
            limits,
            clock,
            ids,
        } = made.clone();
        let agents = Arc::new(made.directory(&store, config)?);
        let sessions = Sessions::new(Arc::clone(&store), config.store.cache_bytes, Arc::clone(&clock));
        let sessions = Arc::new(sessions.with_max_part_bytes(config.store.max_session_bytes));
        let supervisor = Supervisor::default();
        let board = open_board(config, &supervisor).await?;
        let outbox_ports = outbox_ports(config, &store, sender, &clock)?;
        let ports = RunPorts {
            sessions: Arc::clone(&sessions),
            store: Arc::clone(&store),
            board: Arc::clone(&board),
            agents: Arc::clone(&agents),
            models: models as _,
            tools: tools as _,
            hooks,
            environments: Arc::new(InMemoryEnvironments),
            prices: config.price_table(),
            limits: Arc::clone(&limits),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
            outbox: Arc::clone(&outbox_ports.wake_up),
            supervisor,
        };
        let runs = assemble_runs(&ports, settings::runs(config));
        runs.lifecycle.set_clock().await?;
        Ok(Self {
            runs,
            agents,
            sessions,
            sweeper: sweeper(Arc::clone(&store), config),
            outbox: OutboxWorker::new(outbox_ports, settings::outbox(config), &*ids),
            store,
            board,
            limits,
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
        if lifecycle.takes_runs() {
            let supervisor = &lifecycle.supervisor;
            let (outbox, sweeper) = (Arc::clone(&self.outbox), self.sweeper.clone());
            let (outbox_stop, sweeper_stop) = (self.stop.clone(), self.stop.clone());
            let sending = move || Arc::clone(&outbox).run(outbox_stop.child_token());
            self.background.spawn(supervisor.clone().keep("send webhooks", sending));
            let sweeping = move || sweeper.clone().run(sweeper_stop.child_token());
            self.background
                .spawn(supervisor.clone().keep("sweep the store", sweeping));
        }
    }

    /// Returns what HTTP handlers work with.
    pub fn http_state(&self) -> HttpState {
        HttpState {
            runs: self.runs.clone(),
            agents: Arc::clone(&self.agents),
            store: Arc::clone(&self.store),
            limits: Arc::clone(&self.limits),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        }
    }

    /// Returns the limits of HTTP.
    pub fn http_limits(&self, config: &Config) -> HttpLimits {
        settings::http(config)
    }

    /// Lets runs finish within the grace and lets go of the board and the store.
    pub async fn close(&self, grace: Duration) {
        self.runs.lifecycle.shut_down(grace).await;
        self.disconnect().await;
    }

    /// Lets go of the outbox, the board and the store. No run may be at work.
    pub async fn disconnect(&self) {
        self.stop.cancel();
        self.background.close();
        let closing = async {
            self.background.wait().await;
            self.board.close().await;
            self.store.close().await;
        };
        if tokio::time::timeout(CLOSE_PATIENCE, closing).await.is_err() {
            tracing::warn!("the connections to the board and the store did not close in time");
        }
    }
}

fn outbox_ports(
    config: &Config,
    store: &Arc<dyn Store>,
    sender: Arc<WebhookSender>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<OutboxPorts> {
    Ok(OutboxPorts {
        store: Arc::clone(store) as _,
        sender,
        secrets: settings::webhook_secrets(config)?,
        wake_up: Arc::new(Notify::new()),
        clock: Arc::clone(clock),
    })
}

/// Opens the configured store, and makes or migrates it where the configuration lets it.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    open_store_with(config, settings::store(config)).await
}

/// Opens the configured store as it is: one that is missing is not made, and none is migrated.
pub async fn open_existing_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let settings = StoreSettings {
        migrate: false,
        ..settings::store(config)
    };
    open_store_with(config, settings).await
}

async fn open_store_with(config: &Config, settings: StoreSettings) -> anyhow::Result<Arc<dyn Store>> {
    let opened = store::open(config.store.url.expose(), settings).await;
    opened.with_context(|| format!("can't open the store {}", config.store.address()))
}

/// Makes the directory of stored agents and of valid configured ones, and reports invalid files.
pub fn agent_directory(
    store: &Arc<dyn Store>,
    config: &Config,
    extensions: Extensions,
) -> anyhow::Result<(AgentDirectory, Vec<anyhow::Error>)> {
    Ingredients::make(config, extensions)?.usable_directory(store, config)
}

/// Without any API key everybody who reaches the port may run agents, so only this machine may
/// reach it.
pub fn require_keys_beyond_loopback(has_keys: bool, config: &Config) -> anyhow::Result<()> {
    let listen = config.http.listen;
    if has_keys || listen.ip().is_loopback() || config.http.insecure_no_auth {
        return Ok(());
    }
    bail!(
        "there is no API key, so the service listens on loopback only, not on {listen}: make a key with `agent-runtime keys create --tenant NAME`, \
         or serve without any with --insecure-no-auth"
    )
}

/// Makes what sweeps the store as configured.
pub fn sweeper(store: Arc<dyn Store>, config: &Config) -> Sweeper {
    Sweeper::new(store, settings::retention(config))
}

async fn open_board(config: &Config, supervisor: &Supervisor) -> anyhow::Result<Arc<Board>> {
    Ok(match open_shared_board(config, supervisor).await? {
        Some(board) => Arc::new(board),
        None => Arc::new(Board::new(settings::board(config))),
    })
}

/// Opens the board that replicas share, if one is configured.
pub async fn open_shared_board(config: &Config, supervisor: &Supervisor) -> anyhow::Result<Option<Board>> {
    let Some(url) = &config.board.url else {
        return Ok(None);
    };
    let board = Board::open(url.expose(), settings::redis_board(config)?, supervisor).await;
    Ok(Some(board.with_context(|| format!("can't use the board {url}"))?))
}

//! The composition root: the only place that names every concrete type.

mod agent_files;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use self::agent_files::AgentFiles;
use crate::agent::hooks::{HookFactory, HookRegistry, SummarisationFactory, builtin_hooks};
use crate::board::{Board, InProcessBoard, RedisBoard, RedisBoardSettings};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::environment::InMemoryEnvironments;
use crate::http::{HttpLimits, HttpState};
use crate::ids::{IdSource, UuidV7Source};
use crate::models::Catalog;
use crate::run::{AgentChecks, AgentDirectory, RunPorts, RunService};
use crate::store::{self, Sessions, Store};
use crate::tools::{ToolRegistry, builtin_tools};
use crate::webhooks::{WebhookHookFactory, WebhookSender};

/// How long closing may take; what was answered is stored before.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The service, assembled.
#[derive(Debug)]
pub struct App {
    /// Runs agents.
    pub runs: Arc<RunService>,
    /// Finds agents.
    pub agents: Arc<AgentDirectory>,
    /// Reads and publishes bundles.
    pub sessions: Arc<Sessions>,
    /// Reads and writes everything.
    pub store: Arc<dyn Store>,
    board: Arc<dyn Board>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl App {
    /// Opens the store and puts everything together.
    pub async fn build(config: &Config) -> anyhow::Result<Self> {
        Self::build_on(open_store(config).await?, config).await
    }

    /// Puts everything together on a store that is open.
    pub async fn build_on(store: Arc<dyn Store>, config: &Config) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn IdSource> = Arc::new(UuidV7Source);
        let models = Arc::new(Catalog::new(
            settings::providers(config),
            &settings::client(config),
            Arc::clone(&ids),
            Arc::clone(&clock),
        )?);
        let tools = builtin_tools(&clock);
        let tools = Arc::new(ToolRegistry::new(
            tools,
            settings::tools(config),
            Arc::clone(&clock),
            Arc::clone(&ids),
        )?);
        let summarisation = SummarisationFactory::new(
            Arc::clone(&models) as _,
            config.price_table(),
            config.context_window_table(),
        );
        let hooks = hook_factories(config)?
            .into_iter()
            .chain([Box::new(summarisation) as _]);
        let hooks = Arc::new(HookRegistry::new(hooks));
        let configured = AgentFiles::load(&config.agents.directory)?;
        let checks = AgentChecks {
            models: Arc::clone(&models) as _,
            tools: Arc::clone(&tools) as _,
            hooks: Arc::clone(&hooks),
            prices: config.price_table(),
            budget: settings::runs(config).budget,
        };
        let agents = AgentDirectory::new(Arc::clone(&store), checks, Arc::clone(&clock), configured.definitions());
        let agents = Arc::new(agents.map_err(|error| configured.name_file(error))?);
        let sessions = Arc::new(Sessions::new(Arc::clone(&store), config.store.cache_bytes));
        let board = open_board(config).await?;
        let ports = RunPorts {
            sessions: Arc::clone(&sessions),
            store: Arc::clone(&store),
            board: Arc::clone(&board),
            agents: Arc::clone(&agents),
            models,
            tools,
            hooks,
            environments: Arc::new(InMemoryEnvironments),
            prices: config.price_table(),
            clock: Arc::clone(&clock),
            ids: Arc::clone(&ids),
        };
        let runs = RunService::new(ports, settings::runs(config));
        Ok(Self {
            runs,
            agents,
            sessions,
            store,
            board,
            clock,
            ids,
        })
    }

    /// Returns what HTTP handlers work with.
    pub fn http_state(&self) -> HttpState {
        HttpState {
            runs: Arc::clone(&self.runs),
            agents: Arc::clone(&self.agents),
            sessions: Arc::clone(&self.sessions),
            store: Arc::clone(&self.store),
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
        self.runs.shut_down(grace).await;
        self.disconnect().await;
    }

    /// Lets go of the board and the store. No run may be at work.
    pub async fn disconnect(&self) {
        let closing = async {
            self.board.close().await;
            self.store.close().await;
        };
        if tokio::time::timeout(CLOSE_PATIENCE, closing).await.is_err() {
            tracing::warn!("the connections to the board and the store did not close in time");
        }
    }
}

/// Opens the configured store.
pub async fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let opened = store::open(config.store.url.expose(), settings::store(config)).await;
    opened.with_context(|| format!("can't open the store {}", config.store.url))
}

/// Makes the hooks that agents can attach.
fn hook_factories(config: &Config) -> anyhow::Result<Vec<Box<dyn HookFactory>>> {
    let sender = Arc::new(WebhookSender::new(settings::webhooks(config))?);
    let webhook = WebhookHookFactory::new(sender, settings::webhook_secrets(config)?);
    let mut hooks = builtin_hooks();
    hooks.push(Box::new(webhook));
    Ok(hooks)
}

async fn open_board(config: &Config) -> anyhow::Result<Arc<dyn Board>> {
    let Some(url) = &config.board.url else {
        return Ok(Arc::new(InProcessBoard::default()));
    };
    let board = RedisBoard::open(url.expose(), RedisBoardSettings::default()).await;
    Ok(Arc::new(board.with_context(|| format!("can't use the board {url}"))?))
}

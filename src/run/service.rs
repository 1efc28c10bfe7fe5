//! The service that runs agents: its ports, its settings, its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::AgentDirectory;
use crate::agent::hooks::HookRegistry;
use crate::agent::ports::{EnvironmentRuntime, ModelCatalog, ToolCatalog};
use crate::agent::state::ExecutionBudget;
use crate::board::Board;
use crate::clock::Clock;
use crate::ids::IdSource;
use crate::store::{Sessions, Store};
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
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
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
}

/// Runs agents.
#[derive(Debug)]
pub struct RunService {
    pub(super) ports: RunPorts,
    pub(super) settings: RunSettings,
    pub(super) permits: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    /// Cancels all runs.
    pub(super) cancellation: CancellationToken,
}

impl RunService {
    /// Makes a service.
    pub fn new(ports: RunPorts, settings: RunSettings) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(settings.max_concurrent));
        Arc::new(Self {
            ports,
            settings,
            permits,
            tasks: TaskTracker::new(),
            cancellation: CancellationToken::new(),
        })
    }

    /// Returns the number of runs that are at work.
    pub fn active_runs(&self) -> usize {
        self.settings
            .max_concurrent
            .saturating_sub(self.permits.available_permits())
    }

    /// Takes no more runs, lets those at work finish within the grace, cancels the rest and waits a moment for their records.
    pub async fn shut_down(&self, grace: Duration) {
        self.permits.close();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                runs = self.tasks.len(),
                "cancelling runs that outlast the shutdown grace"
            );
            self.cancellation.cancel();
            if tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await.is_err() {
                tracing::error!(runs = self.tasks.len(), "runs did not end when they were cancelled");
            }
        }
    }
}
